/** Brings a page to life: each part of it loads the module that it needs, and a page without any loads none. */

import { browserStorage, Store } from "./store.mjs";

/** @type {[string, () => Promise<{enhance: (element: any, store: Store) => unknown}>][]} */
const PARTS = [
  [".ffn-asked", () => import("./asked.mjs")],
  [".ffn-cards", () => import("./cards.mjs")],
  [".ffn-progress", () => import("./progress.mjs")],
  [".ffn-live", () => import("./live.mjs")],
  [".ffn-open-exercise", () => import("./open-exercise.mjs")],
  ['[data-explorer="activations"]', () => import("./explorer-activations.mjs")],
  ['[data-explorer="forward"]', () => import("./explorer-forward.mjs")],
  ['[data-explorer="budget"]', () => import("./explorer-budget.mjs")],
  [".ffn-table, .katex-display, .pst-scrollable-table-container", () => import("./scroll.mjs")],
  // The lists of the sidebar; marked only for a reader who has answered something.
  ["nav.bd-links", () => import("./sidebar.mjs")],
];

/**
 * Load a part's module where the page has such a part, and hand the elements over.
 * @param {string} selector
 * @param {() => Promise<{enhance: (element: any, store: Store) => unknown}>} load
 * @param {Store} store
 */
async function enliven(selector, load, store) {
  const found = document.querySelectorAll(selector);
  if (!found.length) return;
  const { enhance } = await load();
  found.forEach((element) => enhance(element, store));
}

// A module that a script has added does not wait for the rest of the page by itself.
if (document.readyState === "loading") {
  await new Promise((resolve) => document.addEventListener("DOMContentLoaded", resolve, { once: true }));
}
const store = new Store(browserStorage());
window.addEventListener("storage", () => store.tell());
await Promise.all(PARTS.map(([selector, load]) => enliven(selector, load, store)));
// A sign for whoever drives the page from outside that it is ready.
document.documentElement.dataset.course = "ready";
