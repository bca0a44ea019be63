/** Activations: move z, and see value, slope and gate of each function there. */

import { Address } from "./address.mjs";
import { choose, draw, figure, labelled, make, radios, short } from "./dom.mjs";
import { ACTIVATIONS } from "./ffn.mjs";

/** @typedef {"value" | "slope" | "gate"} View */

const REACH = 5;
const HEIGHT = 340;
const POINTS = 240;
const MARGIN = { left: 34, right: 12, top: 12, bottom: 30 };

/** @type {Record<View, {label: string, low: number, high: number, step: number}>} */
const VIEWS = {
  value: { label: "Value", low: -1.25, high: 5, step: 1 },
  slope: { label: "Slope", low: -0.25, high: 1.25, step: 0.25 },
  gate: { label: "Gate", low: -0.125, high: 1.125, step: 0.25 },
};
/** @type {Record<string, string>} dashes tell the curves apart where colours do not */
const DASHES = {
  relu: "",
  gelu: "9 4",
  gelu_tanh: "2 3",
  silu: "9 3 2 3",
  tanh: "4 4",
  sigmoid: "12 3 2 3 2 3",
};
const NAMES = Object.keys(DASHES);
const AT_FIRST = ["relu", "gelu", "silu", "tanh"];

/** @param {string} name */
function colour(name) {
  return `var(--ffn-${name.replace("_", "-")})`;
}

/** A stroke as it is drawn in the picture, for the legend. @param {string} name */
function swatch(name) {
  const line = draw("line", {
    x1: 1,
    y1: 5,
    x2: 33,
    y2: 5,
    stroke: colour(name),
    "stroke-dasharray": DASHES[name],
  });
  return draw(
    "svg",
    { class: "ffn-swatch", viewBox: "0 0 34 10", width: 34, height: 10, "aria-hidden": "true" },
    line,
  );
}

class Plot {
  /** @param {(z: number) => void} moved */
  constructor(moved) {
    this.svg = /** @type {SVGSVGElement} */ (draw("svg", { role: "img", class: "ffn-plot", height: HEIGHT }));
    this.width = 560;
    const follow = (/** @type {PointerEvent} */ event) => {
      const left = this.svg.getBoundingClientRect().left;
      const z = (event.clientX - left - MARGIN.left) / this.inner() - 0.5;
      moved(Math.min(Math.max(Math.round(z * 2 * REACH * 100) / 100, -REACH), REACH));
    };
    this.svg.addEventListener("pointerdown", (event) => {
      this.svg.setPointerCapture(event.pointerId);
      follow(event);
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (this.svg.hasPointerCapture(event.pointerId)) follow(event);
    });
  }

  inner() {
    return this.width - MARGIN.left - MARGIN.right;
  }

  /** @param {number} z */
  x(z) {
    return MARGIN.left + ((z + REACH) / (2 * REACH)) * this.inner();
  }

  /** @param {number} value @param {View} view */
  y(value, view) {
    const { low, high } = VIEWS[view];
    return MARGIN.top + ((high - value) / (high - low)) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  }

