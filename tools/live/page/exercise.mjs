/** The page of an exercise: opens it in JupyterLite, hands the learner's work out, and starts it over. */

import { button, make } from "../_static/dom.mjs";
import {
  asFile,
  dayOf,
  isOfAnotherVersion,
  keptCopies,
  lockName,
  saysTheSame,
  setAside,
  stored,
  units,
} from "./storage.mjs";

/** @typedef {import("./storage.mjs").Entry} Entry @typedef {import("./storage.mjs").Unit} Unit */

const WHAT_HAPPENS = [
  "The notebook opens in JupyterLite, a Jupyter that runs in this browser, and Python with it. The first start loads " +
    "some 20 MB and takes about half a minute; later ones take less. Nothing is installed, and nothing that you write " +
    "leaves this machine.",
  "What you write is stored in this browser a few seconds later, and is there when you come back. Clearing the " +
    "browser's data for this site removes it, and a private window forgets it: download your work to keep it or to " +
    "hand it in.",
  "There is no Validate button there: restart the kernel and run all cells (the button with two arrows), and look for " +
    "messages below the tests. A cell that never ends is stopped by restarting the kernel; what you typed stays.",
];

/** @param {string} path */
function addressOf(path) {
  return `lite/notebooks/index.html?path=${encodeURIComponent(path)}`;
}

