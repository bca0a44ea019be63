/**
 * The helper module's arithmetic for the explorers: the same formulas in the same order as `ffn`, so that a page and
 * a lesson show the same digits. A test compares them. Vectors are rows.
 *
 * @typedef {number[]} Vector
 * @typedef {number[][]} Matrix
 * @typedef {(z: number) => number} Scalar
 */

import data from "./ffn-data.mjs";

const { coefficients, far } = data.normalTail;
const { scale, cubic } = data.geluTanh;

/** @param {number} value @param {number} low @param {number} high */
const clip = (value, low, high) => Math.min(Math.max(value, low), high);

// The normal distribution

/** Probability that a standard normal variable exceeds d, for d from 0 to `far`. @param {number} d */
function tail(d) {
  const t = 4 / (4 + d);
  const fit = coefficients.reduce((total, c) => total * t + c, 0);
  return Math.exp(d * d * -0.5) * t * fit;
}

/** Phi(z). @param {number} z */
export function normalCdf(z) {
  const beyond = tail(Math.min(Math.abs(z), far));
  return z < 0 ? beyond : 1 - beyond;
}

/** phi(z). @param {number} z */
export function normalPdf(z) {
  const near = Math.min(Math.abs(z), far);
  return Math.exp(near * near * -0.5) * (1 / Math.sqrt(2 * Math.PI));
}

// Activations and their derivatives

/** @param {number} z */
export function sigmoid(z) {
  return Math.exp(Math.min(z, 0)) / (1 + Math.exp(-Math.abs(z)));
}

/** @param {number} z */
function sigmoidGrad(z) {
  const small = Math.exp(-Math.abs(z));
  return small / (1 + small) ** 2;
}

/** @param {number} z */
function silu(z) {
  return Math.max(z, data.lowest) * sigmoid(z);
}

/** @param {number} z */
function siluGrad(z) {
  return sigmoid(z) + clip(z, data.lowest, -data.lowest) * sigmoidGrad(z);
}

/** @param {number} z */
function gelu(z) {
  const distance = Math.min(Math.abs(z), far);
  return Math.max(z, 0) - distance * tail(distance);
}

/** @param {number} z */
function geluGrad(z) {
  return normalCdf(z) + clip(z, -far, far) * normalPdf(z);
}

/** Twice the argument of tanh in GELU's tanh form: its sigmoid is the gate. @param {number} z */
function geluTanhDoubled(z) {
  const near = clip(z, data.lowest, -data.lowest);
  return 2 * scale * (near + cubic * near ** 3);
}

/** @param {number} z */
function geluTanh(z) {
  return Math.max(z, data.lowest) * sigmoid(geluTanhDoubled(z));
}

/** @param {number} z */
function geluTanhGrad(z) {
  const near = clip(z, data.lowest, -data.lowest);
  const doubled = geluTanhDoubled(z);
  const slope = 2 * scale * (1 + 3 * cubic * near * near);
  return sigmoid(doubled) + near * slope * sigmoidGrad(doubled);
}

/** @param {number} z */
function tanhGrad(z) {
  const small = Math.exp(-Math.abs(z)) ** 2;
  return (4 * small) / (1 + small) ** 2;
}

/**
 * Every activation by the name that `ffn` gives it. `gate` is the fraction of z that passes, where there is one.
 * @type {Record<string, {label: string, value: Scalar, slope: Scalar, gate?: Scalar, gateLabel?: string}>}
 */
export const ACTIVATIONS = {
  relu: {
    label: "ReLU",
    value: (z) => Math.max(z, 0),
    slope: (z) => (z > 0 ? 1 : 0),
    gate: (z) => (z > 0 ? 1 : 0),
    gateLabel: "(1 if z > 0, else 0)",
  },
  gelu: { label: "GELU", value: gelu, slope: geluGrad, gate: normalCdf, gateLabel: "Φ(z)" },
  gelu_tanh: {
    label: "GELU (tanh)",
    value: geluTanh,
    slope: geluTanhGrad,
    gate: (z) => sigmoid(geluTanhDoubled(z)),
    gateLabel: "(1 + tanh(…)) / 2",
  },
  silu: { label: "SiLU", value: silu, slope: siluGrad, gate: sigmoid, gateLabel: "sigmoid(z)" },
  tanh: { label: "tanh", value: Math.tanh, slope: tanhGrad },
  sigmoid: { label: "sigmoid", value: sigmoid, slope: sigmoidGrad },
  identity: { label: "identity", value: (z) => z, slope: () => 1 },
};

// Blocks

/** Two arrays whose shapes do not fit each other; the message is the one of `ffn`. */
export class ShapeError extends Error {}

/** @param {Vector | Matrix} array @returns {number[]} */
export function shape(array) {
  return Array.isArray(array[0]) ? [array.length, array[0].length] : [array.length];
}

/** A shape as Python writes it: (3,) or (2, 3). @param {number[]} sizes */
function written(sizes) {
  return sizes.length === 1 ? `(${sizes[0]},)` : `(${sizes.join(", ")})`;
}

/**
 * @param {string} first @param {Vector | Matrix} firstArray
 * @param {string} second @param {Matrix} secondArray
 * @param {string} expected
 */
function mismatch(first, firstArray, second, secondArray, expected) {
  const have = `${first} has shape ${written(shape(firstArray))} and ${second} has shape ${written(shape(secondArray))}`;
  return new ShapeError(`${have}; expected ${expected}.`);
}

