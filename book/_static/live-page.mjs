/** A live page: its cells in order, the bar that drives them, and Python behind them. */

import { button, make } from "./dom.mjs";
import { Cell } from "./live-cell.mjs";
import { cellKeys } from "./live-drafts.mjs";
import { Python } from "./live-python.mjs";
import { SLICE_CELL, SLICE_WORDS } from "./live-slice.mjs";

/** @typedef {import("./live-drafts.mjs").Drafts} Drafts @typedef {import("./live-python.mjs").Ended} Ended */
/** @typedef {{version: string, pyodide: string, exercise: string, slice: string}} Live */
/** @typedef {"loading" | "ready" | "running" | "failed"} State */

const ROOT = new URL(document.documentElement.dataset.content_root ?? "./", document.baseURI);
const RESTARTED = "Python was restarted; cells above run again when needed.";
const LEFT = "Python was stopped when you left the page, and starts again with the next run.";
const NOT_KEPT = "This browser keeps nothing: what you type lasts until you leave the page.";
const CHECKPOINTS = /\bffn\.checkpoints\b/;

/** @param {string} text @param {number} count */
function counted(text, count) {
  return `${count} ${text}${count === 1 ? "" : "s"}`;
}

/**
 * The cells of a page: the code from its notebook, the place from the page.
 * @param {{cell_type: string, source: string | string[], metadata: {tags?: string[]}}[]} listed
 * @returns {Cell[]}
 * @throws {Error} where the two do not belong together
 */
function matched(listed) {
  const places = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("#main-content div.cell")]);
  const cells = listed
    .filter((cell) => cell.cell_type === "code")
    .map(({ source, metadata }) => {
      const removed = metadata.tags?.includes("remove-cell");
      return new Cell([source].flat().join(""), removed ? null : (places.shift() ?? null));
    });
  const same = cells.every(({ source, element }) => {
    const code = element?.querySelector(".cell_input pre")?.textContent;
    return code == null || code.trim() === source.trim();
  });
  if (places.length || !same) throw new Error("its notebook is of another version; load the page anew");
  return cells;
}

class LivePage {
  /**
   * @param {HTMLElement} box
   * @param {Live} live
   * @param {Drafts} drafts
   * @param {Cell[]} cells
   */
  constructor(box, live, drafts, cells) {
    this.box = box;
    this.drafts = drafts;
    this.cells = cells;
    const sliced = cells.some((cell) => CHECKPOINTS.test(cell.source));
    this.addresses = {
      pyodide: new URL(live.pyodide, ROOT).href,
      files: new URL("./", import.meta.url).href,
      slice: sliced ? new URL(live.slice, ROOT).href : "",
    };
    /** @type {Cell[]} which run next */
    this.queue = [];
    this.working = false;
    /** How many cells have been run on this page. */
    this.turns = 0;
    /** What is said beside "Ready", such as what became of the last run. */
    this.last = "";
    /** What went wrong in a hidden cell, for the next cell in sight to say. */
    this.trouble = "";
    /** @type {Cell | null} which is running */
    this.current = null;
    /** How many cells in sight the last run did not come to. */
    this.unrun = 0;
    /** Whether the reader has left the page. */
    this.left = false;
    this.status = make("p", { id: "live-status", class: "ffn-status", role: "status", "aria-live": "polite" });
    this.interruptButton = button("Interrupt", () => this.interrupt(), "ffn-quiet");
    this.bar = this.makeBar();
    this.notices = make("div", { class: "ffn-live-notices" });
    if (sliced) this.addSlice();
    this.openCells();
    this.show();
    this.python = this.start();
    // The page may come back from the browser's memory of pages left: then Python starts again with the next run.
    window.addEventListener("pagehide", () => this.leave());
    window.addEventListener("pageshow", () => (this.left = false));
  }

  makeBar() {
    const buttons = [
      button("Run all", () => this.runAll()),
      this.interruptButton,
      button("Restart", () => this.restart(), "ffn-quiet"),
      button("Reset all", () => this.resetAll(), "ffn-quiet"),
    ];
    const row = make("div", { class: "ffn-live-buttons", role: "group", "aria-label": "This page's code" }, ...buttons);
    return make("div", { class: "ffn-live-bar" }, row, this.status);
  }

  /** Say what a page on the checkpoints runs on, and add a cell that shows it. */
  addSlice() {
    const element = make("div", { class: "cell docutils container ffn-live-slice" });
    const code = make("div", {}, make("pre", {}, SLICE_CELL));
    element.append(make("div", { class: "cell_input docutils container" }, code));
    this.notices.append(make("p", { class: "ffn-live-note" }, SLICE_WORDS), element);
    this.cells.unshift(new Cell(SLICE_CELL, element));
  }

