/**
 * Flashcards: one card at a time, the next one due first.
 *
 * A card that was known waits longer each time, one that was not comes back after the others. Turning a card is
 * opening its disclosure element, so a click, Space and Enter turn it without any code here.
 */

import { button, make } from "./dom.mjs";

/** @typedef {import("./store.mjs").Store} Store */

const DAY = 24 * 60 * 60 * 1000;
/** Days until a card is due again, by how often in a row it was known. */
const WAITS = [0, 1, 3, 7, 21];

class Deck {
  /**
   * @param {HTMLElement} section
   * @param {Store} store
   */
  constructor(section, store) {
    this.store = store;
    this.section = section;
    this.cards = /** @type {HTMLDetailsElement[]} */ ([...section.querySelectorAll("details.ffn-card")]);
    /** @type {HTMLDetailsElement | null} */
    this.current = null;
    /** Whether cards that are not due are shown as well. */
    this.ahead = false;
    this.knewButton = button("I knew it", () => this.rate(true));
    this.notYetButton = button("Not yet", () => this.rate(false), "ffn-quiet");
    this.aheadButton = button("Practise all the same", () => this.goAhead(), "ffn-quiet");
    this.listButton = button(
      "Show all as a list",
      () => this.list(!this.section.classList.contains("ffn-list")),
      "ffn-quiet",
    );
    this.status = make("p", { class: "ffn-status", role: "status", "aria-live": "polite" });
    const row = [this.knewButton, this.notYetButton, this.aheadButton, this.listButton, this.status];
    section.append(make("div", { class: "ffn-controls" }, ...row));
    for (const card of this.cards) card.addEventListener("toggle", () => this.offerRating());
    this.list(false);
  }

  /** @param {HTMLDetailsElement} card */
  record(card) {
    return this.store.read().cards[card.dataset.key ?? ""] ?? { box: 0, due: 0, at: 0 };
  }

  /** Cards in the order in which they are due; those that are due together keep their order on the page. */
  order() {
    const due = new Map(this.cards.map((card) => [card, this.record(card).due]));
    return [...this.cards].sort((a, b) => Number(due.get(a)) - Number(due.get(b)));
  }

  /** @param {number} now */
  due(now) {
    return this.order().filter((card) => this.record(card).due <= now);
  }

  next() {
    const due = this.due(Date.now());
    this.turnTo(this.ahead ? this.order()[0] : (due[0] ?? null));
    this.status.textContent = this.standing(due.length);
  }

  /** @param {number} due */
  standing(due) {
    const all = this.cards.length;
    const lost = this.store.kept
      ? ""
      : " This browser keeps nothing: the cards start anew when you leave the page.";
    if (due || this.ahead) return `${due} of ${all} cards to go.${lost}`;
    const next = new Date(Math.min(...this.cards.map((card) => this.record(card).due)));
    return `All ${all} cards are known for now. The next is due on ${next.toLocaleDateString("en-GB")}.${lost}`;
  }

  /** @param {HTMLDetailsElement | null} card */
  turnTo(card) {
    this.current = card;
    for (const each of this.cards) {
      each.classList.toggle("ffn-away", each !== card);
      each.open = false;
    }
    this.offerRating();
  }

  offerRating() {
    const rating = this.current !== null && this.current.open;
    this.knewButton.hidden = this.notYetButton.hidden = !rating;
    this.aheadButton.hidden = this.current !== null || this.section.classList.contains("ffn-list");
  }

  /** @param {boolean} knew */
  rate(knew) {
    if (!this.current) return;
    const [now, key, { box }] = [Date.now(), this.current.dataset.key ?? "", this.record(this.current)];
    const next = knew ? Math.min(box + 1, WAITS.length - 1) : 0;
    this.store.update((state) => {
      state.cards[key] = { box: next, due: now + WAITS[next] * DAY, at: now };
    });
    this.next();
    this.focus();
  }

  goAhead() {
    this.ahead = true;
    this.next();
    this.focus();
  }

  focus() {
    const target = this.current ? this.current.querySelector("summary") : this.aheadButton;
    target?.focus();
  }

  /** @param {boolean} all show every card with its back, or one at a time */
  list(all) {
    this.section.classList.toggle("ffn-list", all);
    this.listButton.textContent = all ? "One card at a time" : "Show all as a list";
    if (!all) return this.next();
    this.turnTo(null);
    for (const card of this.cards) {
      card.classList.remove("ffn-away");
      card.open = true;
    }
    this.status.textContent = "";
  }
}

/**
 * @param {HTMLElement} section
 * @param {Store} store
 */
export function enhance(section, store) {
  return new Deck(section, store);
}
