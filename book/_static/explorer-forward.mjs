/** The forward pass, one entry at a time, on the numbers of a worked cell or on the reader's own. */

import data from "./ffn-data.mjs";
import { Address } from "./address.mjs";
import { button, choose, figure, labelled, make, radios } from "./dom.mjs";
import { ACTIVATIONS, gatedTrace, plainTrace, ShapeError } from "./ffn.mjs";
import { grid, manyLines, oneLine, readRows, sign, symbol, table, writeRows } from "./matrices.mjs";

/**
 * @typedef {import("./ffn.mjs").Vector} Vector
 * @typedef {import("./ffn.mjs").Matrix} Matrix
 * @typedef {{key: string, verb: string, rule: "given" | "product" | "pointwise" | "elementwise", from: string[]}} Stage
 * @typedef {{stage: number, entry: number}} Step
 */

const BLOCKS = { "cell-d": "Cell D", tiny: "the tiny calculation", own: "my own numbers" };
const KINDS = { plain: "plain", gated: "gated" };
/** Largest numbers of rows and columns of each array; vectors have one row. @type {Record<string, [number, number]>} */
const LARGEST = {
  x: [1, 4],
  W_1: [4, 6],
  b_1: [1, 6],
  W_2: [6, 4],
  b_2: [1, 4],
  W_g: [4, 6],
  W_u: [4, 6],
  W_d: [6, 4],
};
/** The longest text that is read from the address, in characters. */
const LONGEST = 1000;
const VECTORS = ["x", "b_1", "b_2"];
/** @type {Record<string, string>} */
const COLOURS = { x: "x", u: "u", u_g: "u", up: "u", gate: "gate", h: "h", y: "y" };

/**
 * @param {string} key the array that the stage makes
 * @param {string} verb
 * @param {Stage["rule"]} rule
 * @param {...string} from the arrays that it is made of
 * @returns {Stage}
 */
function stage(key, verb, rule, ...from) {
  return { key, verb, rule, from };
}

/** What a stage does, in words. @param {Stage} stage @returns {(Node | string)[]} */
function reason({ rule, from }) {
  const [first, second, bias] = from.map((key) => symbol(key));
  if (rule === "given") return ["The block reads one token, a row of numbers."];
  if (rule === "pointwise") return ["Each entry of ", first, " goes through the activation by itself."];
  if (rule === "elementwise") {
    return ["Each entry of ", first, " multiplies the entry of ", second, " in its place."];
  }
  const then = bias ? [", and the entry of ", bias, " is added."] : ["."];
  return [
    "Each entry of ",
    first,
    " meets its row of ",
    second,
    "; the products in one column are summed",
    ...then,
  ];
}

/** @type {Record<string, Stage[]>} */
const STAGES = {
  plain: [
    stage("x", "Input", "given"),
    stage("u", "Expand", "product", "x", "W_1", "b_1"),
    stage("h", "Activate", "pointwise", "u"),
    stage("y", "Project", "product", "h", "W_2", "b_2"),
  ],
  gated: [
    stage("x", "Input", "given"),
    stage("u_g", "Expand for the gate", "product", "x", "W_g"),
    stage("gate", "Activate the gate", "pointwise", "u_g"),
    stage("up", "Expand for the content", "product", "x", "W_u"),
    stage("h", "Gate the content", "elementwise", "gate", "up"),
    stage("y", "Project", "product", "h", "W_d"),
  ],
};