  openCells() {
    const open = this.cells.filter((cell) => cell.element?.querySelector(".cell_input"));
    const keys = cellKeys(open.map((cell) => cell.source));
    const typed = this.drafts.read();
    const acts = {
      run: (/** @type {Cell} */ cell) => this.run([cell]),
      runAndGoOn: (/** @type {Cell} */ cell) => {
        this.run([cell]);
        open[open.indexOf(cell) + 1]?.focus();
      },
      changed: (/** @type {Cell} */ cell, /** @type {string | null} */ text) => {
        this.drafts.write(cell.key, text);
        if (!this.drafts.kept) this.tellOnce(NOT_KEPT);
      },
    };
    let number = 0;
    for (const [place, cell] of open.entries()) {
      const name = cell.source === SLICE_CELL ? "The slice" : `Cell ${++number}`;
      cell.open(name, keys[place], typed[keys[place]]?.text, acts);
    }
    this.tellOfDrafts(
      open.filter((cell) => cell.changed),
      Object.entries(typed).filter(([key]) => !keys.includes(key)),
    );
  }

  /**
   * @param {Cell[]} back cells with what was typed earlier
   * @param {[string, import("./live-drafts.mjs").Draft][]} old typed into cells that the book no longer has
   */
  tellOfDrafts(back, old) {
    if (back.length) {
      const names = back.map((cell) => cell.name).join(", ");
      const notice = make("p", { class: "ffn-live-note" }, `What you typed earlier is back: ${names}. `);
      const drop = button("Drop it", () => (this.resetAll(), notice.remove()), "ffn-quiet");
      notice.append(drop);
      this.notices.append(notice);
    }
    if (!old.length) return;
    const words = `What you typed into ${counted("cell", old.length)} that the book has changed since`;
    const notice = make("details", { class: "ffn-live-note" }, make("summary", {}, words));
    const drop = () => {
      for (const [key] of old) this.drafts.write(key, null);
      notice.remove();
    };
    notice.append(...old.map(([, draft]) => make("pre", {}, draft.text)), button("Drop it", drop, "ffn-quiet"));
    this.notices.append(notice);
  }

  /** @param {string} text */
  tellOnce(text) {
    if (this.notices.textContent?.includes(text)) return;
    this.notices.append(make("p", { class: "ffn-live-note" }, text));
  }

  /** Put the bar where the button was. */
  show() {
    const help = /** @type {HTMLElement} */ (this.box.querySelector("template")).content.cloneNode(true);
    this.box.replaceChildren(this.notices, help);
    this.box.dataset.state = "on";
    this.box.after(this.bar);
    /** @type {HTMLElement} */ (this.bar.querySelector("button")).focus({ preventScroll: true });
  }

  /**
   * @param {State} state
   * @param {string} text
   */
  say(state, text) {
    this.status.dataset.state = state;
    this.status.textContent = text;
    this.interruptButton.setAttribute("aria-disabled", String(state !== "running"));
  }

  start() {
    this.say("loading", "Loading Python…");
    /** @type {Python} */
    const python = new Python(this.addresses, (text) => this.sayLoading(python, text));
    python.ready.then(
      () => this.working || this.sayReady(),
      (/** @type {Ended} */ why) => why.asked || this.sayNotStarted(why),
    );
    for (const cell of this.cells) cell.forget();
    return python;
  }

  /** @param {Ended} why */
  sayNotStarted(why) {
    this.say("failed", `Python could not be started: ${why.message}. Restart tries it again.`);
  }

  sayReady() {
    this.say("ready", `Ready. ${this.last || "Shift+Enter runs a cell."}`);
    this.last = "";
  }

  /**
   * @param {Python} python
   * @param {string} text what is being loaded; "" where the cell itself goes on
   */
  sayLoading(python, text) {
    if (python !== this.python) return;
    if (!text) this.sayRunning();
    else this.say(python.started ? "running" : "loading", text);
  }

  sayRunning() {
    const waiting = this.queue.filter((each) => each.visible).length;
    const more = waiting ? `, ${waiting} more to go` : "";
    this.say("running", `Running${this.current?.visible ? ` ${this.current.name}` : ""}${more}…`);
  }

  runAll() {
    this.run(this.cells);
  }

  /**
   * Run cells, and before them what they build on: cells above that have not run since Python started.
   * @param {Cell[]} asked in order
   */
  run(asked) {
    if (this.python.ended) this.python = this.start();
    const above = asked === this.cells ? [] : this.due(this.cells.slice(0, this.cells.indexOf(asked[0])));
    for (const cell of [...above, ...asked].filter((each) => !this.queue.includes(each))) {
      this.queue.push(cell);
      if (cell !== this.current) cell.wait();
    }
    const before = above.filter((cell) => cell.visible).length;
    if (before) this.last = `${counted("cell", before)} above ran first.`;
    if (!this.working) this.work();
  }

