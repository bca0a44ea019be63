/**
 * The notebooks that JupyterLite keeps in this browser, read and moved from outside of it.
 *
 * JupyterLite stores what a learner has changed in IndexedDB: one entry a file, by its path, which hides the file of the
 * site. Every change here is one transaction, so that a copy is never in two places or in none.
 *
 * @typedef {{source: string | string[], [key: string]: unknown}} Cell
 * @typedef {{cells: Cell[], metadata: Record<string, any>, nbformat: number, nbformat_minor: number}} Notebook
 * @typedef {{name: string, path: string, last_modified: string, content: Notebook, [key: string]: unknown}} Entry
 * @typedef {{title: string, version: string, path: string}} Unit
 */

const FILES = "files";
/** Moved together with a file: what "Revert to checkpoint" brings back. */
const CHECKPOINTS = "checkpoints";

/** The name that JupyterLite gives its storage: by the address of its folder, so that two sites have two. */
export function storageName(site = new URL("lite/", import.meta.url)) {
  return `JupyterLite Storage - ${site.pathname}`;
}

/**
 * The storage, or null where there is none yet; it is not made by looking.
 * @param {string} name
 * @returns {Promise<IDBDatabase | null>}
 */
function open(name) {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(name);
    let absent = false;
    request.onupgradeneeded = () => {
      absent = true;
      request.transaction?.abort();
    };
    request.onsuccess = () => resolve(request.result);
    request.onerror = (event) => {
      event.preventDefault();
      if (absent) resolve(null);
      else reject(request.error);
    };
  });
}

/** @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
function answer(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/**
 * Work on the stored files; `nothing` where nothing is stored. The storage is closed again, so that it is in nobody's way.
 * @template T
 * @param {IDBTransactionMode} mode
 * @param {T} nothing
 * @param {(stores: {files: IDBObjectStore, checkpoints: IDBObjectStore | null}) => Promise<T>} work
 * @returns {Promise<T>}
 */
async function within(mode, nothing, work) {
  const storage = await open(storageName());
  if (!storage) return nothing;
  try {
    const names = [FILES, CHECKPOINTS].filter((name) => storage.objectStoreNames.contains(name));
    if (!names.includes(FILES)) return nothing;
    const transaction = storage.transaction(names, mode);
    const done = new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error);
    });
    const checkpoints = names.includes(CHECKPOINTS) ? transaction.objectStore(CHECKPOINTS) : null;
    const result = await work({ files: transaction.objectStore(FILES), checkpoints });
    await done;
    return result;
  } finally {
    storage.close();
  }
}

/** @param {unknown} entry @returns {entry is Entry} */
function isNotebook(entry) {
  const content = /** @type {any} */ (entry)?.content;
  return Array.isArray(content?.cells) && typeof content?.metadata === "object";
}

/**
 * What is stored under a path, or null.
 * @param {string} path
 * @returns {Promise<Entry | null>}
 */
export async function stored(path) {
  const entry = await within("readonly", null, ({ files }) => answer(files.get(path)));
  return isNotebook(entry) ? entry : null;
}

/**
 * The kept copies of a unit, the latest first.
 * @param {Unit} unit
 * @returns {Promise<Entry[]>}
 */
export async function keptCopies(unit) {
  const folder = unit.path.slice(0, unit.path.lastIndexOf("/") + 1);
  const range = IDBKeyRange.bound(folder, `${folder}\uffff`);
  const found = await within("readonly", [], ({ files }) => answer(files.getAll(range)));
  const copies = found.filter((entry) => isNotebook(entry) && entry.path !== unit.path);
  return copies.sort((a, b) => b.last_modified.localeCompare(a.last_modified));
}

/**
 * The day of a stored copy in the reader's own time, as 2026-11-30.
 * @param {Entry} entry
 */
export function dayOf(entry) {
  const time = new Date(entry.last_modified);
  const valid = Number.isNaN(time.getTime()) ? new Date() : time;
  const two = (/** @type {number} */ number) => String(number).padStart(2, "0");
  return `${valid.getFullYear()}-${two(valid.getMonth() + 1)}-${two(valid.getDate())}`;
}

/**
 * Move a stored copy to a name with its day, so that the exercise of the site is seen again; null where none is stored.
 * @param {string} path
 * @returns {Promise<Entry | null>}
 */
export function setAside(path) {
  return within("readwrite", null, async ({ files, checkpoints }) => {
    const entry = await answer(files.get(path));
    if (entry === undefined) return null;
    const taken = new Set(await answer(files.getAllKeys()));
    const stem = `${path.replace(/\.ipynb$/, "")}-${dayOf(entry)}`;
    let target = `${stem}.ipynb`;
    for (let number = 2; taken.has(target); number += 1) target = `${stem}-${number}.ipynb`;
    const moved = { ...entry, path: target, name: target.slice(target.lastIndexOf("/") + 1) };
    files.put(moved, target);
    files.delete(path);
    if (checkpoints) {
      const checkpoint = await answer(checkpoints.get(path));
      if (checkpoint !== undefined) checkpoints.put(checkpoint, target);
      checkpoints.delete(path);
    }
    return moved;
  });
}

/**
 * Whether a stored copy was begun from another version of the exercise than the site has now.
 * @param {Entry} entry
 * @param {Unit} unit
 */
export function isOfAnotherVersion(entry, unit) {
  return entry.content.metadata.exercise?.version !== unit.version;
}

/** @param {Notebook} notebook */
function sources(notebook) {
  return notebook.cells.map((cell) => [cell.source].flat().join(""));
}

/**
 * Whether the cells say the same; outputs and numbers of runs do not count.
 * @param {Notebook} one
 * @param {Notebook} other
 */
export function saysTheSame(one, other) {
  return JSON.stringify(sources(one)) === JSON.stringify(sources(other));
}

/**
 * The text of a stored notebook as a file that any Jupyter opens: with the name that Python's kernel has there.
 * @param {Notebook} notebook
 */
export function asFile(notebook) {
  const metadata = {
    ...notebook.metadata,
    kernelspec: { display_name: "Python 3", language: "python", name: "python3" },
    language_info: { name: "python" },
  };
  return `${JSON.stringify({ ...notebook, metadata }, null, 1)}\n`;
}

/**
 * The units that the site has, by name.
 * @returns {Promise<Record<string, Unit>>}
 */
export async function units() {
  const answered = await fetch(new URL("exercises.json", import.meta.url), { cache: "no-cache" });
  if (!answered.ok) throw new Error(`the list of exercises was not found (${answered.status})`);
  return answered.json();
}

/** The name under which an open notebook tells other pages that it is open. */
export function lockName(/** @type {string} */ path) {
  return `${storageName()} ${path}`;
}
