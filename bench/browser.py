"""How soon Python answers in the browser, and how many bytes that takes; each visit with an empty cache.

    python -m bench.browser [--page book/worked-cells/cell-b] [--unit mechanism] [--runs 3]

Serves _build/html as `make serve` does and opens it in the local Chromium. On a lesson page the clock starts when the
button is pressed, and stops when the result of a numpy call stands on the page; then the same cell runs once more. In
JupyterLite the clock starts when the exercise's address is opened. Bytes are those of the answers' bodies as the server
sent them, compressed. Prints medians beside the bars and writes _build/bench/browser.json. It is a measurement, not a
test: on a busy machine the times say little, and the browser's CPU seconds, of all its processes from its start to the
end of the visit, say more (on Linux). A missed bar is printed and is no failure.
"""

import argparse
import contextlib
import functools
import http.server
import json
import os
import shutil
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from playwright.sync_api import Page, sync_playwright

from tools.places import BUILD, HTML
from tools.serve import Handler

BARS = {
    "lesson: first numpy result, s": 12.0,
    "lesson: next run, s": 0.2,
    "JupyterLite: first numpy result, s": 30.0,
    "lesson: MB before the button": 1.0,
    "lesson: MB to the first numpy result": 10.0,
}
PATIENCE = 180_000
FIRST = "import numpy as np\nprint('sum', np.arange(1001).sum())"
SUM = "sum 500500"
NEXT = "print('mean', np.arange(1001).mean())"
MEAN = "mean 500.0"

# The time from a key that runs a cell to its result on the page, taken inside the page.
WATCH = """text => {
  window.measured = new Promise(resolve => {
    let pressed = 0;
    addEventListener("keydown", event => { if (event.key === "Enter") pressed = performance.now(); }, true);
    const look = () => {
      if (pressed && document.body.textContent.includes(text)) resolve((performance.now() - pressed) / 1000);
    };
    new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
}"""


class Counted(Handler):
    """A server that counts the bytes of what it sends."""

    sent = 0
    lock = threading.Lock()

    def copyfile(self, source: BinaryIO, outputfile: BinaryIO) -> None:  # type: ignore[override]
        """Send a body, and add its length."""
        content = source.read()
        with self.lock:
            Counted.sent += len(content)
        outputfile.write(content)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


@dataclass(frozen=True)
class Visit:
    """What one visit gave, by name, and CPU seconds of the browser, 0 where the system does not tell."""

    figures: dict[str, float]
    cpu: float


