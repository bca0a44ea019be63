/** Shows the links that open an exercise in the browser, where the built book has what they lead to. */

import { live } from "./live-config.mjs";

/** @param {HTMLElement} element */
export function enhance(element) {
  element.hidden = live === null;
}
