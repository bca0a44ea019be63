/** Small helpers to make elements and to write numbers. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {Element} node
 * @param {Record<string, unknown>} attributes false, null and undefined leave the attribute out, true makes it empty
 * @param {(Node | string)[]} children
 */
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, String(value));
  }
  node.append(...children);
}

/**
 * An HTML element with attributes and children.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, unknown>} [attributes]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  fill(node, attributes, children);
  return node;
}

/**
 * An SVG element with attributes and children.
 * @param {string} tag
 * @param {Record<string, unknown>} [attributes]
 * @param {...(Node | string)} children
 */
export function draw(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  fill(node, attributes, children);
  return node;
}

/**
 * A button that does something and submits nothing.
 * @param {string} text
 * @param {() => void} action
 * @param {string} [more] further classes
 */
export function button(text, action, more = "") {
  const node = make("button", { type: "button", class: `ffn-button ${more}`.trim() }, text);
  node.addEventListener("click", action);
  return node;
}

/**
 * A label that holds its text and its control.
 * @param {string | Node} text
 * @param {HTMLElement} control
 * @param {string} [className]
 */
export function labelled(text, control, className = "ffn-field") {
  return make("label", { class: className }, make("span", {}, text), control);
}

/**
 * A fieldset of radio buttons, one for each choice.
 * @param {string} legend
 * @param {string} name
 * @param {Record<string, string>} choices value to label
 * @param {(value: string) => void} chosen
 */
export function radios(legend, name, choices, chosen) {
  const inputs = Object.entries(choices).map(([value, text]) => {
    const input = make("input", { type: "radio", name, value });
    input.addEventListener("change", () => chosen(value));
    return make("label", { class: "ffn-option" }, input, make("span", {}, text));
  });
  return make("fieldset", { class: "ffn-options" }, make("legend", {}, legend), ...inputs);
}

/**
 * Choose the radio button with this value.
 * @param {Element} group
 * @param {string} value
 */
export function choose(group, value) {
  for (const input of group.querySelectorAll("input")) input.checked = input.value === value;
}

/**
 * A number with at most so many significant digits, as JavaScript writes numbers, without a negative zero.
 * @param {number} value
 * @param {number} [digits]
 */
export function short(value, digits = 10) {
  return String(Number(value.toPrecision(digits)) + 0);
}

/**
 * A whole number with its thousands apart.
 * @param {number} value
 */
export function grouped(value) {
  return value.toLocaleString("en-US", { maximumFractionDigits: 0 });
}

/**
 * A shown number that keeps all its digits in its `value`.
 * @param {number} value
 * @param {string} [text]
 */
export function figure(value, text = short(value)) {
  return make("data", { value: String(value) }, text);
}
