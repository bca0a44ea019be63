/**
 * Forecasts and questions: the reader chooses or types, commits, and then sees the answer.
 *
 * The page's plain HTML (question, list of choices, disclosure with the answer) becomes a form. What the reader
 * committed to is marked in words, and comes back after a reload.
 */

import { button, labelled, make } from "./dom.mjs";
import { LONGEST_ANSWER } from "./store.mjs";

/** @typedef {import("./store.mjs").Store} Store @typedef {import("./store.mjs").Answer} Answer */

/** @type {Record<string, {commit: string, yours: string, typed: string}>} */
const WORDS = {
  forecast: { commit: "Commit to this forecast", yours: "your forecast", typed: "Your forecast" },
  question: { commit: "Check", yours: "your choice", typed: "Your answer" },
};
const NOT_KEPT = " This browser keeps nothing: the answer lasts until you leave the page.";

/**
 * Wrap the choices in labels with radio buttons; a choice's value is the hash of its wording.
 * @param {HTMLElement} section
 */
function choiceControls(section) {
  const title = /** @type {HTMLElement} */ (section.querySelector(".ffn-asked-title"));
  const list = /** @type {HTMLElement} */ (section.querySelector(".ffn-choices"));
  const legend = make("legend", { class: title.className, id: title.id }, ...title.childNodes);
  for (const item of /** @type {NodeListOf<HTMLElement>} */ (list.querySelectorAll(".ffn-choice"))) {
    const input = make("input", { type: "radio", name: section.id, value: item.dataset.choice });
    item.append(make("label", {}, input, ...item.childNodes, make("span", { class: "ffn-mark" })));
    nameFormula(item);
  }
  title.remove();
  return make("fieldset", {}, legend, list);
}

/**
 * Name the radio button of a choice that is a formula and nothing else: what is read of a label is its text, and
 * not every reader counts a formula as text.
 * @param {HTMLElement} item
 */
function nameFormula(item) {
  const copy = /** @type {HTMLElement} */ (item.cloneNode(true));
  for (const part of copy.querySelectorAll(".katex-html, annotation")) part.remove();
  const spoken = (copy.textContent ?? "").replace(/\s+/g, " ").trim();
  for (const formula of copy.querySelectorAll(".katex, .ffn-mark")) formula.remove();
  if (!copy.textContent?.trim()) item.querySelector("input")?.setAttribute("aria-label", spoken);
}

/**
 * @param {HTMLElement} section
 * @param {string} label
 */
function typedControls(section, label) {
  const title = /** @type {HTMLElement} */ (section.querySelector(".ffn-asked-title"));
  const input = make("input", {
    type: "text",
    maxlength: LONGEST_ANSWER,
    autocomplete: "off",
    "aria-describedby": title.id,
  });
  return make("div", {}, title, labelled(label, input, "ffn-typed"));
}

class Asked {
  /**
   * @param {HTMLElement} section
   * @param {Store} store
   */
  constructor(section, store) {
    this.section = section;
    this.store = store;
    this.key = section.dataset.key ?? "";
    this.typed = section.dataset.typed === "true";
    this.words = WORDS[section.dataset.kind ?? "question"];
    this.answer = /** @type {HTMLDetailsElement} */ (section.querySelector(".ffn-answer"));
    this.summary = /** @type {HTMLElement} */ (this.answer.querySelector("summary"));
    this.notes = [...section.querySelectorAll(".ffn-asked-notes > *")];
    this.commitButton = make("button", { type: "submit", class: "ffn-button" }, this.words.commit);
    this.againButton = button("Try again", () => this.reset(), "ffn-quiet");
    this.rightButton = button("I was right", () => this.judge(true), "ffn-quiet");
    this.wrongButton = button("I was not", () => this.judge(false), "ffn-quiet");
    this.status = make("p", { class: "ffn-status", role: "status", "aria-live": "polite" });
    this.form = this.build();
    this.restore();
  }

