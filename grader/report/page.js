"use strict";
(() => {
  const value = (row, place) => {
    const cell = row.cells[place];
    const text = cell.dataset.sort ?? cell.textContent.trim();
    const number = Number(text);
    return text !== "" && Number.isFinite(number) ? number : text.toLowerCase();
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  };
  const sort = (table, place, button) => {
    const header = button.closest("th");
    const down = header.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [value(row, place), row]);
    rows.sort((a, b) => (down ? compare(b[0], a[0]) : compare(a[0], b[0])));
    body.append(...rows.map((pair) => pair[1]));
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((header, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => sort(table, place, button));
    });
  }
  for (const box of document.querySelectorAll(".filter")) {
    const input = box.querySelector("input");
    const status = box.querySelector("[role=status]");
    const area = document.getElementById(box.dataset.for);
    const rows = [...area.querySelectorAll("tr[data-learner]")];
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      let shown = 0;
      for (const row of rows) {
        row.hidden = !row.dataset.learner.toLowerCase().includes(wanted);
        shown += row.hidden ? 0 : 1;
      }
      for (const part of area.querySelectorAll("details")) {
        const found = part.querySelector("tr[data-learner]:not([hidden])") !== null;
        part.hidden = !found;
        if (wanted && found) part.open = true;
      }
      status.textContent = wanted ? `${shown} of ${rows.length} rows` : "";
    });
    box.hidden = false;
  }
  // What is closed on the screen is not printed otherwise.
  const closed = new Set();
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details:not([open])")) {
      closed.add(part);
      part.open = true;
    }
  });
  addEventListener("afterprint", () => {
    for (const part of closed) part.open = false;
    closed.clear();
  });
})();
