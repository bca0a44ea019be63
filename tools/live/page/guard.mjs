/**
 * Runs on JupyterLite's page before the notebook shows: an old copy in the storage would hide a new version of the
 * exercise, so the exercise's own page takes over, keeps the copy under another name, and says so.
 */

import { isOfAnotherVersion, lockName, stored, units } from "./storage.mjs";

const path = new URLSearchParams(window.location.search).get("path") ?? "";

/** Held for as long as the page is open. */
function sayThatItIsOpen() {
  void navigator.locks?.request(lockName(path), { mode: "shared" }, () => new Promise(() => {}));
}

/** @returns {Promise<string | null>} the unit whose stored copy is of another version */
async function outdated() {
  for (const [name, unit] of Object.entries(await units())) {
    if (unit.path !== path) continue;
    const entry = await stored(path);
    if (entry && isOfAnotherVersion(entry, unit)) return name;
  }
  return null;
}

try {
  const name = await outdated();
  if (name) window.location.replace(new URL(`exercise.html?unit=${encodeURIComponent(name)}`, import.meta.url));
  else sayThatItIsOpen();
} catch {
  // Without the list or the storage there is nothing to compare; JupyterLite says itself what it lacks.
  sayThatItIsOpen();
}