  /** @param {View} view @param {string[]} names @param {number} z */
  show(view, names, z) {
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${HEIGHT}`);
    this.svg.setAttribute("aria-label", this.description(view, names, z));
    const inside = Math.abs(z) <= REACH;
    const marks = inside
      ? [this.line(z, view, "ffn-plot-mark"), ...names.map((name) => this.dot(name, view, z))]
      : [];
    this.svg.replaceChildren(...this.axes(view), ...names.map((name) => this.curve(name, view)), ...marks);
  }

  /** @param {View} view @param {string[]} names @param {number} z */
  description(view, names, z) {
    const which = names.map((name) => ACTIVATIONS[name].label).join(", ") || "no function";
    return `${VIEWS[view].label} over z from -${REACH} to ${REACH}: ${which}. A line marks z = ${short(z)}.`;
  }

  /** @param {View} view */
  axes(view) {
    const { low, high, step } = VIEWS[view];
    const parts = [this.line(0, view, "ffn-plot-axis")];
    for (let value = Math.ceil(low / step) * step; value <= high; value += step) {
      const y = this.y(value, view);
      const className = value === 0 ? "ffn-plot-axis" : "ffn-plot-grid";
      parts.push(
        draw("line", { class: className, x1: MARGIN.left, x2: this.width - MARGIN.right, y1: y, y2: y }),
      );
      parts.push(draw("text", { x: MARGIN.left - 6, y: y + 4, "text-anchor": "end" }, short(value, 3)));
    }
    for (let z = 1 - REACH; z < REACH; z += 2) {
      parts.push(
        draw("text", { x: this.x(z), y: HEIGHT - 10, "text-anchor": "middle" }, z ? short(z) : "z = 0"),
      );
    }
    return parts;
  }

  /** @param {number} z @param {View} view @param {string} className */
  line(z, view, className) {
    const { low, high } = VIEWS[view];
    return draw("line", {
      class: className,
      x1: this.x(z),
      x2: this.x(z),
      y1: this.y(high, view),
      y2: this.y(low, view),
    });
  }

  /** @param {string} name @param {View} view */
  curve(name, view) {
    const of = ACTIVATIONS[name][view];
    if (!of) return "";
    const points = Array.from({ length: POINTS + 1 }, (_, i) => (2 * i * REACH) / POINTS - REACH);
    const path = points.map((z) => `${this.x(z).toFixed(1)},${this.y(of(z), view).toFixed(1)}`).join(" ");
    return draw("polyline", { points: path, stroke: colour(name), "stroke-dasharray": DASHES[name] });
  }

  /** @param {string} name @param {View} view @param {number} z */
  dot(name, view, z) {
    const of = ACTIVATIONS[name][view];
    return of ? draw("circle", { cx: this.x(z), cy: this.y(of(z), view), r: 4.5, fill: colour(name) }) : "";
  }
}

class ActivationsExplorer {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.z = -0.5;
    /** @type {View} */
    this.view = "value";
    this.shown = new Set(AT_FIRST);
    this.plot = new Plot((z) => this.move(z));
    this.slider = make("input", { type: "range", min: -REACH, max: REACH, step: 0.01 });
    this.number = make("input", { type: "number", step: "any", class: "ffn-number" });
    this.views = radios("Show", "ffn-view", viewLabels(), (view) => this.look(/** @type {View} */ (view)));
    this.curves = this.curveBoxes();
    this.body = make("tbody");
    this.sentences = make("ul", { class: "ffn-sentences" });
    this.address = new Address(() => this.fromAddress());
    this.listen();
    root.replaceChildren(...this.layout());
    new ResizeObserver(([entry]) => this.resize(entry.contentRect.width)).observe(
      /** @type {Element} */ (this.plot.svg.parentElement),
    );
    this.fromAddress();
  }

  layout() {
    const move = make(
      "div",
      { class: "ffn-row" },
      labelled("z", this.slider, "ffn-field ffn-wide"),
      labelled("z as a number", this.number),
    );
    const head = ["function", "value", "slope", "gate"].map((text) => make("th", { scope: "col" }, text));
    const caption = make("caption", {}, "At this z, with ten significant digits");
    const table = make(
      "table",
      { class: "table" },
      caption,
      make("thead", {}, make("tr", {}, ...head)),
      this.body,
    );
    const scroll = make(
      "div",
      { class: "ffn-table", tabindex: 0, role: "group", "aria-label": "Numbers at this z" },
      table,
    );
    return [this.views, move, make("div", {}, this.plot.svg), this.curves, this.sentences, scroll];
  }

  curveBoxes() {
    const boxes = NAMES.map((name) => {
      const box = make("input", { type: "checkbox", value: name });
      box.addEventListener("change", () => this.toggle(name, box.checked));
      return make(
        "label",
        { class: "ffn-option" },
        box,
        swatch(name),
        make("span", {}, ACTIVATIONS[name].label),
      );
    });
    return make("fieldset", { class: "ffn-options" }, make("legend", {}, "Curves"), ...boxes);
  }

  listen() {
    this.slider.addEventListener("input", () => this.move(Number(this.slider.value)));
    this.number.addEventListener("input", () => {
      const z = this.number.valueAsNumber;
      if (Number.isFinite(z)) this.move(z, this.number);
    });
  }

  /** @param {number} width */
  resize(width) {
    if (!width || width === this.plot.width) return;
    this.plot.width = width;
    this.show();
  }

  /** @param {number} z @param {HTMLElement} [typedIn] the control that the reader is writing in, left as it is */
  move(z, typedIn) {
    this.z = z;
    this.changed(typedIn);
  }

  /** @param {View} view */
  look(view) {
    this.view = view;
    this.changed();
  }

  /** @param {string} name @param {boolean} on */
  toggle(name, on) {
    if (on) this.shown.add(name);
    else this.shown.delete(name);
    this.changed();
  }

  /** @param {HTMLElement} [typedIn] */
  changed(typedIn) {
    this.show(typedIn);
    this.address.write({ z: String(this.z), view: this.view, curves: this.drawn().join(",") });
  }

  fromAddress() {
    const given = this.address.read();
    const z = Number.parseFloat(given.get("z") ?? "");
    if (Number.isFinite(z)) this.z = z;
    const view = given.get("view") ?? "";
    if (Object.hasOwn(VIEWS, view)) this.view = /** @type {View} */ (view);
    const curves = given.get("curves");
    if (curves !== null) this.shown = new Set(curves.split(",").filter((name) => NAMES.includes(name)));
    this.show();
  }

  /** The functions whose curves are shown, always in the same order. */
  drawn() {
    return NAMES.filter((name) => this.shown.has(name));
  }

  /** @param {HTMLElement} [typedIn] */
  show(typedIn) {
    this.slider.value = String(this.z);
    if (typedIn !== this.number) this.number.value = short(this.z);
    choose(this.views, this.view);
    for (const box of this.curves.querySelectorAll("input")) box.checked = this.shown.has(box.value);
    this.plot.show(this.view, this.drawn(), this.z);
    this.body.replaceChildren(...NAMES.map((name) => this.row(name)));
    const said = this.view === "gate" ? this.drawn().filter((name) => ACTIVATIONS[name].gate) : [];
    this.sentences.replaceChildren(...said.map((name) => this.sentence(name)));
    this.sentences.hidden = !said.length;
  }

  /** @param {string} name */
  row(name) {
    const { label, value, slope, gate } = ACTIVATIONS[name];
    const cells = [value, slope, gate].map((of) => make("td", {}, of ? figure(of(this.z)) : "none"));
    const heading = make("th", { scope: "row", style: `--tint: ${colour(name)}` }, label);
    return make("tr", { "data-name": name }, heading, ...cells);
  }

  /** "SiLU(z) = z × sigmoid(z) = -0.5 × 0.3775 = -0.1888" @param {string} name */
  sentence(name) {
    const { label, value, gate, gateLabel } = ACTIVATIONS[name];
    const fraction = gate ? short(gate(this.z), 6) : "";
    const numbers = `${short(this.z, 6)} × ${fraction} = ${short(value(this.z), 6)}`;
    return make(
      "li",
      {},
      make("strong", { style: `color: ${colour(name)}` }, label),
      `: z × ${gateLabel} = ${numbers}`,
    );
  }
}

function viewLabels() {
  return Object.fromEntries(Object.entries(VIEWS).map(([view, { label }]) => [view, label]));
}

/** @param {HTMLElement} root */
export function enhance(root) {
  return new ActivationsExplorer(root);
}
