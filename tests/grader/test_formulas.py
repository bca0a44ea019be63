"""Formulas of a page as MathML, without a script in it."""

import subprocess
from typing import Any

import pytest

from grader import formulas
from grader.formulas import formulas_script, with_formulas

INLINE = '<p>Say <span class="formula">$x &lt; 0$</span>.</p>'
BLOCK = '<span class="formula">$$\\frac{a}{b}$$</span>'


def test_a_formula_becomes_mathml() -> None:
    page, rendered = with_formulas(INLINE)
    assert rendered
    assert page.startswith('<p>Say <span class="formula"><span class="katex"><math xmlns=')
    assert "<mo>&lt;</mo>" in page
    assert page.endswith("</span>.</p>")


def test_a_formula_on_a_line_of_its_own_is_in_reach_of_the_keyboard() -> None:
    assert 'display="block" tabindex="0"' in with_formulas(BLOCK)[0]


def test_a_formula_that_katex_does_not_understand_stays_as_it_is() -> None:
    wrong = '<span class="formula">$\\frac{a$</span>'
    page, rendered = with_formulas(wrong + BLOCK)
    assert rendered
    assert page.startswith(f"{wrong}<span")
    assert page.count("<math") == 1


@pytest.mark.parametrize(
    "source",
    [
        r"\href{javascript:alert(1)}{x}",
        r"\text{&lt;script&gt;alert(1)&lt;/script&gt;}",
        r"\includegraphics{https://learner.example/seen.png}",
        r"\htmlStyle{background:url(https://learner.example)}{x}",
        r"\def\a{\a\a}\a",
    ],
)
def test_a_formula_brings_nothing_that_runs_or_asks_another_host(source: str) -> None:
    page, rendered = with_formulas(f'<span class="formula">${source}$</span>')
    assert rendered
    assert "<script" not in page
    assert "<img" not in page
    assert "href=" not in page
    assert "style=" not in page.replace("mathcolor", "")


def test_a_formula_is_rendered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    before, _ = with_formulas(INLINE)

    def refuse(*arguments: object, **more: object) -> Any:
        raise AssertionError(arguments)

    monkeypatch.setattr(subprocess, "run", refuse)
    assert with_formulas(INLINE) == (before, True)


def test_without_node_a_page_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formulas, "_programs", lambda: (None, None))
    page = '<span class="formula">$not_seen_yet$</span>'
    assert with_formulas(page) == (page, False)


def test_a_renderer_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formulas, "SECONDS", 0.001)
    page = '<span class="formula">$not_seen_either$</span>'
    assert with_formulas(page) == (page, False)


def test_a_page_without_formulas_needs_no_script() -> None:
    assert with_formulas("<p>plain</p>") == ("<p>plain</p>", True)


def test_the_script_for_a_page_brings_katex_along() -> None:
    assert "renderToString" in formulas_script()
    assert "src=" not in formulas_script().partition(">")[0]
