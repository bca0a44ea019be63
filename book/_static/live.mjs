/**
 * The button that makes a lesson's code run in place. What it needs is loaded when it is pressed.
 *
 * The extension `live` of the book lays the button into the pages that have code; it stays out of sight until this
 * module knows that the book was built with the part that runs in the browser.
 */

import { live } from "./live-config.mjs";
import { browserStorage } from "./store.mjs";
import { Drafts } from "./live-drafts.mjs";

const KEPT = " Code that you typed here earlier is kept, and comes back.";

/** @param {HTMLElement} box */
export function enhance(box) {
  if (!live) return box.remove();
  const addresses = live;
  const start = /** @type {HTMLButtonElement} */ (box.querySelector("#live-run"));
  const words = /** @type {HTMLElement} */ (box.querySelector(".ffn-live-words"));
  const drafts = new Drafts(browserStorage(), box.dataset.page ?? "");
  if (Object.keys(drafts.read()).length) words.textContent += KEPT;
  box.dataset.state = "offered";
  start.addEventListener("click", async () => {
    if (start.getAttribute("aria-disabled") === "true") return;
    start.setAttribute("aria-disabled", "true");
    try {
      const { begin } = await import("./live-page.mjs");
      await begin(box, addresses, drafts);
    } catch {
      words.textContent = "The editor could not be loaded. Look at the connection, and press the button again.";
      start.removeAttribute("aria-disabled");
    }
  });
}
