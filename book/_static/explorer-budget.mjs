/** The memory budget: widths and layers to parameters, parameters to bytes. */

import data from "./ffn-data.mjs";
import { Address } from "./address.mjs";
import { choose, figure, grouped, labelled, make, radios, short } from "./dom.mjs";
import { memoryBudget, modelParameters } from "./ffn.mjs";

/**
 * @typedef {{name: string, label: string, group: string, most: number, least?: number, only?: "plain" | "gated"}} NumberField
 * @typedef {Record<string, number | boolean>} Setting
 */

const BYTES = { 4: "4 (32 bits)", 2: "2 (16 bits)", 1: "1 (8 bits)", 0.5: "½ (4 bits)" };

/** @type {NumberField[]} */
const NUMBERS = [
  { name: "d_model", label: "d_model", group: "Model", least: 1, most: 1e5 },
  { name: "d_ff", label: "d_ff", group: "Model", least: 1, most: 1e6 },
  { name: "layers", label: "layers", group: "Model", least: 1, most: 1e4 },
  { name: "vocabulary", label: "vocabulary", group: "Model", least: 0, most: 1e7 },
  { name: "positions", label: "positions", group: "Model", least: 0, most: 1e7, only: "plain" },
  { name: "d_kv", label: "d_kv (keys, values)", group: "Model", least: 1, most: 1e5 },
  { name: "tokens", label: "tokens kept", group: "KV cache", least: 0, most: 1e8 },
  { name: "sequences", label: "sequences at once", group: "KV cache", least: 0, most: 1e6 },
  { name: "optimizer_states", label: "states (Adam: 2)", group: "Training", least: 0, most: 8 },
];
/** @type {Record<string, {label: string, group: string, choices: Record<string, string>}>} */
const CHOICES = {
  weight_bytes: { label: "bytes per weight", group: "Weights", choices: BYTES },
  cache_bytes: { label: "bytes per number", group: "KV cache", choices: BYTES },
  optimizer_bytes: { label: "bytes per number", group: "Training", choices: BYTES },
  master_bytes: { label: "master copy, bytes", group: "Training", choices: { 0: "none", ...BYTES } },
};
/** @type {Record<string, {label: string, only: "plain" | "gated"}>} */
const SWITCHES = {
  biases: { label: "biases in attention and feed-forward block", only: "plain" },
  tied: { label: "output shares the input's embedding", only: "gated" },
};
/** @type {Setting} what `ffn.ledger.BudgetInput` takes where nothing is said */
const USUAL = {
  positions: 0,
  tied: false,
  tokens: 0,
  sequences: 1,
  cache_bytes: 2,
  optimizer_states: 0,
  optimizer_bytes: 4,
  master_bytes: 0,
};
/** @type {Record<string, string>} */
const PARTS = { weights: "weights", kv_cache: "KV cache", optimizer: "optimizer", master: "master copy" };
const GROUPS = ["Model", "Weights", "KV cache", "Training"];
const OWN = "own";

/** A preset as a full setting. @param {Record<string, any>} budget @returns {Setting} */
function fullSetting(budget) {
  const setting = { ...USUAL };
  for (const [name, value] of Object.entries(budget))
    if (name !== "id" && name !== "name" && value !== null) setting[name] = value;
  // Without grouped queries keys and values have the model's width.
  setting.d_kv ??= setting.d_model;
  return setting;
}

class BudgetExplorer {
  /** @param {HTMLElement} root */
  constructor(root) {
    /** @type {Setting} */
    this.setting = {};
    this.presets = this.presetSelect();
    this.kinds = radios(
      "Block",
      "ffn-budget-kind",
      { plain: "plain (BERT-style encoder)", gated: "gated (LLaMA-style decoder)" },
      (kind) => this.change({ gated: kind === "gated" }),
    );
    /** @type {Record<string, HTMLInputElement | HTMLSelectElement>} */
    this.controls = {};
    this.message = make("p", { class: "ffn-message", role: "alert", hidden: true });
    this.summary = make("p", { class: "ffn-equation", role: "status", "aria-live": "polite" });
    this.bar = make("div", { class: "ffn-bar", role: "img" });
    this.counts = make("tbody");
    this.sizes = make("tbody");
    this.address = new Address(() => this.fromAddress());
    root.replaceChildren(...this.layout());
    this.fromAddress();
  }

  presetSelect() {
    const options = [...data.budgets.map(({ id, name }) => [id, name]), [OWN, "my own"]];
    const node = make("select", {}, ...options.map(([value, text]) => make("option", { value }, text)));
    node.addEventListener("change", () => this.preset(node.value));
    return node;
  }

