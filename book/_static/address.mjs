/** An explorer's setting in the page's address, behind the #, so that it can be shared and bookmarked. */

const PAUSE = 300;

export class Address {
  /** @param {() => void} changed called when the reader has edited the address, or gone back */
  constructor(changed) {
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    window.addEventListener("hashchange", () => {
      if (this.holdsSetting()) changed();
    });
  }

  /** Whether there is a setting, and not the name of a heading. */
  holdsSetting() {
    return window.location.hash.includes("=");
  }

  read() {
    return new URLSearchParams(this.holdsSetting() ? window.location.hash.slice(1) : "");
  }

  /**
   * Written when the reader has paused: browsers refuse an address that changes with every step of a drag.
   * @param {Record<string, string>} setting
   */
  write(setting) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const text = new URLSearchParams(setting).toString();
      // Commas and semicolons may stand in an address as they are; escaped they are hard to read.
      const plain = text.replaceAll("%2C", ",").replaceAll("%3B", ";");
      window.history.replaceState(null, "", `#${plain}`);
    }, PAUSE);
  }
}