@contextmanager
def serving() -> Iterator[str]:
    """The built book's address."""
    handler = functools.partial(Counted, directory=HTML)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def chromium() -> str | None:
    """The machine's Chromium, or None for Playwright's own."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def visit(measure: Callable[[Page], dict[str, float]]) -> Visit:
    """Measure in a browser of its own, which has loaded nothing yet."""
    Counted.sent = 0
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-proxy-server"]
        browser = playwright.chromium.launch(executable_path=chromium(), args=flags)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(PATIENCE)
        figures = measure(page)
        cpu = cpu_of_children()
        browser.close()
    return Visit(figures, cpu)


def cpu_of_children() -> float:
    """CPU seconds that the processes below this one have taken, with those that they waited for."""
    fields = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name in brackets may hold spaces.
            fields[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
    below, ticks = {os.getpid()}, 0
    grown = True
    while grown:
        found = {pid for pid, field in fields.items() if int(field[1]) in below} - below
        ticks += sum(sum(map(int, fields[pid][11:15])) for pid in found)
        below |= found
        grown = bool(found)
    return ticks / os.sysconf("SC_CLK_TCK")


def megabytes() -> float:
    """What was sent so far."""
    return Counted.sent / 1e6


def fill(page: Page, editor: str, code: str) -> None:
    """Put code in the place of what stands in an editor."""
    page.locator(editor).first.click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(code)


def lesson(address: str, page: Page) -> dict[str, float]:
    """Press the button of a lesson page, run a numpy cell, and run it again."""
    page.goto(address, wait_until="load")
    page.wait_for_selector("html[data-course=ready]", state="attached")
    page.wait_for_load_state("networkidle")
    figures = {"lesson: MB before the button": megabytes()}
    start = time.perf_counter()
    page.locator("#live-run").click()
    fill(page, "div.cell .cm-content", FIRST)
    page.keyboard.press("Control+Enter")
    page.get_by_text(SUM).first.wait_for()
    figures["lesson: first numpy result, s"] = time.perf_counter() - start
    figures["lesson: MB to the first numpy result"] = megabytes()
    page.wait_for_selector("#live-status[data-state=ready]", state="attached")
    fill(page, "div.cell .cm-content", NEXT)
    page.evaluate(WATCH, MEAN)
    page.keyboard.press("Control+Enter")
    figures["lesson: next run, s"] = page.evaluate("window.measured")
    return figures


def exercise(address: str, page: Page) -> dict[str, float]:
    """Open an exercise in JupyterLite, and run a numpy cell."""
    start = time.perf_counter()
    page.goto(address)
    editor = ".jp-CodeCell:has-text('YOUR CODE HERE') .cm-content"
    page.locator(editor).first.wait_for()
    fill(page, editor, FIRST)
    page.keyboard.press("Control+Enter")
    page.get_by_text(SUM).first.wait_for()
    return {
        "JupyterLite: first numpy result, s": time.perf_counter() - start,
        "JupyterLite: MB to the first numpy result": megabytes(),
    }


def positive(text: str) -> int:
    """A number above zero; ValueError, which argparse reports, where it is none."""
    number = int(text)
    if number <= 0:
        raise ValueError
    return number


def main() -> int:
    """Measure, print, and write it to a file."""
    parser = argparse.ArgumentParser(prog="python -m bench.browser", description="How soon Python answers.")
    parser.add_argument("--page", default="book/worked-cells/cell-b", help="lesson (default: %(default)s)")
    parser.add_argument("--unit", default="mechanism", help="exercise (default: %(default)s)")
    parser.add_argument("--runs", type=positive, default=3, help="visits, of which the median counts (default: 3)")
    options = parser.parse_args()
    needed = [HTML / f"{options.page}.html", HTML / "live" / "lite" / "files" / options.unit]
    absent = next((path for path in needed if not path.exists()), None)
    if absent is not None:
        sys.exit(f"error: {absent.relative_to(BUILD.parent)} is not there; run `make book`, or name another one.")
    visits: dict[str, list[Visit]] = {"lesson": [], "JupyterLite": []}
    with serving() as address:
        notebook = f"{address}/live/lite/notebooks/index.html?path={options.unit}/{options.unit}.ipynb"
        for _ in range(options.runs):
            visits["lesson"].append(visit(functools.partial(lesson, f"{address}/{options.page}.html")))
            visits["JupyterLite"].append(visit(functools.partial(exercise, notebook)))
    report(options, visits)
    return 0


def report(options: argparse.Namespace, visits: dict[str, list[Visit]]) -> None:
    """Print medians beside their bars, and write everything down."""
    every = [one.figures for found in visits.values() for one in found]
    names = dict.fromkeys(name for figures in every for name in figures)
    medians = {name: statistics.median(f[name] for f in every if name in f) for name in names}
    cpu = {what: statistics.median(one.cpu for one in found) for what, found in visits.items()}
    print(f"{options.page}, exercise {options.unit}: medians of {options.runs} visits with an empty cache")
    for name, value in medians.items():
        bar = BARS.get(name)
        verdict = "" if bar is None else f"   bar {bar:g}   {'met' if value <= bar else 'MISSED'}"
        print(f"{name:<44}{value:>8.2f}{verdict}")
    for what, seconds in cpu.items():
        print(f"{what + ': CPU seconds of the browser':<44}{seconds:>8.2f}")
    record = {
        "page": options.page,
        "unit": options.unit,
        "cores": os.cpu_count(),
        "medians": medians,
        "bars": BARS,
        "met": {name: medians[name] <= bar for name, bar in BARS.items()},
        "cpu": cpu,
        "visits": {what: [asdict(one) for one in found] for what, found in visits.items()},
    }
    target = BUILD / "bench" / "browser.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
