/* Where the part that runs in the browser is; the build writes the addresses here (tools/live). */
export const live = null;