  layout() {
    const groups = GROUPS.map((group) => this.group(group));
    const top = make("div", { class: "ffn-row" }, labelled("begin with", this.presets), this.kinds);
    const sizes = scrolling("Bytes", ["part", "bytes", "MiB", "GiB", "share"], this.sizes);
    const counts = scrolling("Parameters", ["part", "parameters", "share"], this.counts);
    return [top, ...groups, this.message, this.summary, this.bar, sizes, counts];
  }

  /** @param {string} group */
  group(group) {
    const numbers = NUMBERS.filter((field) => field.group === group).map((field) =>
      this.numberControl(field),
    );
    const choices = Object.entries(CHOICES)
      .filter(([, choice]) => choice.group === group)
      .map(([name, { label, choices }]) => this.choiceControl(name, label, choices));
    const switches = group === "Model" ? Object.keys(SWITCHES).map((name) => this.switchControl(name)) : [];
    return make(
      "fieldset",
      { class: "ffn-group" },
      make("legend", {}, group),
      ...numbers,
      ...choices,
      ...switches,
    );
  }

  /** @param {NumberField} field */
  numberControl({ name, label, least = 0, most }) {
    const input = make("input", {
      type: "number",
      class: "ffn-number",
      min: least,
      max: most,
      step: 1,
      name,
      inputmode: "numeric",
    });
    input.addEventListener("input", () =>
      this.change({ [name]: input.value.trim() === "" ? Number.NaN : Number(input.value) }),
    );
    this.controls[name] = input;
    return labelled(label, input);
  }

  /** @param {string} name @param {string} label @param {Record<string, string>} choices */
  choiceControl(name, label, choices) {
    const order = Object.entries(choices).sort(([a], [b]) => Number(b) - Number(a));
    const node = make("select", { name }, ...order.map(([value, text]) => make("option", { value }, text)));
    node.addEventListener("change", () => this.change({ [name]: Number(node.value) }));
    this.controls[name] = node;
    return labelled(label, node);
  }

  /** @param {string} name */
  switchControl(name) {
    const box = make("input", { type: "checkbox", name });
    box.addEventListener("change", () => this.change({ [name]: box.checked }));
    this.controls[name] = box;
    return make("label", { class: "ffn-option" }, box, make("span", {}, SWITCHES[name].label));
  }

  /** @param {string} id */
  preset(id) {
    const budget = data.budgets.find((each) => each.id === id);
    if (budget) this.setting = fullSetting(budget);
    this.fillControls();
    this.presets.value = budget ? id : OWN;
    this.show();
    this.save();
  }

  /** @param {Setting} changes */
  change(changes) {
    // Where queries are not grouped, keys and values stay as wide as the model.
    const ungrouped = Object.is(this.setting.d_kv, this.setting.d_model);
    Object.assign(this.setting, changes);
    if (ungrouped && "d_model" in changes) {
      this.setting.d_kv = changes.d_model;
      this.controls.d_kv.value = this.controls.d_model.value;
    }
    this.presets.value = OWN;
    this.fit();
    this.show();
    this.save();
  }

  fromAddress() {
    const given = this.address.read();
    const start = data.budgets.find(({ id }) => id === given.get("preset"));
    this.setting = fullSetting(start ?? data.budgets[0]);
    const own = given.get("preset") === OWN;
    if (own) this.readSetting(given);
    this.fillControls();
    this.presets.value = own ? OWN : (start ?? data.budgets[0]).id;
    this.show();
  }

  /** @param {URLSearchParams} given */
  readSetting(given) {
    for (const name of Object.keys(this.setting)) {
      const text = given.get(name);
      if (text === null) continue;
      this.setting[name] = typeof this.setting[name] === "boolean" ? text === "true" : Number(text);
    }
  }

  save() {
    const preset = this.presets.value;
    const own = Object.fromEntries(
      Object.entries(this.setting).map(([name, value]) => [name, String(value)]),
    );
    this.address.write(preset === OWN ? { preset, ...own } : { preset });
  }

  fillControls() {
    choose(this.kinds, this.setting.gated ? "gated" : "plain");
    for (const [name, control] of Object.entries(this.controls)) {
      const value = this.setting[name];
      if (control.type === "checkbox") /** @type {HTMLInputElement} */ (control).checked = value === true;
      else control.value = String(value);
    }
    this.fit();
  }

  /** Show the controls that this kind of block has. */
  fit() {
    const kind = this.setting.gated ? "gated" : "plain";
    const some = [
      ...NUMBERS.map(({ name, only }) => ({ name, only })),
      ...Object.entries(SWITCHES).map(([name, { only }]) => ({ name, only })),
    ];
    for (const { name, only } of some) {
      const label = this.controls[name].closest("label");
      if (label) label.hidden = only !== undefined && only !== kind;
    }
  }

