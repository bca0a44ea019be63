/** The page that shows what has been answered, and exports, imports and erases it. */

import { button, labelled, make } from "./dom.mjs";
import { LONGEST, merge, parse } from "./store.mjs";

/** @typedef {import("./store.mjs").Store} Store @typedef {import("./store.mjs").State} State */

const NOT_KEPT =
  "This browser does not let the page store anything: what you answer lasts until you leave a page. " +
  "A private window, or a setting that blocks site data, does that.";
const SET_ASIDE =
  "Something was stored here that could not be read as progress. It was set aside, and counting begins anew.";

/** @param {string} text keys with spaces between them */
function keysOf(text) {
  return text.split(" ").filter(Boolean);
}

/**
 * "3 of 5, 2 right" for the keys of one cell.
 * @param {string[]} keys
 * @param {State} state
 */
export function tally(keys, state) {
  const answers = keys.map((key) => state.answers[key]).filter(Boolean);
  const right = answers.filter((answer) => answer.right).length;
  if (!keys.length) return "none";
  return `${answers.length} of ${keys.length}${answers.length ? `, ${right} right` : ""}`;
}

/** @param {State} state */
export function exported(state) {
  return `${JSON.stringify(state, null, 1)}\n`;
}

/** @param {State} state */
function download(state) {
  const address = URL.createObjectURL(new Blob([exported(state)], { type: "application/json" }));
  const day = new Date().toISOString().slice(0, 10);
  make("a", { href: address, download: `ffn-progress-${day}.json` }).click();
  // Some browsers begin the download only after this function has ended.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** @param {State} before @param {State} after */
function taken(before, after) {
  const changed = (/** @type {Record<string, object>} */ a, /** @type {Record<string, object>} */ b) =>
    Object.keys(b).filter((key) => JSON.stringify(a[key]) !== JSON.stringify(b[key])).length;
  const count = (/** @type {number} */ n, /** @type {string} */ noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;
  const answers = count(changed(before.answers, after.answers), "answer");
  return `${answers} and ${count(changed(before.cards, after.cards), "card")}`;
}

class Progress {
  /**
   * @param {HTMLElement} root
   * @param {Store} store
   */
  constructor(root, store) {
    this.root = root;
    this.store = store;
    this.cards = keysOf(root.dataset.cards ?? "");
    this.note = make("p", { class: "ffn-progress-note" });
    this.cardLine = make("p");
    this.status = make("p", { class: "ffn-status", role: "status", "aria-live": "polite" });
    this.file = make("input", { type: "file", accept: "application/json,.json" });
    this.eraseButton = button("Erase", () => this.askErase(true), "ffn-quiet");
    this.confirm = this.confirmation();
    root.querySelector(".ffn-progress-still")?.replaceWith(this.note);
    root.append(this.cardLine, this.controls(), this.confirm, this.status);
    this.file.addEventListener("change", () => this.takeIn());
    store.onChange(() => this.show());
    this.show();
  }

  controls() {
    const exportButton = button("Export my progress", () => download(this.store.read()));
    const row = [
      exportButton,
      labelled("Import", this.file, "ffn-button ffn-quiet ffn-file"),
      this.eraseButton,
    ];
    return make("div", { class: "ffn-controls" }, ...row);
  }

  confirmation() {
    const yes = button("Yes, erase everything", () => this.erase(), "ffn-danger");
    const no = button("Keep it", () => this.askErase(false), "ffn-quiet");
    const question = "Erase all answers and flashcards in this browser? This cannot be undone.";
    return make(
      "div",
      { class: "ffn-confirm", role: "group", "aria-label": question, hidden: true },
      question,
      yes,
      no,
    );
  }

  show() {
    const state = this.store.read();
    for (const cell of /** @type {NodeListOf<HTMLElement>} */ (this.root.querySelectorAll("[data-keys]"))) {
      cell.textContent = tally(keysOf(cell.dataset.keys ?? ""), state);
    }
    const known = this.cards.filter((key) => state.cards[key]?.box > 0).length;
    this.cardLine.textContent = this.cards.length
      ? `Flashcards: ${known} of ${this.cards.length} known.`
      : "";
    this.note.textContent = this.store.kept ? (this.store.setAside ? SET_ASIDE : "") : NOT_KEPT;
    this.note.hidden = !this.note.textContent;
  }

  async takeIn() {
    const [file] = this.file.files ?? [];
    if (!file) return;
    this.status.textContent = await this.importFrom(file);
    // Choosing the same file again must count as a change.
    this.file.value = "";
  }

  /** @param {File} file */
  async importFrom(file) {
    try {
      if (file.size > 4 * LONGEST) throw new Error(`it is longer than ${LONGEST / 1000} kB`);
      const theirs = parse(await file.text());
      const before = this.store.read();
      this.store.update((state) => merge(state, theirs, Date.now()));
      return `${file.name}: ${taken(before, this.store.read())} were taken in; where both had one, the later.`;
    } catch (error) {
      return `${file.name} was not imported, because ${error instanceof Error ? error.message : error}.`;
    }
  }

  /** @param {boolean} asking */
  askErase(asking) {
    this.confirm.hidden = !asking;
    if (asking) this.confirm.querySelector("button")?.focus();
    else this.eraseButton.focus();
  }

  erase() {
    this.store.erase();
    this.askErase(false);
    this.status.textContent = "Everything was erased.";
  }
}

/**
 * @param {HTMLElement} root
 * @param {Store} store
 */
export function enhance(root, store) {
  return new Progress(root, store);
}