  build() {
    const controls = this.typed
      ? typedControls(this.section, this.words.typed)
      : choiceControls(this.section);
    const row = [this.commitButton, this.rightButton, this.wrongButton, this.againButton, this.status];
    const form = make(
      "form",
      { class: "ffn-asked-form" },
      controls,
      make("div", { class: "ffn-controls" }, ...row),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.commit();
    });
    form.addEventListener("input", () => this.allowCommit());
    this.answer.before(form);
    return form;
  }

  /** @returns {HTMLInputElement[]} */
  inputs() {
    return [...this.form.querySelectorAll("input")];
  }

  /** @returns {HTMLElement[]} the choices */
  items() {
    return [...this.section.querySelectorAll(".ffn-choice")].map((item) => /** @type {HTMLElement} */ (item));
  }

  /** What is chosen or typed now, or "". */
  given() {
    const input = this.inputs().find((each) => this.typed || each.checked);
    return input ? input.value.trim() : "";
  }

  allowCommit() {
    this.commitButton.disabled = this.given() === "";
  }

  commit() {
    const given = this.given();
    if (!given) return;
    const at = Date.now();
    /** @type {Answer} */
    const answer = this.typed
      ? { text: given, right: null, at }
      : { choice: given, right: this.isRight(given), at };
    this.keep(answer);
    this.summary.focus();
  }

  /** @param {boolean} right the reader's own judgement of what was typed */
  judge(right) {
    this.keep({ text: this.given(), right, at: Date.now() });
    this.againButton.focus();
  }

  /** @param {Answer} answer */
  keep(answer) {
    this.store.update((state) => {
      state.answers[this.key] = answer;
    });
    this.show(answer);
  }

  /** @param {string} choice */
  isRight(choice) {
    return this.item(choice)?.dataset.right === "true";
  }

  /** @param {string} choice @returns {HTMLElement | null} */
  item(choice) {
    return this.section.querySelector(`.ffn-choice[data-choice="${CSS.escape(choice)}"]`);
  }

  /** Show what was committed to earlier. A choice that the page no longer offers counts as no answer. */
  restore() {
    const answer = this.store.read().answers[this.key];
    const usable = answer && (this.typed ? answer.text : answer.choice && this.item(answer.choice));
    if (!usable) return this.clear();
    const input = this.inputs().find((each) => this.typed || each.value === answer.choice);
    if (input && this.typed) input.value = answer.text ?? "";
    if (input) input.checked = !this.typed;
    this.show(answer);
  }

  /** @param {Answer} answer */
  show(answer) {
    this.freeze(true);
    this.buttons({ judge: this.typed && answer.right === null });
    if (answer.choice) this.mark(answer.choice);
    const lost = this.store.kept ? "" : NOT_KEPT;
    this.status.textContent = this.verdict(answer) + lost;
    this.summary.textContent = "The answer";
    this.answer.open = true;
  }

  /** @param {Answer} answer */
  verdict({ choice, right }) {
    if (choice) return right ? "✓ Right." : "✗ Not right. The right choice is marked.";
    if (right === null) return "Compare it with the answer. Were you right?";
    return right ? "✓ Right, as you judged." : "✗ Not right, as you judged.";
  }

  /** @param {boolean} frozen */
  freeze(frozen) {
    for (const input of this.inputs()) {
      if (this.typed) input.readOnly = frozen;
      else input.disabled = frozen;
    }
    this.section.dataset.state = frozen ? "committed" : "open";
  }

  /** @param {{judge: boolean}} which */
  buttons({ judge }) {
    const committed = this.section.dataset.state === "committed";
    this.commitButton.hidden = committed;
    this.againButton.hidden = !committed;
    for (const each of [this.rightButton, this.wrongButton]) each.hidden = !judge;
  }

  /** Say at each choice what it was, and put the explanation of the chosen one first. @param {string} chosen */
  mark(chosen) {
    this.items().forEach((item, place) => {
      const [right, mine] = [item.dataset.right === "true", item.dataset.choice === chosen];
      item.classList.toggle("ffn-chosen", mine);
      item.classList.toggle("ffn-is-right", right);
      const mark = /** @type {HTMLElement} */ (item.querySelector(".ffn-mark"));
      mark.textContent = this.markText(right, mine);
      nameFormula(item);
      if (mine) this.explainFirst(place);
    });
  }

  /** @param {boolean} right @param {boolean} mine */
  markText(right, mine) {
    if (right) return mine ? `✓ ${this.words.yours}, right` : "✓ right";
    return mine ? `✗ ${this.words.yours}, not right` : "";
  }

  /** @param {number} place of the chosen choice; its term and its explanation move to the top of the answer */
  explainFirst(place) {
    this.explainInOrder();
    const own = make(
      "dl",
      { class: "ffn-asked-notes ffn-own-note" },
      ...this.notes.slice(2 * place, 2 * place + 2),
    );
    this.answer.querySelector(".ffn-answer-body")?.prepend(own);
  }

  explainInOrder() {
    this.section.querySelector(".ffn-own-note")?.remove();
    this.section.querySelector(".ffn-asked-notes")?.append(...this.notes);
  }

  /** Forget the answer and ask anew. */
  reset() {
    this.store.update((state) => {
      delete state.answers[this.key];
    });
    this.clear();
    this.inputs()[0]?.focus();
  }

  clear() {
    this.form.reset();
    this.freeze(false);
    this.buttons({ judge: false });
    this.explainInOrder();
    for (const item of this.items()) item.classList.remove("ffn-chosen", "ffn-is-right");
    for (const mark of this.section.querySelectorAll(".ffn-mark")) mark.textContent = "";
    for (const item of this.items()) nameFormula(item);
    this.status.textContent = "";
    this.summary.textContent = `Show the answer without ${this.typed ? "typing" : "choosing"}`;
    this.answer.open = false;
    this.allowCommit();
  }
}

/**
 * @param {HTMLElement} section
 * @param {Store} store
 */
export function enhance(section, store) {
  return new Asked(section, store);
}
