"""Notebooks for download: plain Markdown, numbers and citations written out, outputs kept."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tests.helpers import ROOT
from tools.notebooks import citations, offered, plain_markdown, plain_notebook

WORKS = {"ba2016": ("Ba et al.", "2016"), "gl2021": ("Glorot and Lund", "2021")}
GLUED = "application/papermill.record/text/plain"


def plain(source: str, **values: str) -> str:
    return plain_markdown(source, values, WORKS)


def test_labels_are_left_out() -> None:
    assert plain("(cell-b)=\n# Cell B") == "# Cell B"


def test_glued_numbers_are_written_out() -> None:
    assert plain("It is {glue:text}`z`, {glue:text}`z`.", z="-1.2") == "It is -1.2, -1.2."


@pytest.mark.parametrize(
    ("role", "written"),
    [
        ("{cite:t}`ba2016`", "Ba et al. (2016)"),
        ("{cite:p}`ba2016`", "(Ba et al., 2016)"),
        ("{cite:p}`ba2016,gl2021`", "(Ba et al., 2016; Glorot and Lund, 2021)"),
        ("{cite:t}`unknown`", "unknown ()"),
        ("{term}`gate`", "gate"),
        ("{term}`gates <gate>`", "gates"),
    ],
)
def test_roles_are_written_out(role: str, written: str) -> None:
    assert plain(f"See {role}.") == f"See {written}."


@pytest.mark.parametrize(
    ("link", "leads_to"),
    [
        ("[b](cell-b.md)", "[b](cell-b.ipynb)"),
        ("[m](../mechanism/position-wise.md#the-idea)", "[m](../mechanism/position-wise.ipynb)"),
        ("[out](https://example.org/a.md)", "[out](https://example.org/a.md)"),
        ("[label](#cell-b)", "[label](#cell-b)"),
    ],
)
def test_links_lead_to_notebooks(link: str, leads_to: str) -> None:
    assert plain(link) == leads_to


def test_admonition_becomes_a_quotation_without_its_options() -> None:
    source = ":::{admonition} After this page you can\n:class: ffn-goals\n\n- compute\n:::"
    assert plain(source) == "> **After this page you can**\n>\n> - compute"


def test_warning_without_a_title_is_named() -> None:
    assert plain(":::{warning}\nMind the sign.\n:::") == "> **Warning**\n>\n> Mind the sign."


FORECAST = """\
:::{forecast} Which sign has $z$?
- [ ] positive

  The sum is {glue:text}`z`.
- [x] negative

  Both products are
  below zero.

The pre-activation is {glue:text}`z`.
:::"""


def test_forecast_shows_the_choices_and_folds_the_answer() -> None:
    written = plain(FORECAST, z="-1.2")
    question, answer = written.split("<details><summary>Show the answer</summary>")
    assert question.splitlines() == ["**Forecast.** Which sign has $z$?", "", "- positive", "- negative", ""]
    assert "The pre-activation is -1.2." in answer
    assert "- ✗ **positive** The sum is -1.2." in answer
    assert "- ✓ **negative** Both products are below zero." in answer
    assert answer.rstrip().endswith("</details>")


def test_no_right_answer_shows_before_the_fold() -> None:
    assert "[x]" not in plain(FORECAST)
    assert "✓" not in plain(FORECAST).split("<details>")[0]


def test_directives_inside_directives_are_converted() -> None:
    source = "::::{grid} 1 2\n:gutter: 3\n\n:::{grid-item-card} Mechanism\n:link: a\n\nExpand.\n:::\n::::"
    assert plain(source) == "**Mechanism.** Expand."


@pytest.mark.parametrize("name", ["explorer", "progress"])
def test_interactive_parts_say_where_they_are(name: str) -> None:
    assert "open the page in the book" in plain(f"```{{{name}}} activations\n```")


def test_flashcards_fold_their_backs() -> None:
    written = plain(":::{flashcards} Recall\n- Front\n\n  Back\n:::")
    assert "<details><summary>Front</summary>\n\nBack\n\n</details>" in written


def executed() -> nbformat.NotebookNode:
    data = {GLUED: "'4,718,592'"}
    scrapbook = {"scrapbook": {"name": "n", "mime_prefix": "application/papermill.record/"}}
    return new_notebook(
        cells=[
            new_markdown_cell("(label)="),
            new_code_cell("1 + 1", outputs=[new_output("execute_result", data={"text/plain": "2"})]),
            new_code_cell(
                "glue('n', n)",
                metadata={"tags": ["remove-cell"]},
                outputs=[new_output("display_data", data=data, metadata=scrapbook)],
            ),
            new_markdown_cell("There are {glue:text}`n` weights."),
        ],
        metadata={"source_map": [1, 2, 3], "file_format": "mystnb"},
    )


def test_notebook_is_valid_and_keeps_its_outputs() -> None:
    notebook = plain_notebook(executed(), WORKS)
    nbformat.validate(notebook)
    assert notebook.cells[0].outputs[0]["data"]["text/plain"] == "2"
    assert notebook.metadata.kernelspec.name == "python3"
    assert "source_map" not in notebook.metadata


def test_empty_cells_are_left_out() -> None:
    assert [cell.cell_type for cell in plain_notebook(executed(), WORKS).cells] == ["code", "code", "markdown"]


def test_large_numbers_are_written_with_their_separators() -> None:
    assert plain_notebook(executed(), WORKS).cells[-1].source == "There are 4,718,592 weights."


def test_cells_that_the_page_hides_are_folded() -> None:
    assert plain_notebook(executed(), WORKS).cells[1].metadata["jupyter"] == {"source_hidden": True}


def test_the_executed_notebook_is_left_as_it_is() -> None:
    notebook = executed()
    before = nbformat.writes(notebook)
    plain_notebook(notebook, WORKS)
    assert nbformat.writes(notebook) == before


def test_a_lesson_is_offered_unless_its_front_matter_says_no() -> None:
    notebook = executed()
    assert offered(notebook)
    notebook.metadata["download"] = False
    assert not offered(notebook)


def test_every_reference_of_the_book_has_authors_and_a_year() -> None:
    works = citations(ROOT / "book" / "references.bib")
    assert works["ba2016"] == ("Ba et al.", "2016")
    assert works["hendrycks2016"] == ("Hendrycks and Gimpel", "2016")
    assert all(names and year.isdigit() for names, year in works.values())


@pytest.mark.skipif(not (ROOT / "_build" / "html" / "notebooks").is_dir(), reason="the book is not built")
def test_no_built_notebook_holds_what_only_the_builder_understands() -> None:
    for path in (ROOT / "_build" / "html" / "notebooks").rglob("*.ipynb"):
        text = "\n".join(
            cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown"
        )
        assert ":::" not in text, path.name
        assert "{glue:" not in text, path.name
        assert "{cite:" not in text, path.name
