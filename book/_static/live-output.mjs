/** What a cell shows, at the place where the built page shows it. */

import { make } from "./dom.mjs";
import { enhance as makeReachable } from "./scroll.mjs";

/** @typedef {import("./live-worker.mjs").Output} Output */

/** After so many milliseconds a cell's new output takes the place of the old, even if the cell still runs. */
const SOON = 300;
const SCROLLING = ".ffn-table, .katex-display, pre";
/** Forms of a value from the one that shows most to plain text. */
const FORMS = ["text/html", "image/svg+xml", "image/png", "text/plain"];
const KEPT_VALUE = "application/papermill.record/";

/**
 * @param {string} text
 * @param {string} kind
 */
function textBlock(text, kind) {
  const block = make("div", { class: "highlight" }, make("pre", {}, text));
  return make("div", { class: `output ${kind} notranslate` }, block);
}

/** @param {Record<string, string>} data by MIME type */
function shown(data) {
  const form = FORMS.find((each) => each in data);
  if (form === "text/html" || form === "image/svg+xml") {
    const box = make("div", { class: "output text_html" });
    box.innerHTML = data[form];
    return box;
  }
  if (form === "image/png") {
    const source = `data:image/png;base64,${data[form]}`;
    const alt = data["text/plain"] ?? "figure";
    return make("div", { class: "output image_png" }, make("img", { src: source, alt }));
  }
  return textBlock(data["text/plain"] ?? "", "text_plain");
}

/**
 * @param {Output} output
 * @returns {HTMLElement | null} null for what does not show, such as a number kept for the prose
 */
function node(output) {
  if (output.kind === "stream") return textBlock(output.text, `stream ffn-live-${output.name}`);
  if (output.kind === "error") return textBlock(output.text, "traceback ffn-live-error");
  if (output.kind === "note") return make("p", { class: "ffn-live-note" }, output.text);
  if (Object.keys(output.data).some((mime) => mime.startsWith(KEPT_VALUE))) return null;
  return shown(output.data);
}

export class Outputs {
  /** @param {HTMLElement} cell the cell of the page */
  constructor(cell) {
    this.cell = cell;
    this.built = /** @type {HTMLElement | null} */ (cell.querySelector(":scope > .cell_output"));
    this.current = this.built;
    this.fresh = this.current;
    /** @type {{name: string, text: Text} | null} the stream that the last output belongs to */
    this.stream = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
  }

  begin() {
    clearTimeout(this.timer);
    this.fresh = make("div", { class: "cell_output docutils container", "data-live": "" });
    this.stream = null;
    this.timer = setTimeout(() => this.swap(), SOON);
  }

  /** @param {Output} output */
  add(output) {
    if (output.kind === "stream" && this.stream?.name === output.name) {
      this.stream.text.data += output.text;
      return;
    }
    const made = node(output);
    if (!made) return;
    this.fresh?.append(made);
    const text = output.kind === "stream" ? made.querySelector("pre")?.firstChild : null;
    this.stream = output.kind === "stream" && text instanceof Text ? { name: output.name, text } : null;
  }

  end() {
    clearTimeout(this.timer);
    this.swap();
    for (const box of /** @type {NodeListOf<HTMLElement>} */ (this.fresh?.querySelectorAll(SCROLLING)))
      makeReachable(box);
  }

  /** Show the built page's output again. */
  restore() {
    clearTimeout(this.timer);
    this.fresh = this.built;
    this.swap();
  }

  swap() {
    if (this.fresh === this.current) return;
    if (this.current && this.fresh) this.current.replaceWith(this.fresh);
    else if (this.fresh) this.cell.append(this.fresh);
    else this.current?.remove();
    this.current = this.fresh;
  }
}
