/** A mark in the sidebar at every page whose forecasts and questions are all answered. */

import { make } from "./dom.mjs";

/** @typedef {import("./store.mjs").Store} Store */

const ROOT = new URL("../", import.meta.url);

/** @returns {Promise<Record<string, string[]>>} which hashes each page asks; none where the list cannot be had */
async function loadQuestions() {
  try {
    return await (await fetch(new URL("_static/questions.json", ROOT))).json();
  } catch {
    return {};
  }
}

/**
 * The page that a link of the sidebar leads to, as its name in the keys.
 * @param {HTMLAnchorElement} link
 */
function pageOf(link) {
  return link.href.startsWith(ROOT.href) ? link.href.slice(ROOT.href.length).replace(/\.html.*$/, "") : "";
}

/**
 * @param {HTMLAnchorElement} link
 * @param {boolean} done
 */
function mark(link, done) {
  const present = link.querySelector(".ffn-done");
  if (done === (present !== null)) return;
  if (present) return present.remove();
  const words = make("span", { class: "ffn-unseen" }, " (all answered)");
  link.append(make("span", { class: "ffn-done" }, make("span", { "aria-hidden": "true" }, " ✓"), words));
}

/**
 * @param {HTMLElement} nav
 * @param {Store} store
 */
export function enhance(nav, store) {
  /** @type {ReturnType<typeof loadQuestions> | undefined} asked for once, and only when something is answered */
  let questions;
  const update = async () => {
    const { answers } = store.read();
    if (!questions && !Object.keys(answers).length) return;
    const asked = await (questions ??= loadQuestions());
    for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (
      nav.querySelectorAll("a.reference.internal")
    )) {
      const page = pageOf(link);
      mark(link, Object.hasOwn(asked, page) && asked[page].every((hash) => `${page}#${hash}` in answers));
    }
  };
  store.onChange(update);
  update();
}