/** @param {Entry} entry @param {string} name */
function download(entry, name) {
  const address = URL.createObjectURL(new Blob([asFile(entry.content)], { type: "application/x-ipynb+json" }));
  make("a", { href: address, download: name }).click();
  // Some browsers begin the download only after this function has ended.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** @param {unknown} error */
function reason(error) {
  return error instanceof Error ? error.message : String(error);
}

/** Whether the notebook is open in another tab, as far as the browser tells. */
async function isOpenElsewhere(/** @type {string} */ path) {
  const held = (await navigator.locks?.query())?.held ?? [];
  return held.some((lock) => lock.name === lockName(path));
}

class Exercise {
  /**
   * @param {HTMLElement} root
   * @param {string} name
   * @param {Unit} unit
   */
  constructor(root, name, unit) {
    this.name = name;
    this.unit = unit;
    this.status = make("p", { class: "ffn-status", role: "status" });
    this.note = make("p", { class: "live-note", hidden: true });
    this.copies = make("section", { "aria-labelledby": "copies", hidden: true });
    this.open = make("a", { class: "ffn-button", href: addressOf(unit.path) }, "Open the exercise");
    this.open.addEventListener("click", (event) => this.refreshThenOpen(event));
    this.overButton = button("Start over", () => this.ask(true), "ffn-quiet");
    this.confirm = this.confirmation();
    root.replaceChildren(
      ...WHAT_HAPPENS.map((text) => make("p", {}, text)),
      this.note,
      make(
        "div",
        { class: "ffn-controls" },
        this.open,
        button("Download my work", () => this.handOut(), "ffn-quiet"),
        this.overButton,
      ),
      this.confirm,
      this.status,
      this.copies,
    );
  }

  confirmation() {
    const question = "Start over with the exercise as it is handed out? Your copy is kept under another name.";
    return make(
      "div",
      { class: "ffn-confirm", role: "group", "aria-label": question, hidden: true },
      question,
      button("Yes, start over", () => this.startOver()),
      button("Go on with my copy", () => this.ask(false), "ffn-quiet"),
    );
  }

  /** @param {string} text */
  say(text) {
    this.status.textContent = text;
  }

  /**
   * Do something with the storage, and say so where the browser refuses.
   * @param {() => Promise<void>} action
   */
  async attempt(action) {
    try {
      await action();
    } catch (error) {
      this.say(`This browser does not let the page use its storage (${reason(error)}); nothing was changed.`);
    }
  }

  /** Make way for a new version, and show what is kept. */
  async begin() {
    await this.attempt(async () => {
      const entry = await stored(this.unit.path);
      if (entry && isOfAnotherVersion(entry, this.unit)) await this.makeWay();
      else this.say(entry ? `You have worked on this exercise here, last on ${dayOf(entry)}.` : "Not begun yet.");
      await this.listCopies();
    });
  }

  async makeWay() {
    if (await isOpenElsewhere(this.unit.path)) {
      this.say("This exercise has a new version. Close the tab in which the old one is open, then reload this page.");
      return;
    }
    const kept = await setAside(this.unit.path);
    if (!kept) return;
    this.note.replaceChildren(
      "This exercise has changed since you began it. Your copy is kept as ",
      make("a", { href: addressOf(kept.path) }, kept.name),
      ", where you can go on with it; “Open the exercise” opens the new version.",
    );
    this.note.hidden = false;
    this.say(`New version; your earlier copy is kept as ${kept.name}.`);
  }

  /**
   * A notebook that the browser kept from an earlier visit to the site is fetched anew before it is opened.
   * @param {MouseEvent} event
   */
  async refreshThenOpen(event) {
    if (event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    this.say("Opening…");
    const folder = this.unit.path.split("/")[0];
    const files = [`lite/files/${this.unit.path}`, `lite/api/contents/${folder}/all.json`];
    await Promise.allSettled(files.map((file) => fetch(file, { cache: "reload" })));
    window.location.assign(this.open.href);
  }

  async handOut() {
    await this.attempt(async () => {
      const entry = await stored(this.unit.path);
      if (!entry || saysTheSame(entry.content, await this.original())) {
        this.say("There is nothing to download: you have not changed the exercise yet.");
        return;
      }
      download(entry, `${this.name}.ipynb`);
      this.say(`Downloaded ${this.name}.ipynb as it was stored ${this.when(entry)}.`);
    });
  }

  /** @param {Entry} entry */
  when(entry) {
    const time = new Date(entry.last_modified);
    return Number.isNaN(time.getTime()) ? "last" : `on ${dayOf(entry)} at ${time.toTimeString().slice(0, 8)}`;
  }

  async original() {
    return (await fetch(`lite/files/${this.unit.path}`, { cache: "no-cache" })).json();
  }

  /** @param {boolean} asking */
  ask(asking) {
    this.confirm.hidden = !asking;
    if (asking) this.confirm.querySelector("button")?.focus();
    else this.overButton.focus();
  }

  async startOver() {
    this.ask(false);
    await this.attempt(async () => {
      if (await isOpenElsewhere(this.unit.path)) {
        this.say("The exercise is open in another tab, which would store it again: close that tab first.");
        return;
      }
      const kept = await setAside(this.unit.path);
      this.note.hidden = true;
      this.say(kept ? `Started over; your copy is kept as ${kept.name}.` : "There was nothing to start over from.");
      await this.listCopies();
    });
  }

  async listCopies() {
    const copies = await keptCopies(this.unit);
    this.copies.hidden = !copies.length;
    const items = copies.map((entry) =>
      make(
        "li",
        {},
        make("p", {}, `${entry.name}, stored ${this.when(entry)}`),
        make(
          "div",
          { class: "ffn-controls" },
          make(
            "a",
            { class: "ffn-button ffn-quiet", href: addressOf(entry.path), "aria-label": `Open ${entry.name}` },
            "Open",
          ),
          this.downloadOf(entry),
        ),
      ),
    );
    this.copies.replaceChildren(
      make("h2", { id: "copies" }, "Kept copies"),
      make("ul", { class: "live-copies" }, ...items),
    );
  }

  /** @param {Entry} entry */
  downloadOf(entry) {
    const control = button("Download", () => download(entry, entry.name), "ffn-quiet");
    control.setAttribute("aria-label", `Download ${entry.name}`);
    return control;
  }
}

/** @param {HTMLElement} root @param {Record<string, Unit>} all @param {string} asked */
function list(root, all, asked) {
  const items = Object.entries(all).map(([name, unit]) =>
    make("li", {}, make("a", { href: `?unit=${encodeURIComponent(name)}` }, unit.title)),
  );
  const text = asked ? `There is no exercise “${asked}”. These there are:` : "Choose an exercise:";
  root.replaceChildren(make("p", { role: "status" }, text), make("ul", {}, ...items));
}

async function main() {
  const root = /** @type {HTMLElement} */ (document.getElementById("exercise"));
  const asked = new URLSearchParams(window.location.search).get("unit") ?? "";
  try {
    const all = await units();
    if (!Object.hasOwn(all, asked)) {
      list(root, all, asked);
      return;
    }
    const title = `Exercise: ${all[asked].title}`;
    document.title = title;
    /** @type {HTMLElement} */ (document.querySelector("h1")).textContent = title;
    await new Exercise(root, asked, all[asked]).begin();
  } catch (error) {
    root.replaceChildren(make("p", { role: "status" }, `The exercises could not be shown: ${reason(error)}.`));
  }
}

await main();
// A sign for whoever drives the page from outside that it is ready.
document.documentElement.dataset.exercise = "ready";
