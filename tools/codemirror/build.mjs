/**
 * Bundle CodeMirror into book/_static/vendor/codemirror, with the licenses of what is in it. Needs Node and network:
 *
 *     cd tools/codemirror && npm ci && npm run build
 */

import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const TARGET = "../../book/_static/vendor/codemirror";
const LONGEST = 500_000;

const { metafile } = await build({
  entryPoints: ["entry.mjs"],
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  charset: "utf8",
  metafile: true,
  outfile: `${TARGET}/codemirror.mjs`,
});

/** @returns {string[]} the packages that the bundle holds, by name */
function bundled() {
  const folders = Object.keys(metafile.inputs).map((path) => path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1]);
  return [...new Set(folders.filter((name) => name !== undefined))].sort();
}

const parts = bundled().map((name) => {
  const folder = `node_modules/${name}`;
  const { version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  return `${name} ${version}\n\n${readFileSync(`${folder}/LICENSE`, "utf8").trim()}\n`;
});
writeFileSync(`${TARGET}/LICENSE`, parts.join(`\n${"-".repeat(72)}\n\n`));

const [output] = Object.values(metafile.outputs);
if (output.bytes > LONGEST) throw new Error(`the bundle has ${output.bytes} bytes; at most ${LONGEST} are allowed.`);