class ForwardExplorer {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.kind = "plain";
    this.block = "cell-d";
    this.activation = "relu";
    this.at = 0;
    /** @type {Record<string, string>} */
    this.texts = {};
    /** @type {Record<string, Vector | Matrix>} the arrays that were read, and every stage */
    this.trace = {};
    this.kinds = radios("Block", "ffn-kind", KINDS, (kind) => this.setKind(kind));
    this.blocks = this.select(BLOCKS, (block) => this.setBlock(block));
    const activations = Object.fromEntries(
      Object.entries(ACTIVATIONS).map(([name, { label }]) => [name, label]),
    );
    this.activations = this.select(activations, (name) => this.set({ activation: name }));
    this.editor = make("details", { class: "ffn-editor" });
    this.message = make("p", { class: "ffn-message", role: "alert" });
    this.stageList = make("ol", { class: "ffn-stages" });
    this.heading = make("p", { class: "ffn-step", role: "status", "aria-live": "polite" });
    this.why = make("p");
    this.picture = make("div", {
      class: "ffn-picture",
      tabindex: 0,
      role: "group",
      "aria-label": "Arrays of this step",
    });
    this.products = make("div", { class: "ffn-table" });
    this.backButton = button("Back", () => this.go(this.at - 1), "ffn-quiet");
    this.nextButton = button("Next", () => this.go(this.at + 1));
    this.numbers = make("div", {
      class: "ffn-table",
      tabindex: 0,
      role: "group",
      "aria-label": "All stages",
    });
    this.view = make("div", {});
    this.address = new Address(() => this.fromAddress());
    root.replaceChildren(...this.layout());
    root.addEventListener("keydown", (event) => this.onKey(event));
    this.fromAddress();
  }

  layout() {
    const choices = make(
      "div",
      { class: "ffn-row" },
      this.kinds,
      labelled("numbers of", this.blocks),
      labelled("activation", this.activations),
    );
    const controls = make("div", { class: "ffn-controls" }, this.backButton, this.nextButton);
    const all = make(
      "details",
      {},
      make("summary", {}, "All stages, with ten significant digits"),
      this.numbers,
    );
    this.view.append(this.stageList, this.heading, controls, this.picture, this.why, this.products, all);
    return [choices, this.editor, this.message, this.view];
  }

  /** @param {Record<string, string>} choices @param {(value: string) => void} chosen */
  select(choices, chosen) {
    const options = Object.entries(choices).map(([value, text]) => make("option", { value }, text));
    const node = make("select", {}, ...options);
    node.addEventListener("change", () => chosen(node.value));
    return node;
  }

  /** Names of the arrays that the reader gives. */
  given() {
    return this.kind === "plain" ? ["x", "W_1", "b_1", "W_2", "b_2"] : ["x", "W_g", "W_u", "W_d"];
  }

  stages() {
    return STAGES[this.kind];
  }

  /** Every step in order: the input as a whole, then each entry of each later stage. @returns {Step[]} */
  steps() {
    const later = this.stages().flatMap(({ key }, stage) =>
      stage ? /** @type {Vector} */ (this.trace[key]).map((_, entry) => ({ stage, entry })) : [],
    );
    return [{ stage: 0, entry: -1 }, ...later];
  }

  /** @param {string} kind */
  setKind(kind) {
    // Each kind begins with its usual activation.
    this.set({ kind, activation: kind === "gated" ? data.gates.SwiGLU : "relu" });
  }

  /** @param {string} block */
  setBlock(block) {
    if (block in data.blocks) this.loadBlock(block);
    this.set({ block });
    if (block === "own") this.editor.open = true;
  }

  /** @param {string} block */
  loadBlock(block) {
    const arrays = /** @type {Record<string, Record<string, Vector | Matrix>>} */ (data.blocks)[block];
    for (const [name, array] of Object.entries(arrays)) this.texts[name] = writeRows(array);
  }

  /** Change the setting, and begin at the input again. @param {{kind?: string, block?: string, activation?: string}} changes */
  set(changes) {
    Object.assign(this, changes, { at: 0 });
    this.showEditor();
    this.compute();
    this.save();
  }

  /** @param {number} at */
  go(at) {
    const last = this.steps().length - 1;
    this.at = Math.min(Math.max(at, 0), last);
    this.show();
    this.save();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const typing = /** @type {HTMLElement} */ (event.target).closest("input, textarea, select");
    const steps = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (typing || !steps || event.altKey || event.ctrlKey || event.metaKey || this.view.hidden) return;
    event.preventDefault();
    this.go(this.at + steps);
  }

  fromAddress() {
    const given = this.address.read();
    const [kind, block, activation] = ["kind", "block", "f"].map((name) => given.get(name) ?? "");
    if (Object.hasOwn(KINDS, kind)) this.kind = kind;
    if (Object.hasOwn(BLOCKS, block)) this.block = block;
    if (Object.hasOwn(ACTIVATIONS, activation)) this.activation = activation;
    this.loadBlock(this.block in data.blocks ? this.block : "cell-d");
    if (this.block === "own") {
      for (const name of this.given()) {
        this.texts[name] = manyLines((given.get(name) ?? this.texts[name]).slice(0, LONGEST));
      }
    }
    this.at = Math.max(Math.trunc(Number(given.get("step"))) || 0, 0);
    this.showEditor();
    this.compute();
  }

  save() {
    /** @type {Record<string, string>} */
    const setting = { block: this.block, kind: this.kind, f: this.activation, step: String(this.at) };
    if (this.block === "own") {
      for (const name of this.given()) setting[name] = oneLine(this.texts[name]);
    }
    this.address.write(setting);
  }

  showEditor() {
    choose(this.kinds, this.kind);
    this.blocks.value = this.block;
    this.activations.value = this.activation;
    const areas = this.given().map((name) => this.area(name));
    const help = make(
      "p",
      {},
      "One row a line, numbers apart by spaces or commas; at most 4 features and 6 hidden units.",
    );
    this.editor.replaceChildren(
      make("summary", {}, "Change the numbers"),
      help,
      make("div", { class: "ffn-row" }, ...areas),
    );
  }

  /** @param {string} name */
  area(name) {
    const rows = VECTORS.includes(name) ? 1 : Math.max(this.texts[name].split("\n").length, 2);
    const area = make("textarea", {
      rows,
      cols: 14,
      spellcheck: "false",
      autocapitalize: "off",
      "data-array": name,
    });
    area.value = this.texts[name];
    area.addEventListener("input", () => this.edited(name, area.value));
    return labelled(symbol(name), area);
  }

  /** @param {string} name @param {string} text */
  edited(name, text) {
    this.texts[name] = text;
    this.block = this.blocks.value = "own";
    this.at = 0;
    this.compute();
    this.save();
  }

  compute() {
    try {
      /** @type {Record<string, any>} */
      const arrays = {};
      for (const name of this.given()) {
        const rows = readRows(name, this.texts[name], LARGEST[name]);
        arrays[name] = VECTORS.includes(name) ? rows[0] : rows;
      }
      const run = this.kind === "plain" ? plainTrace : gatedTrace;
      this.trace = { ...arrays, ...run(/** @type {any} */ (arrays), this.activation) };
      this.fail("");
      this.at = Math.min(this.at, this.steps().length - 1);
      this.show();
    } catch (error) {
      if (!(error instanceof ShapeError)) throw error;
      this.fail(error.message);
    }
  }

  /** @param {string} message "" where there is nothing wrong */
  fail(message) {
    this.message.textContent = message;
    this.message.hidden = !message;
    this.view.hidden = message !== "";
    if (message) this.editor.open = true;
  }

  show() {
    const steps = this.steps();
    const step = steps[this.at];
    const stage = this.stages()[step.stage];
    this.showStages(step.stage, steps);
    this.heading.replaceChildren(
      `Step ${this.at + 1} of ${steps.length}. ${stage.verb}`,
      ...this.made(stage, step.entry),
    );
    // Not disabled: a button that is would lose the focus, and with it the arrow keys.
    this.backButton.setAttribute("aria-disabled", String(this.at === 0));
    this.nextButton.setAttribute("aria-disabled", String(this.at === steps.length - 1));
    this.picture.replaceChildren(...this.grids(stage, step.entry));
    this.why.replaceChildren(...reason(stage));
    this.products.replaceChildren(...this.productTable(stage, step.entry));
    this.numbers.replaceChildren(this.allStages());
  }

  /** The stages as buttons: each goes to its first entry. @param {number} now @param {Step[]} steps */
  showStages(now, steps) {
    const items = this.stages().map(({ key, verb }, place) => {
      const jump = button("", () => this.go(steps.findIndex(({ stage }) => stage === place)), "ffn-stage");
      jump.append(symbol(key), make("span", { class: "ffn-unseen" }, ` ${verb}`));
      if (place === now) jump.setAttribute("aria-current", "step");
      jump.style.setProperty("--tint", `var(--ffn-${COLOURS[key]})`);
      return make("li", {}, jump);
    });
    const focused = [...this.stageList.querySelectorAll("button")].findIndex(
      (node) => node === document.activeElement,
    );
    this.stageList.replaceChildren(...items);
    if (focused >= 0) items[focused]?.querySelector("button")?.focus();
  }

  /** An array with its marks, in its colour. @param {string} key @param {Parameters<typeof grid>[3]} [marks] */
  grid(key, marks) {
    return grid(key, this.trace[key], COLOURS[key] ?? "weight", marks);
  }

  /** The stage as an equation of arrays. @param {Stage} stage @param {number} entry */
  grids({ rule, from: [first, second, bias], key }, entry) {
    if (rule === "given") return [this.grid(key)];
    const result = this.grid(key, { made: entry, known: entry + 1 });
    const inPlace = { used: (/** @type {number} */ _, /** @type {number} */ j) => j === entry };
    if (rule === "pointwise") return [this.grid(first, inPlace), sign("→"), result];
    if (rule === "elementwise") {
      return [this.grid(first, inPlace), sign("∗"), this.grid(second, inPlace), sign("="), result];
    }
    const row = this.grid(first, { used: () => true });
    const added = bias ? [sign("+"), this.grid(bias, inPlace)] : [];
    return [row, sign("×"), this.grid(second, inPlace), ...added, sign("="), result];
  }

  /** The entry that a step makes. @param {Stage} stage @param {number} entry */
  made({ key }, entry) {
    return entry < 0 ? [] : [": ", symbol(key, entry + 1), " = ", figure(this.vector(key)[entry])];
  }

  /** @param {string} key @returns {Vector} */
  vector(key) {
    return /** @type {Vector} */ (this.trace[key]);
  }

  /** What an entry is made of, a product a line, with bias and sum. @param {Stage} stage @param {number} entry */
  productTable({ rule, from: [first, second, bias], key }, entry) {
    if (rule === "given") return [];
    const [left, result] = [this.vector(first), this.vector(key)[entry]];
    if (rule === "pointwise") {
      const { label } = ACTIVATIONS[this.activation];
      const rows = [
        [symbol(first, entry + 1), left[entry]],
        [named("", key, ` = ${label}`, entry), result],
      ];
      return [table(["", "value"], rows)];
    }
    if (rule === "elementwise") {
      return [
        table(
          [symbol(first), symbol(second), "product"],
          [[left[entry], this.vector(second)[entry], result]],
        ),
      ];
    }
    const column = /** @type {Matrix} */ (this.trace[second]).map((row) => row[entry]);
    const lines = left.map((value, i) => [symbol(first, i + 1), value, column[i], value * column[i]]);
    const added = bias ? [[named("", bias, `, entry ${entry + 1}`), "", "", this.vector(bias)[entry]]] : [];
    const sum = [symbol(key, entry + 1), "", "sum", result];
    const headers = ["", named("entry of ", first), named("weight in ", second), "product"];
    return [table(headers, [...lines, ...added, sum])];
  }

  allStages() {
    const rows = this.stages().map(({ key }) => {
      const cells = /** @type {Vector} */ (this.trace[key]).map((value) => make("td", {}, figure(value)));
      return make("tr", { "data-stage": key }, make("th", { scope: "row" }, symbol(key)), ...cells);
    });
    return make("table", { class: "table" }, make("tbody", {}, ...rows));
  }
}

/**
 * A symbol with words around it.
 * @param {string} before
 * @param {string} key
 * @param {string} [after]
 * @param {number} [entry] counted from 0
 */
function named(before, key, after = "", entry) {
  return make("span", {}, before, symbol(key, entry === undefined ? undefined : entry + 1), after);
}

/** @param {HTMLElement} root */
export function enhance(root) {
  return new ForwardExplorer(root);
}