  /**
   * Cells that were not run yet, and hidden ones that are older than the cell in sight before them.
   * @param {Cell[]} above
   */
  due(above) {
    let turn = 0;
    return above.filter((cell) => {
      if (cell.visible) turn = cell.turn;
      const waits = cell === this.current || this.queue.includes(cell);
      return !waits && (!cell.ran || (!cell.visible && cell.turn < turn));
    });
  }

  /** Run the queue until it is empty, or a cell fails, is interrupted, or loses its Python. */
  async work() {
    this.working = true;
    /** @type {(() => void) | null} */
    let stopped = null;
    while (this.queue.length && !stopped) {
      this.current = /** @type {Cell} */ (this.queue.shift());
      stopped = await this.runOne(this.current);
    }
    this.current = null;
    this.working = false;
    const left = this.queue.splice(0);
    for (const cell of left) cell.unwait();
    this.unrun = left.filter((cell) => cell.visible).length;
    if (stopped) stopped();
    else this.sayReady();
  }

  /**
   * @param {Cell} cell
   * @returns {Promise<(() => void) | null>} what to say where the cells after it must not run
   */
  async runOne(cell) {
    const python = this.python;
    let error = "";
    cell.begin();
    cell.turn = ++this.turns;
    if (cell.visible && this.trouble) cell.add({ kind: "note", text: this.trouble });
    if (cell.visible) this.trouble = "";
    python.ready.then(
      () => python === this.python && this.sayRunning(),
      () => {},
    );
    try {
      const status = await python.run(cell.text, cell.name, (output) => {
        if (output.kind === "error") error = output.name;
        cell.add(output);
      });
      cell.end(status);
      if (status === "interrupted") return () => this.sayInterrupted(cell);
      if (status !== "failed") return null;
      if (cell.visible) return () => this.sayFailed(cell, error);
      // What the page hides mostly computes numbers for its text: the reader's own cell runs all the same.
      this.trouble = `A cell that the page hides failed before this one (${error}).`;
      return null;
    } catch (why) {
      return this.ended(cell, python, /** @type {Ended} */ (why));
    }
  }

  /** @param {Cell} cell */
  sayInterrupted(cell) {
    this.last = `${cell.name} was interrupted; what the other cells computed is kept.`;
    this.sayReady();
  }

  /**
   * @param {Cell} cell
   * @param {string} error
   */
  sayFailed(cell, error) {
    const rest = this.unrun ? ` ${counted("cell", this.unrun)} after it did not run.` : "";
    this.say("failed", `${cell.name} failed: ${error}.${rest}`);
    this.last = "";
  }

  /**
   * Python ended under a cell.
   * @param {Cell} cell
   * @param {Python} python
   * @param {Ended} why
   * @returns {() => void} what follows from it
   */
  ended(cell, python, why) {
    if (!why.asked) cell.add({ kind: "error", text: `Python ended: ${why.message}.`, name: "" });
    cell.end(why.asked ? "interrupted" : "failed");
    cell.ran = false;
    if (this.left) return () => this.say("ready", LEFT);
    // Where Python could not be loaded, trying again at once would go on for ever; and it may run again already.
    if (!python.started) return () => this.python.ended && this.sayNotStarted(why);
    if (python !== this.python) return () => {};
    return () => this.restart(why.asked ? RESTARTED : `${cell.name} ended Python. ${RESTARTED}`);
  }

  interrupt() {
    if (this.status.dataset.state === "running") this.python.interrupt();
  }

  /** @param {string} [words] what to say once Python is ready */
  restart(words = RESTARTED) {
    const old = this.python;
    this.last = words;
    this.python = this.start();
    old.end("Python was restarted", true);
  }

  leave() {
    this.left = true;
    this.python.end("the page was left", true);
  }

  /** The book's own code in every cell. */
  resetAll() {
    const focused = document.activeElement;
    for (const cell of this.cells) cell.reset();
    if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
  }
}

/**
 * Make the page's cells live, and start Python.
 * @param {HTMLElement} box which holds the button
 * @param {Live} live
 * @param {Drafts} drafts
 */
export async function begin(box, live, drafts) {
  const answer = await fetch(new URL(box.dataset.notebook ?? "", ROOT));
  if (!answer.ok) throw new Error(`the page's notebook was not found (${answer.status})`);
  const { cells } = await answer.json();
  new LivePage(box, live, drafts, matched(cells));
}