/** @param {string} firstName @param {Matrix} first @param {string} name @param {Matrix} matrix @param {number[]} wanted */
function requireMatrix(firstName, first, name, matrix, wanted) {
  if (written(shape(matrix)) === written(wanted)) return;
  throw mismatch(firstName, first, name, matrix, `${name} of shape ${written(wanted)}`);
}

/** @param {string} name @param {Vector} vector @param {string} matrixName @param {Matrix} matrix */
function requireVector(name, vector, matrixName, matrix) {
  const wanted = [matrix[0].length];
  if (vector.length === wanted[0]) return;
  throw mismatch(name, vector, matrixName, matrix, `${name} of shape ${written(wanted)}`);
}

/** @param {Vector} x @param {string} name @param {Matrix} W */
function requireWidth(x, name, W) {
  if (x.length === W.length) return;
  throw mismatch("x", x, name, W, `x of shape (..., ${W.length})`);
}

/**
 * x W + b
 * @param {Vector} x @param {Matrix} W @param {Vector | null} [b]
 * @returns {Vector}
 */
export function affine(x, W, b = null) {
  return W[0].map((_, j) => x.reduce((sum, x_i, i) => sum + x_i * W[i][j], 0) + (b ? b[j] : 0));
}

/**
 * Every stage of a plain block's forward pass.
 * @param {{x: Vector, W_1: Matrix, b_1: Vector, W_2: Matrix, b_2: Vector}} given
 * @param {string} activation
 */
export function plainTrace({ x, W_1, b_1, W_2, b_2 }, activation) {
  const [d, m] = shape(W_1);
  requireMatrix("W_1", W_1, "W_2", W_2, [m, d]);
  requireVector("b_1", b_1, "W_1", W_1);
  requireVector("b_2", b_2, "W_2", W_2);
  requireWidth(x, "W_1", W_1);
  const u = affine(x, W_1, b_1);
  const h = u.map(ACTIVATIONS[activation].value);
  return { x, u, h, y: affine(h, W_2, b_2) };
}

/**
 * Every stage of a gated block's forward pass.
 * @param {{x: Vector, W_g: Matrix, W_u: Matrix, W_d: Matrix}} given
 * @param {string} activation
 */
export function gatedTrace({ x, W_g, W_u, W_d }, activation) {
  const [d, m] = shape(W_g);
  requireMatrix("W_g", W_g, "W_u", W_u, [d, m]);
  requireMatrix("W_g", W_g, "W_d", W_d, [m, d]);
  requireWidth(x, "W_g", W_g);
  const u_g = affine(x, W_g);
  const gate = u_g.map(ACTIVATIONS[activation].value);
  const up = affine(x, W_u);
  const h = gate.map((g, j) => g * up[j]);
  return { x, u_g, gate, up, h, y: affine(h, W_d) };
}

// The ledger

/** @param {number} d @param {number} m @param {boolean} biases */
export function plainParameters(d, m, biases) {
  return 2 * d * m + (biases ? m + d : 0);
}

/** @param {number} d @param {number} m */
export function gatedParameters(d, m) {
  return 3 * d * m;
}

/** @param {number} d @param {boolean} biases @param {number} kv width of keys and values over all heads */
export function attentionParameters(d, biases, kv) {
  return 2 * d * d + 2 * d * kv + (biases ? 2 * d + 2 * kv : 0);
}

/**
 * @typedef {{d_model: number, d_ff: number, layers: number, vocabulary: number, positions: number, d_kv: number,
 *   gated: boolean, biases: boolean, tied: boolean}} Model
 */

/**
 * Parameters of one feed-forward block, one attention block, and of a whole model: a BERT encoder with pooler
 * (`encoder_parameters`) where the block is plain, a LLaMA-style decoder (`llama_parameters`) where it is gated.
 * @param {Model} model
 */
export function modelParameters({
  d_model: d,
  d_ff,
  layers,
  vocabulary,
  positions,
  d_kv,
  gated,
  biases,
  tied,
}) {
  const block = gated ? gatedParameters(d, d_ff) : plainParameters(d, d_ff, biases);
  const attention = attentionParameters(d, biases && !gated, d_kv);
  const norms = gated ? (2 * layers + 1) * d : (2 * layers + 1) * 2 * d;
  const embeddings = gated ? (tied ? 1 : 2) * vocabulary * d : (vocabulary + positions + 2) * d;
  const pooler = gated ? 0 : d * d + d;
  const [blocks, attentions] = [layers * block, layers * attention];
  return {
    block,
    attention,
    blocks,
    attentions,
    embeddings,
    norms,
    pooler,
    whole: blocks + attentions + embeddings + norms + pooler,
  };
}

/**
 * Bytes of each part; activations, gradients and the numerical method are not modelled.
 * @param {{parameters: number, weight_bytes: number, layers: number, d_kv: number, tokens: number, sequences: number,
 *   cache_bytes: number, optimizer_states: number, optimizer_bytes: number, master_bytes: number}} given
 */
export function memoryBudget(given) {
  const weights = given.parameters * given.weight_bytes;
  const kv_cache = 2 * given.layers * given.d_kv * given.tokens * given.sequences * given.cache_bytes;
  const optimizer = given.parameters * given.optimizer_states * given.optimizer_bytes;
  const master = given.parameters * given.master_bytes;
  return { weights, kv_cache, optimizer, master, total: weights + kv_cache + optimizer + master };
}
