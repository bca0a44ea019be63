/** Small arrays on a page: read from text, written as text, and drawn as tables of numbers. */

import { figure, make, short } from "./dom.mjs";
import { ShapeError } from "./ffn.mjs";

/** @typedef {import("./ffn.mjs").Vector} Vector @typedef {import("./ffn.mjs").Matrix} Matrix */

/** @param {Vector | Matrix} array @returns {Matrix} a vector as a matrix of one row */
function rowsOf(array) {
  return Array.isArray(array[0]) ? /** @type {Matrix} */ (array) : [/** @type {Vector} */ (array)];
}

/**
 * Read rows of numbers: a row a line (or between semicolons), numbers between spaces or commas.
 * @param {string} name
 * @param {string} text
 * @param {[number, number]} room the largest numbers of rows and columns
 * @returns {Matrix}
 * @throws {ShapeError} with a message in words
 */
export function readRows(name, text, [most, widest]) {
  const words = text
    .trim()
    .split(/\s*[;\n]\s*/)
    .map((row) => row.split(/[\s,]+/).filter(Boolean));
  words.forEach((row, i) => requireRow(name, row, i, words[0].length));
  if (words.length > most || words[0].length > widest) {
    const size = `${words.length} × ${words[0].length}`;
    throw new ShapeError(`${name} is ${size}; there is room for ${most} × ${widest}.`);
  }
  return words.map((row) => row.map(Number));
}

/** @param {string} name @param {string[]} row @param {number} i @param {number} width of the first row */
function requireRow(name, row, i, width) {
  const odd = row.find((word) => !Number.isFinite(Number(word)));
  const here = `${name}, row ${i + 1}`;
  if (odd !== undefined) throw new ShapeError(`${here}: “${odd.slice(0, 20)}” is not a number.`);
  if (!row.length) throw new ShapeError(`${here} is empty.`);
  if (row.length !== width) {
    throw new ShapeError(
      `${name}: row 1 has ${width} numbers and row ${i + 1} has ${row.length}; make them equal.`,
    );
  }
}

/** Rows as lines of text, for a text area. @param {Vector | Matrix} array */
export function writeRows(array) {
  return rowsOf(array)
    .map((row) => row.join(" "))
    .join("\n");
}

/** Lines of numbers on one line: "1 0\n0 1" as "1,0;0,1". @param {string} text */
export function oneLine(text) {
  return text
    .trim()
    .replace(/\s*\n\s*/g, ";")
    .replace(/[ \t,]+/g, ",");
}

/** The other way round. @param {string} text */
export function manyLines(text) {
  return text.replaceAll(";", "\n").replaceAll(",", " ");
}

/** A symbol with its index below: W_1 as W with 1. @param {string} key @param {number} [index] */
export function symbol(key, index) {
  const [letter, below] = key.split("_");
  const sub = [below, index].filter((part) => part !== undefined).join(", ");
  return make("span", { class: "ffn-symbol" }, make("i", {}, letter), ...(sub ? [make("sub", {}, sub)] : []));
}

/** @param {string} text */
export function sign(text) {
  return make("span", { class: "ffn-sign" }, text);
}

/**
 * An array as a small table with its symbol and its shape.
 * @param {string} key
 * @param {Vector | Matrix} array
 * @param {string} colour name of the quantity whose colour it has
 * @param {{used?: (row: number, column: number) => boolean, made?: number, known?: number}} [marks]
 *   cells that take part, the cell that is made, and how many are known so far
 */
export function grid(key, array, colour, { used = () => false, made = -1, known = Infinity } = {}) {
  const rows = rowsOf(array);
  const cell = (/** @type {number} */ value, /** @type {number} */ i, /** @type {number} */ j) => {
    if (j >= known) return later();
    const className = j === made ? "ffn-made" : used(i, j) ? "ffn-used" : null;
    return make("td", { class: className }, figure(value, short(value, 4)));
  };
  const body = rows.map((row, i) => make("tr", {}, ...row.map((value, j) => cell(value, i, j))));
  const caption = make("caption", {}, symbol(key), ` ${rows.length} × ${rows[0].length}`);
  const attributes = { class: "ffn-matrix", style: `--tint: var(--ffn-${colour})`, "data-array": key };
  return make("table", attributes, caption, make("tbody", {}, ...body));
}

/** The cell of an entry that a later step makes. */
function later() {
  const words = make("span", { class: "ffn-unseen" }, "not yet");
  return make("td", { class: "ffn-later" }, words, make("span", { "aria-hidden": "true" }, "·"));
}

/**
 * A table whose rows are named by their first cell, where that is no number.
 * @param {(Node | string)[]} headers
 * @param {(Node | string | number)[][]} rows
 */
export function table(headers, rows) {
  const head = headers.map((text) => (text ? make("th", { scope: "col" }, text) : make("td")));
  const cell = (/** @type {Node | string | number} */ content, /** @type {number} */ j) => {
    if (typeof content === "number") return make("td", {}, figure(content));
    return j ? make("td", {}, content) : make("th", { scope: "row" }, content);
  };
  const body = rows.map((row) => make("tr", {}, ...row.map(cell)));
  return make(
    "table",
    { class: "table" },
    make("thead", {}, make("tr", {}, ...head)),
    make("tbody", {}, ...body),
  );
}
