/** Boxes whose content scrolls sideways can be reached and scrolled by keyboard, for as long as they do scroll. */

/** @param {HTMLElement} box */
function update(box) {
  const scrolls = box.scrollWidth > box.clientWidth + 1;
  if (scrolls === box.hasAttribute("tabindex")) return;
  if (scrolls) {
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", box.querySelector("caption")?.textContent || "scrolls sideways");
  } else {
    for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
  }
}

/** @param {HTMLElement} box */
export function enhance(box) {
  const observer = new ResizeObserver(() => update(box));
  // The box changes with the window, what is in it with its numbers.
  for (const watched of [box, box.firstElementChild]) if (watched) observer.observe(watched);
}
