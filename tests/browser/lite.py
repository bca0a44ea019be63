"""The built book as a host serves it, and a learner who works on an exercise in JupyterLite."""

import functools
import http.server
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from grader.course import Course
from grader.notebooks import answer_ids, grade_id, read_notebook
from tests.helpers import ROOT
from tools.serve import Handler

HTML = ROOT / "_build" / "html"
UNITS = sorted(path.parent.name for path in (ROOT / "exercises").glob("*/*.ipynb"))
PATIENCE = 120_000

# JupyterLite's storage as its own scripts leave it: one entry a file.
_ENTRY = """path => new Promise((resolve, reject) => {
  const name = `JupyterLite Storage - ${location.pathname.split("/live/")[0]}/live/lite/`;
  const request = indexedDB.open(name);
  request.onerror = () => reject(request.error);
  request.onsuccess = () => {
    const got = request.result.transaction("files").objectStore("files").get(path);
    got.onsuccess = () => { request.result.close(); resolve(got.result ?? null); };
    got.onerror = () => reject(got.error);
  };
})"""


def require_live() -> None:
    """Skip, or fail where that is not allowed, unless the built book has the part that runs in the browser."""
    if not (HTML / "live" / "exercise.html").exists():
        message = "the book is not built with what runs in the browser (make book)"
        pytest.fail(message) if os.environ.get("LIVE") == "1" else pytest.skip(message)


class Plain(Handler):
    """As a plain static host serves: nothing isolates the pages. The book may lie below a path."""

    below = ""

    def translate_path(self, path: str) -> str:
        if not path.startswith(f"{self.below}/"):
            return str(Path(self.directory) / "no such file")
        return super().translate_path(path[len(self.below) :])

    def end_headers(self) -> None:
        http.server.SimpleHTTPRequestHandler.end_headers(self)


@contextmanager
def serving(folder: Path, *, below: str = "", isolated: bool = True) -> Iterator[str]:
    """Serve a folder below a path of this machine, as `make serve` does or as a plain host; gives its address."""
    kind = Handler if isolated and not below else type("Below", (Plain,), {"below": below})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(kind, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}{below}"
        server.shutdown()
        thread.join()


def reference_answers(unit: str) -> dict[str, str]:
    """The answers of the reference notebook in code, by grade id, without the marks around them."""
    reference = read_notebook(Course(ROOT).reference(unit))
    answers = set(answer_ids(reference))
    return {
        str(grade_id(cell)): "\n".join(line for line in cell["source"].splitlines() if "### " not in line)
        for cell in reference["cells"]
        if grade_id(cell) in answers and cell["cell_type"] == "code"
    }


@dataclass(frozen=True)
class Learner:
    """Somebody with a browser tab."""

    page: Page
    address: str

    def exercise_page(self, unit: str) -> Page:
        """Go to the page of an exercise."""
        self.page.goto(f"{self.address}/live/exercise.html?unit={unit}")
        self.page.wait_for_selector("html[data-exercise=ready]")
        return self.page

    def open(self, unit: str) -> Page:
        """Open the exercise from its page, and wait until its cells show."""
        self.exercise_page(unit).get_by_role("link", name="Open the exercise").click()
        return self.shown()

    def shown(self) -> Page:
        """The notebook, once its cells and its kernel are there: what is run before that is dropped."""
        self.page.locator(".jp-Notebook .jp-CodeCell").first.wait_for(timeout=PATIENCE)
        expect(self.page.locator("#jupyterlite-loading-indicator")).to_be_hidden(timeout=PATIENCE)
        kernel = self.page.locator(".jp-Notebook-ExecutionIndicator").first
        expect(kernel).to_have_attribute("data-status", "idle", timeout=PATIENCE)
        return self.page

    def type_answers(self, unit: str, answers: Mapping[str, str]) -> None:
        """Type answers into the cells that the notebook has for them."""
        released = json.loads((ROOT / "exercises" / unit / f"{unit}.ipynb").read_text(encoding="utf-8"))
        for place, cell in enumerate(released["cells"]):
            answer = answers.get(str(grade_id(cell)))
            if answer is not None:
                self.page.locator(".jp-Notebook .jp-Cell").nth(place).locator(".cm-content").click()
                self.page.keyboard.press("Control+a")
                self.page.keyboard.insert_text(answer)

    def run_all(self) -> None:
        """Run every cell, and wait until nothing is running or waiting."""
        self.page.keyboard.press("Escape")
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_text("Run All Cells", exact=True).click()
        prompts = self.page.locator(".jp-Notebook .jp-InputPrompt")
        expect(prompts.filter(has_text="[1]")).to_have_count(1, timeout=PATIENCE)
        expect(prompts.filter(has_text="*")).to_have_count(0, timeout=PATIENCE)

    def stored(self, unit: str) -> Any:
        """What the browser keeps of the exercise, as JupyterLite wrote it; None where it keeps nothing."""
        return self.page.evaluate(_ENTRY, f"{unit}/{unit}.ipynb")

    def saved(self, unit: str) -> Any:
        """The notebook as the browser keeps it once the learner has saved it."""
        now = self.page.evaluate("new Date().toISOString()")
        self.page.keyboard.press("Control+s")
        for _ in range(100):
            entry = self.stored(unit)
            if entry and entry["last_modified"] >= now:
                return entry["content"]
            self.page.wait_for_timeout(100)
        pytest.fail(f"JupyterLite did not save {unit}")

    def errors(self) -> list[str]:
        """What cells wrote in red."""
        shown = self.page.locator('.jp-OutputArea-output[data-mime-type="application/vnd.jupyter.stderr"]')
        return shown.all_inner_texts()


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def source(cell: Any) -> str:
    """A cell's source, whether it is kept as a text or as lines."""
    text = cell["source"]
    return text if isinstance(text, str) else "".join(text)
