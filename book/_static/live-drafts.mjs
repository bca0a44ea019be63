/**
 * Code that a reader has typed on a page, kept in the browser under one key a page. Nothing of it leaves the machine.
 *
 * A cell is known by a hash of the book's own code in it, so that a cell that changes in a later version of the book
 * is another one. What was typed into the earlier one stays here, and can be read and dropped.
 *
 * @typedef {{text: string, at: number}} Draft `at` in milliseconds since 1970
 * @typedef {{version: 1, cells: Record<string, Draft>}} Drafted
 */

const KEY = "ffn-course-live:";
/** What stood under a page's key and could not be read; kept, so that nothing is lost. */
const SET_ASIDE = "ffn-course-live-set-aside:";
/** The longest text of a page that is read, in characters. */
const LONGEST = 500_000;

/** @param {unknown} value @returns {value is Drafted} */
function isDrafted(value) {
  const record = /** @type {any} */ (value);
  const isDraft = (/** @type {any} */ draft) =>
    typeof draft?.text === "string" && Number.isFinite(draft.at) && draft.at >= 0;
  return record?.version === 1 && Object.values(record.cells ?? null).every(isDraft);
}

/**
 * A short hash of a text (FNV-1a), in hexadecimal.
 * @param {string} text
 */
function shortHash(text) {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, "0");
}

/**
 * The names under which the cells of a page are kept; cells with the same code are told apart by their order.
 * @param {string[]} sources
 */
export function cellKeys(sources) {
  /** @type {Record<string, number>} */
  const seen = {};
  return sources.map((source) => {
    const hash = shortHash(source);
    seen[hash] = (seen[hash] ?? 0) + 1;
    return seen[hash] === 1 ? hash : `${hash}-${seen[hash]}`;
  });
}

export class Drafts {
  /**
   * @param {Storage | null} storage null where the browser lets the page keep nothing
   * @param {string} page
   */
  constructor(storage, page) {
    this.storage = storage;
    this.key = KEY + page;
    this.aside = SET_ASIDE + page;
    /** Whether what is typed outlasts the page. */
    this.kept = storage !== null;
    /** @type {Record<string, Draft>} used where the storage is not */
    this.memory = {};
  }

  /** @returns {Record<string, Draft>} by cell; read anew each time, as another open page may have written */
  read() {
    const text = this.attempt((storage) => storage.getItem(this.key));
    if (!this.kept) return this.memory;
    if (typeof text !== "string") return {};
    try {
      const value = text.length <= LONGEST && JSON.parse(text);
      if (isDrafted(value)) return value.cells;
    } catch {
      // It is set aside below.
    }
    this.attempt((storage) => {
      storage.setItem(this.aside, text);
      storage.removeItem(this.key);
    });
    return {};
  }

  /**
   * @param {string} cell
   * @param {string | null} text null where the cell has the book's own code again
   */
  write(cell, text) {
    const cells = this.read();
    if (text === null) delete cells[cell];
    else cells[cell] = { text, at: Date.now() };
    this.memory = cells;
    this.attempt((storage) => {
      if (Object.keys(cells).length) storage.setItem(this.key, JSON.stringify({ version: 1, cells }));
      else storage.removeItem(this.key);
    });
  }

  /**
   * Use the storage; where it refuses (blocked, or full), go on in memory.
   * @template T
   * @param {(storage: Storage) => T} use
   */
  attempt(use) {
    if (!this.kept) return null;
    try {
      return this.storage && use(this.storage);
    } catch {
      this.kept = false;
      return null;
    }
  }
}
