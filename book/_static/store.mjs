/**
 * What the reader has answered, kept in the browser under one key. Nothing of it leaves the machine.
 *
 * @typedef {{choice?: string, text?: string, right: boolean | null, at: number}} Answer
 *   `choice` is the hash of the chosen wording, `text` a typed answer; `right` is null until the reader has judged it.
 * @typedef {{box: number, due: number, at: number}} Card times in milliseconds since 1970
 * @typedef {{version: 1, answers: Record<string, Answer>, cards: Record<string, Card>}} State
 */

export const KEY = "ffn-course";
/** What stood under KEY and could not be read; kept, so that nothing is lost. */
export const SET_ASIDE = "ffn-course-set-aside";
/** The longest text that is read, in characters: thousands of answers. */
export const LONGEST = 1_000_000;
export const LONGEST_ANSWER = 500;

const PAGE_AND_HASH = /^[\w./-]{1,200}#[0-9a-f]{8}$/;
const BOXES = 5;

/** @returns {State} */
export function nothing() {
  return { version: 1, answers: {}, cards: {} };
}

/** @param {unknown} value @returns {value is Record<string, unknown>} */
function isRecord(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @param {unknown} value */
function isTime(value) {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

/** @param {unknown} value @param {number} longest */
function isText(value, longest) {
  return value === undefined || (typeof value === "string" && value.length <= longest);
}

/** @param {unknown} value */
function isAnswer(value) {
  return (
    isRecord(value) &&
    isText(value.choice, 8) &&
    isText(value.text, LONGEST_ANSWER) &&
    (value.choice === undefined) !== (value.text === undefined) &&
    [true, false, null].includes(/** @type {any} */ (value.right)) &&
    isTime(value.at)
  );
}

/** @param {unknown} value */
function isCard(value) {
  return (
    isRecord(value) &&
    Number.isInteger(value.box) &&
    Number(value.box) >= 0 &&
    Number(value.box) < BOXES &&
    isTime(value.due) &&
    isTime(value.at)
  );
}

/**
 * @param {unknown} entries
 * @param {(value: unknown) => boolean} isValid
 * @param {string} what
 */
function requireEntries(entries, isValid, what) {
  if (!isRecord(entries)) throw new Error(`it has no list of ${what}`);
  for (const [key, value] of Object.entries(entries)) {
    if (!PAGE_AND_HASH.test(key)) throw new Error(`“${key.slice(0, 60)}” names no question of a page`);
    if (!isValid(value))
      throw new Error(`its entry for “${key.slice(0, 60)}” is not one that this page writes`);
  }
}

/**
 * Read a state from text, whether it was stored or imported.
 * @param {string} text
 * @returns {State}
 * @throws {Error} with the reason in words, to follow "because"
 */
export function parse(text) {
  if (text.length > LONGEST) throw new Error(`it is longer than ${LONGEST / 1000} kB`);
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error("it is not JSON");
  }
  if (!isRecord(value) || value.version !== 1)
    throw new Error("it is not progress of this course, version 1");
  requireEntries(value.answers, isAnswer, "answers");
  requireEntries(value.cards, isCard, "cards");
  return /** @type {State} */ ({ version: 1, answers: value.answers, cards: value.cards });
}

/**
 * Entries of both; where both have one, the later. A time in the future counts as now, or it would win for ever.
 * @template {{at: number}} T
 * @param {Record<string, T>} mine
 * @param {Record<string, T>} theirs
 * @param {number} now
 */
function later(mine, theirs, now) {
  const merged = { ...mine };
  for (const [key, entry] of Object.entries(theirs)) {
    const read = { ...entry, at: Math.min(entry.at, now) };
    if (!(key in merged) || merged[key].at < read.at) merged[key] = read;
  }
  return merged;
}

/**
 * @param {State} mine
 * @param {State} theirs
 * @param {number} now
 * @returns {State}
 */
export function merge(mine, theirs, now) {
  return {
    version: 1,
    answers: later(mine.answers, theirs.answers, now),
    cards: later(mine.cards, theirs.cards, now),
  };
}

/** The browser's storage, or null where it is switched off: then even looking at it throws. */
export function browserStorage() {
  try {
    return window.localStorage;
  } catch {
    return null;
  }
}

/** Reads before every write, so that two open pages do not undo each other's work. */
export class Store {
  /** @param {Storage | null} storage */
  constructor(storage) {
    this.storage = storage;
    /** Whether what is answered outlasts the page. */
    this.kept = storage !== null;
    /** Whether something unreadable was found and set aside. */
    this.setAside = false;
    /** @type {State} used where the storage is not */
    this.memory = nothing();
    /** @type {(() => void)[]} */
    this.listeners = [];
  }

  /** @returns {State} */
  read() {
    const text = this.kept ? this.attempt((storage) => storage.getItem(KEY)) : null;
    if (!this.kept) return this.memory;
    if (typeof text !== "string") return nothing();
    try {
      return parse(text);
    } catch {
      this.putAside(text);
      return nothing();
    }
  }

  /** @param {(state: State) => State | void} change may change the state it is given, or give another */
  update(change) {
    const before = this.read();
    const state = change(before) ?? before;
    this.memory = state;
    if (this.kept) this.attempt((storage) => storage.setItem(KEY, JSON.stringify(state)));
    this.tell();
  }

  erase() {
    this.memory = nothing();
    for (const key of [KEY, SET_ASIDE]) this.attempt((storage) => storage.removeItem(key));
    this.setAside = false;
    this.tell();
  }

  /** @param {() => void} listener called after every change, also one made on another open page */
  onChange(listener) {
    this.listeners.push(listener);
  }

  tell() {
    for (const listener of this.listeners) listener();
  }

  /** @param {string} text */
  putAside(text) {
    this.setAside = true;
    this.attempt((storage) => {
      storage.setItem(SET_ASIDE, text.slice(0, LONGEST));
      storage.removeItem(KEY);
    });
  }

  /**
   * Use the storage; where it refuses (blocked, or full), go on in memory.
   * @template T
   * @param {(storage: Storage) => T} use
   */
  attempt(use) {
    try {
      return this.storage && use(this.storage);
    } catch {
      this.kept = false;
      return null;
    }
  }
}
