/** One cell of a live page: its editor, its buttons, and where its output goes. */

import { button, make } from "./dom.mjs";
import { makeEditor, replaceText } from "./live-editor.mjs";
import { Outputs } from "./live-output.mjs";

/** @typedef {import("./live-worker.mjs").Output} Output @typedef {import("./live-worker.mjs").Status} Status */
/** @typedef {"new" | "stale" | "waiting" | "running" | Status} State `stale`: its output is of a Python that is no more */
/**
 * @typedef {object} Acts
 * @property {(cell: Cell) => void} run
 * @property {(cell: Cell) => void} runAndGoOn
 * @property {(cell: Cell, text: string | null) => void} changed the text is null where it is the book's own
 */

/** @type {Record<State, string>} */
const WORDS = {
  new: "not run yet",
  stale: "ran before Python was restarted",
  waiting: "waits for its turn",
  running: "running",
  ok: "ran",
  failed: "failed",
  interrupted: "interrupted",
  "left-out": "left out",
};

export class Cell {
  /**
   * @param {string} source the book's own code
   * @param {HTMLElement | null} element null where the page hides the cell
   */
  constructor(source, element) {
    this.source = source;
    this.element = element;
    this.outputs = element ? new Outputs(element) : null;
    /** What stands in tracebacks. */
    this.name = "A cell that the page hides";
    /** Whether the page shows the cell's code. */
    this.visible = false;
    this.key = "";
    /** @type {State} */
    this.state = "new";
    /** @type {State} what it was before it began to wait */
    this.before = "new";
    /** Whether the cell was run in the Python that is there now. */
    this.ran = false;
    /** @type {import("./vendor/codemirror/codemirror.mjs").EditorView | null} */
    this.editor = null;
    /** @type {HTMLElement | null} */
    this.words = null;
    this.runButton = button("Run", () => {}, "ffn-quiet ffn-live-run");
    this.resetButton = button("Reset", () => this.reset(true), "ffn-quiet ffn-live-reset");
    /** Which run of the page was the cell's last: whether it is older than another's. */
    this.turn = 0;
  }

  get text() {
    return this.editor?.state.doc.toString() ?? this.source;
  }

  get changed() {
    return this.text !== this.source;
  }

  /**
   * Put an editor in the place of the code, and buttons below it.
   * @param {string} name
   * @param {string} key under which typed code is kept
   * @param {string | undefined} typed what was typed earlier
   * @param {Acts} acts
   */
  open(name, key, typed, acts) {
    const input = /** @type {HTMLElement} */ (this.element?.querySelector(".cell_input"));
    const still = /** @type {HTMLElement} */ (input.firstElementChild);
    const inside = name[0].toLowerCase() + name.slice(1);
    [this.visible, this.key, this.name] = [true, key, name];
    const host = make("div", { class: "ffn-live-editor" });
    this.words = make("span", { class: "ffn-live-state" });
    this.runButton.setAttribute("aria-label", `Run ${inside}`);
    this.resetButton.setAttribute("aria-label", `Reset ${inside}`);
    this.runButton.addEventListener("click", () => acts.run(this));
    const row = make(
      "div",
      { class: "ffn-live-controls" },
      this.runButton,
      this.resetButton,
      this.words,
    );
    still.hidden = true;
    still.after(host);
    // Below the code; where that is folded away, below its box, so that it can be run all the same.
    (input.parentElement === this.element ? input : /** @type {HTMLElement} */ (input.parentElement)).after(row);
    this.editor = makeEditor(host, typed ?? this.source, `Code of ${inside}`, {
      run: () => acts.run(this),
      runAndGoOn: () => acts.runAndGoOn(this),
      changed: (text) => {
        acts.changed(this, text === this.source ? null : text);
        this.show(this.state);
      },
    });
    row.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !event.shiftKey) return;
      event.preventDefault();
      acts.runAndGoOn(this);
    });
    this.show("new");
  }

  /** @param {State} state */
  show(state) {
    this.state = state;
    if (this.element) this.element.dataset.live = state;
    if (!this.words) return;
    this.resetButton.hidden = !this.changed;
    this.words.textContent = `${this.name}: ${WORDS[state]}${this.changed ? ", changed by you" : ""}`;
  }

  wait() {
    if (this.state !== "waiting") this.before = this.state;
    this.show("waiting");
  }

  /** Its turn does not come. */
  unwait() {
    if (this.state === "waiting") this.show(this.before);
  }

  begin() {
    this.outputs?.begin();
    this.show("running");
  }

  /** @param {Output} output */
  add(output) {
    this.outputs?.add(output);
  }

  /** @param {State} state */
  end(state) {
    this.outputs?.end();
    this.ran = true;
    this.show(state);
  }

  /** Python was started anew, and knows nothing of the cell. */
  forget() {
    this.ran = false;
    if (!["new", "interrupted"].includes(this.state)) this.show("stale");
  }

  /**
   * The book's own code and output again; the editor's undo brings back what was typed.
   * @param {boolean} [focus] whether to go to the editor
   */
  reset(focus = false) {
    if (!this.editor || !this.changed) return;
    replaceText(this.editor, this.source);
    if (focus) this.editor.focus();
    if (["running", "waiting"].includes(this.state)) return;
    this.outputs?.restore();
    this.ran = false;
    this.show("new");
  }

  /** Go to the editor; where it is folded away, to the button. */
  focus() {
    const folded = this.element?.querySelector("details:not([open]) .ffn-live-editor");
    if (folded) this.runButton.focus();
    else this.editor?.focus();
  }
}
