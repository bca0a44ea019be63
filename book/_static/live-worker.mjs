/**
 * Python of a live lesson, in a worker of its own, so that the page stays smooth whatever a cell does.
 *
 * The page sends `start` once and then `run` for one cell at a time; the worker answers with the messages below.
 * What a cell does wrong is an output. `fatal` means that this worker is of no use any more.
 *
 * @typedef {{kind: "start", pyodide: string, files: string, slice: string, interrupt: SharedArrayBuffer | null}} Start
 *   addresses of Pyodide, of this folder, and of the slice of the checkpoints ("" where the page needs none)
 * @typedef {{kind: "run", id: number, source: string, name: string}} Run
 * @typedef {"ok" | "failed" | "interrupted" | "left-out"} Status
 * @typedef {{kind: "stream", name: string, text: string}
 *   | {kind: "display", data: Record<string, string>, metadata: Record<string, unknown>}
 *   | {kind: "error", text: string, name: string}
 *   | {kind: "note", text: string}} Output
 * @typedef {{kind: "ready"} | {kind: "stage", text: string} | {kind: "output", output: Output}
 *   | {kind: "done", id: number, status: Status} | {kind: "fatal", text: string}} Message
 */

const SLICE = ["layer.npz", "checkpoints.json"];
const HOME = "/lesson";

/** @param {Message} said */
function say(said) {
  postMessage(said);
}

/**
 * Compile Pyodide's program once it has arrived as a whole. Pyodide itself waits for ever where it cannot be had; and
 * compiling it while it arrives, Chromium now and then waits for ever for the copy that it keeps of compiled programs.
 * @param {Response | PromiseLike<Response>} source
 * @param {WebAssembly.Imports} [imports]
 */
async function compile(source, imports) {
  try {
    const answer = await source;
    if (!answer.ok) throw new Error(`${answer.url} was not found (${answer.status})`);
    return await WebAssembly.instantiate(await answer.arrayBuffer(), imports);
  } catch (error) {
    say({ kind: "fatal", text: message(error) });
    throw error;
  }
}
WebAssembly.instantiateStreaming = compile;

/** @type {any} Pyodide */
let py;
/** @type {any} the page in live_runner.py */
let page;
/** @type {Uint8Array | null} */
let interrupt = null;

/** @param {string} address */
async function fetched(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address} was not found (${answer.status})`);
  return answer;
}

/** @param {string} text what is being loaded, for the page to show */
function loading(text) {
  say({ kind: "stage", text: `Loading ${text}…` });
}

/** @param {string} sources Python text; the packages that it imports are loaded, where they are not yet */
async function loadPackages(sources) {
  await py.loadPackagesFromImports(sources, {
    messageCallback: (/** @type {string} */ text) => {
      if (text.startsWith("Loading ")) loading(text.slice("Loading ".length));
    },
    errorCallback: (/** @type {string} */ text) => {
      throw new Error(text);
    },
  });
}

/** @param {Start} order */
async function start({ pyodide, files, slice, interrupt: shared }) {
  loading("Python");
  const sources = ["live_runner.py", ...(slice ? ["live_slice.py"] : [])];
  const texts = Promise.all(sources.map(async (name) => (await fetched(files + name)).text()));
  const parts = slice ? SLICE.map(async (name) => (await fetched(slice + name)).arrayBuffer()) : [];
  // What fails is waited for below; until then it must not count as unhandled.
  for (const each of [texts, ...parts]) each.catch(() => {});
  const { loadPyodide } = await import(`${pyodide}pyodide.mjs`);
  const quiet = { stdout() {}, stderr() {} };
  py = await loadPyodide({
    indexURL: pyodide,
    packages: ["numpy"],
    env: { HOME, MPLBACKEND: "agg" },
    ...quiet,
  });
  await loadPackages("import ffn");
  for (const [place, text] of (await texts).entries()) py.FS.writeFile(`${HOME}/${sources[place]}`, text);
  for (const [place, bytes] of (await Promise.all(parts)).entries())
    py.FS.writeFile(`${HOME}/${SLICE[place]}`, new Uint8Array(bytes));
  page = py.pyimport("live_runner").Page((/** @type {string} */ text) =>
    say({ kind: "output", output: JSON.parse(text) }),
  );
  if (slice) py.pyimport("live_slice").install(page, HOME);
  // Imported now, so that the first cell does not wait for it.
  py.runPython("import ffn, ffn.published, ffn.show");
  if (shared) {
    interrupt = new Uint8Array(shared);
    py.setInterruptBuffer(interrupt);
  }
  say({ kind: "ready" });
}

/** @param {Run} order @returns {Promise<Status>} */
async function run({ source, name }) {
  const needs = page.needs(source).toJs();
  const before = Object.keys(py.loadedPackages).length;
  try {
    await loadPackages([source, ...needs.map((/** @type {string} */ module) => `import ${module}`)].join("\n"));
  } catch (error) {
    const text = `A package could not be loaded (${message(error)}). Look at the connection and run the cell again.`;
    say({ kind: "output", output: { kind: "error", text, name: "a package could not be loaded" } });
    return "failed";
  }
  if (Object.keys(py.loadedPackages).length > before) say({ kind: "stage", text: "" });
  if (interrupt) interrupt[0] = 0;
  try {
    return page.run(source, name);
  } catch (error) {
    // An interrupt that arrives when the cell has just ended is raised outside of it.
    if (/** @type {any} */ (error).type === "KeyboardInterrupt") return "interrupted";
    throw error;
  }
}

/** @param {unknown} error */
function message(error) {
  return error instanceof Error ? error.message : String(error);
}

addEventListener("message", async ({ data }) => {
  /** @type {Start | Run} */
  const order = data;
  try {
    if (order.kind === "start") await start(order);
    else say({ kind: "done", id: order.id, status: await run(order) });
  } catch (error) {
    say({ kind: "fatal", text: message(error) });
  }
});
