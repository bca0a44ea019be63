/** The page's side of the worker that runs Python: starts it, hands cells over, interrupts and ends it. */

/** @typedef {import("./live-worker.mjs").Message} Message @typedef {import("./live-worker.mjs").Output} Output */
/** @typedef {import("./live-worker.mjs").Status} Status */

/** So long may a cell take to notice an interrupt, in milliseconds; then its worker is ended. */
const PATIENCE = 3000;
const SIGINT = 2;

/** The worker was ended while, or before, a cell ran. */
export class Ended extends Error {
  /**
   * @param {string} why in words
   * @param {boolean} asked whether the reader wanted it so
   */
  constructor(why, asked) {
    super(why);
    this.asked = asked;
  }
}

/** Whether a running cell can be interrupted without losing what Python holds. */
const gentle = globalThis.crossOriginIsolated === true;

/** @typedef {{pyodide: string, files: string, slice: string}} Addresses */

export class Python {
  /**
   * @param {Addresses} addresses
   * @param {(text: string) => void} stage told what is being loaded
   */
  constructor(addresses, stage) {
    this.stage = stage;
    this.ids = 0;
    /** @type {Uint8Array | null} */
    this.signal = gentle ? new Uint8Array(new SharedArrayBuffer(1)) : null;
    /** @type {{id: number, output: (output: Output) => void, resolve: (status: Status) => void, reject: (why: Ended) => void} | null} */
    this.running = null;
    /** Whether Python was ready at some time. */
    this.started = false;
    /** @type {Ended | null} why the worker is no more */
    this.ended = null;
    /** @type {{resolve: () => void, reject: (why: Ended) => void}} */
    let settle = { resolve() {}, reject() {} };
    /** @type {Promise<void>} kept once Python is there */
    this.ready = new Promise((resolve, reject) => {
      settle = { resolve, reject };
    });
    this.ready.catch(() => {});
    this.settle = settle;
    this.worker = new Worker(new URL("live-worker.mjs", import.meta.url), { type: "module" });
    this.worker.addEventListener("message", ({ data }) => this.take(data));
    this.worker.addEventListener("error", (event) => {
      event.preventDefault();
      this.end(event.message || "its worker could not be loaded", false);
    });
    const interrupt = /** @type {SharedArrayBuffer | null} */ (this.signal?.buffer ?? null);
    this.worker.postMessage({ kind: "start", ...addresses, interrupt });
  }

  /** @param {Message} message */
  take(message) {
    if (message.kind === "ready") {
      this.started = true;
      this.settle.resolve();
    } else if (message.kind === "stage") this.stage(message.text);
    else if (message.kind === "output") this.running?.output(message.output);
    else if (message.kind === "fatal") this.end(message.text, false);
    else if (message.id === this.running?.id) {
      const { resolve } = this.running;
      this.running = null;
      resolve(message.status);
    }
  }

  /**
   * Run one cell; one at a time.
   * @param {string} source
   * @param {string} name as it stands in tracebacks
   * @param {(output: Output) => void} output
   * @returns {Promise<Status>}
   * @throws {Ended}
   */
  async run(source, name, output) {
    await this.ready;
    if (this.ended) throw this.ended;
    const id = ++this.ids;
    return new Promise((resolve, reject) => {
      this.running = { id, output, resolve, reject };
      this.worker.postMessage({ kind: "run", id, source, name });
    });
  }

  /** Stop the cell that runs: by a signal where the page may send one, else by ending the worker. */
  interrupt() {
    const { running } = this;
    if (!running) return;
    if (!this.signal) return this.end("the cell was interrupted", true);
    this.signal[0] = SIGINT;
    setTimeout(() => {
      if (this.running === running) this.end("the cell did not stop", true);
    }, PATIENCE);
  }

  /**
   * @param {string} why
   * @param {boolean} asked whether the reader wanted it so
   */
  end(why, asked) {
    if (this.ended) return;
    this.worker.terminate();
    this.ended = new Ended(why, asked);
    this.settle.reject(this.ended);
    this.running?.reject(this.ended);
    this.running = null;
  }
}