  /** What is wrong with the setting, in words, or "". */
  fault() {
    let found = "";
    for (const { name, label, least = 0, most } of NUMBERS) {
      const value = this.setting[name];
      const shown = !this.controls[name].closest("[hidden]");
      const bad = shown && (!Number.isInteger(value) || Number(value) < least || Number(value) > most);
      this.controls[name].setAttribute("aria-invalid", String(bad));
      if (bad)
        found ||= `${label}: a whole number from ${grouped(least)} to ${grouped(most)} is needed. The figures below still show the last setting.`;
    }
    for (const name of Object.keys(CHOICES)) {
      if (!Object.hasOwn(CHOICES[name].choices, String(this.setting[name])))
        found ||= `${CHOICES[name].label}: choose one of the sizes.`;
    }
    return found;
  }

  show() {
    const fault = this.fault();
    this.message.textContent = fault;
    this.message.hidden = !fault;
    if (fault) return;
    const setting = /** @type {any} */ (this.setting);
    const counts = modelParameters(setting);
    const budget = memoryBudget({ ...setting, parameters: counts.whole });
    this.showCounts(counts);
    this.showSizes(budget);
    this.showBar(budget);
    this.summary.textContent = `${grouped(counts.whole)} parameters, ${percent(counts.blocks, counts.whole)} of them in feed-forward blocks; ${short(budget.total / data.gibibyte, 4)} GiB.`;
  }

  /** @param {ReturnType<typeof modelParameters>} counts */
  showCounts(counts) {
    const part = (/** @type {keyof typeof counts} */ key, /** @type {string} */ label) =>
      make(
        "tr",
        { "data-part": key },
        make("th", { scope: "row" }, label),
        make("td", {}, figure(counts[key], grouped(counts[key]))),
        make("td", {}, percent(counts[key], counts.whole)),
      );
    this.counts.replaceChildren(
      part("block", "one feed-forward block"),
      part("attention", "one attention block"),
      part("blocks", "all feed-forward blocks"),
      part("attentions", "all attention blocks"),
      part("embeddings", "embeddings"),
      part("norms", "normalizations"),
      ...(counts.pooler ? [part("pooler", "pooler")] : []),
      part("whole", "whole model"),
    );
  }

  /** @param {ReturnType<typeof memoryBudget>} budget */
  showSizes(budget) {
    const rows = Object.entries({ ...PARTS, total: "total" }).map(([key, label]) => {
      const bytes = budget[/** @type {keyof typeof budget} */ (key)];
      const heading = make(
        "th",
        { scope: "row" },
        ...(key in PARTS
          ? [make("span", { class: `ffn-key ffn-bar-${key}`, "aria-hidden": "true" }), " "]
          : []),
        label,
      );
      const cells = [
        figure(bytes, grouped(bytes)),
        figure(bytes / data.mebibyte, short(bytes / data.mebibyte, 6)),
        figure(bytes / data.gibibyte, short(bytes / data.gibibyte, 6)),
        percent(bytes, budget.total),
      ];
      return make("tr", { "data-part": key }, heading, ...cells.map((cell) => make("td", {}, cell)));
    });
    this.sizes.replaceChildren(...rows);
  }

  /** @param {ReturnType<typeof memoryBudget>} budget */
  showBar(budget) {
    const parts = Object.entries(PARTS)
      .map(([key, label]) => ({ key, label, bytes: budget[/** @type {keyof typeof budget} */ (key)] }))
      .filter(({ bytes }) => bytes > 0);
    this.bar.setAttribute(
      "aria-label",
      `The parts of the total: ${parts.map(({ label, bytes }) => `${label} ${percent(bytes, budget.total)}`).join(", ") || "nothing"}.`,
    );
    this.bar.replaceChildren(
      ...parts.map(({ key, label, bytes }) => {
        const part = make("span", { class: `ffn-bar-${key}`, title: label }, make("span", {}, label));
        part.style.flexGrow = String(bytes / budget.total);
        return part;
      }),
    );
  }
}

/** @param {number} part @param {number} whole */
function percent(part, whole) {
  const share = whole ? (100 * part) / whole : 0;
  return share > 0 && share < 0.05 ? "under 0.1 %" : `${share.toFixed(1)} %`;
}

/** A table in a box of its own that scrolls. @param {string} caption @param {string[]} headers @param {HTMLElement} body */
function scrolling(caption, headers, body) {
  const head = make("tr", {}, ...headers.map((text) => make("th", { scope: "col" }, text)));
  const table = make(
    "table",
    { class: "table" },
    make("caption", {}, caption),
    make("thead", {}, head),
    body,
  );
  return make("div", { class: "ffn-table", tabindex: 0, role: "group", "aria-label": caption }, table);
}

/** @param {HTMLElement} root */
export function enhance(root) {
  return new BudgetExplorer(root);
}
