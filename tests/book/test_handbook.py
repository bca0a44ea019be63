"""The handbook for instructors: each of its commands runs, and says what the page shows; each command is in it."""

import ast
import re
import shlex
from functools import cache
from pathlib import Path

import click
import pytest

from grader.cli import cli
from tests.book.handbook.pages import Block, Command, blocks, commands, fits, handbook_pages, inline, text_of
from tests.book.handbook.running import Page, change_notebook, run_handbook
from tests.helpers import ROOT

PAGES = handbook_pages()


@pytest.fixture(scope="module")
def handbook(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Page]:
    """Every page's commands, run once in the order of the contents."""
    return run_handbook(tmp_path_factory.mktemp("handbook"))


def command_lines() -> list[Command]:
    """All commands of all pages."""
    texts = [block.text for page in PAGES for block in blocks(text_of(page)) if block.kind == "bash"]
    return [command for text in texts for command in commands(text)]


def mentions() -> list[tuple[str, list[str]]]:
    """Each command line of the grader's on a page, in a block or in running text, with its page."""
    found = [(page, text) for page in PAGES for text in inline(text_of(page))]
    found += [
        (page, command.text)
        for page in PAGES
        for block in blocks(text_of(page))
        if block.kind == "bash"
        for command in commands(block.text)
    ]
    return [(page, shlex.split(text)) for page, text in found if re.match(r"grader [a-z-]", text)]


# -------------------------------------------------------------------------------------------------- what is run


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_each_command_ends_with_the_exit_status_that_the_page_states(page: str, handbook: dict[str, Page]) -> None:
    if handbook[page].skipped:
        pytest.skip(handbook[page].skipped)
    wrong = [done for done in handbook[page].done if done.status != done.command.status]
    assert not wrong, "\n\n".join(
        f"{page}.md, line {done.line}: {done.command.text}\nends with {done.status}, and says\n{done.wrote}"
        for done in wrong
    )


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_is_what_comes_out(page: str, handbook: dict[str, Page]) -> None:
    if handbook[page].skipped:
        pytest.skip(handbook[page].skipped)
    wrong = [shown for shown in handbook[page].shown if not fits(shown.text, shown.wrote)]
    assert not wrong, "\n\n".join(
        f"{page}.md, line {shown.line}, shows\n{shown.text}\nand what comes out is\n{shown.wrote}"
        for shown in wrong
    )


# ------------------------------------------------------------------------------------------- what is on the pages


def test_every_page_is_in_the_contents() -> None:
    written = {path.relative_to(ROOT).with_suffix("").as_posix() for path in (ROOT / "book/handbook").glob("*.md")}
    assert written == set(PAGES) != set()


def test_every_command_of_the_grader_is_run() -> None:
    run = {shlex.split(command.text)[1] for command in command_lines() if command.text.startswith("grader ")}
    assert set(cli.commands) - run == set()


def test_every_command_of_the_grader_that_is_named_exists_with_its_options() -> None:
    unknown = []
    for page, words in mentions():
        command = cli.commands.get(words[1])
        options = {word.partition("=")[0] for word in words[2:] if word.startswith("-")}
        if command is None or not options <= known_options(command):
            unknown.append(f"{page}: {' '.join(words)}")
    assert mentions()
    assert unknown == []


def known_options(command: click.Command) -> set[str]:
    context = click.Context(command, help_option_names=["-h", "--help"])
    return {name for option in command.get_params(context) for name in (*option.opts, *option.secondary_opts)}


def test_every_option_in_running_text_is_one_of_a_command_that_is_run() -> None:
    known = set().union(*(known_options(command) for command in cli.commands.values()))
    others = {"--nthreads"}
    named = {
        code.split()[0].partition("=")[0] for page in PAGES for code in inline(text_of(page)) if code[:2] == "--"
    }
    assert named
    assert named - known - others == set()


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    named = {code.split()[1] for page in PAGES for code in inline(text_of(page)) if re.match(r"make \w", code)}
    assert named
    assert named - targets == set()


@cache
def functions_in(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def evidence() -> list[tuple[str, str]]:
    """Every test that a page names as (file, function), or (file, "") for a whole file or folder."""
    named = [code for page in PAGES for code in inline(text_of(page)) if code.startswith("tests/")]
    return [(name.partition("::")[0], name.partition("::")[2]) for name in named]


@pytest.mark.parametrize("named", evidence(), ids="::".join)
def test_a_test_that_a_page_names_exists(named: tuple[str, str]) -> None:
    file, function = named
    assert (ROOT / file).exists()
    assert not function or function in functions_in(ROOT / file)


def numbered(heading: str) -> dict[str, str]:
    """The items of the numbered lists of a part of the threat model."""
    text = text_of("book/handbook/threat-model").partition(f"\n## {heading}\n")[2]
    found = re.split(r"^(\d+)\. ", text.partition("\n## ")[0], flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def test_each_defence_of_the_threat_model_names_a_test() -> None:
    defended, shown = numbered("What is defended"), numbered("Which test shows it")
    assert list(defended) == list(shown) == [str(number) for number in range(1, len(defended) + 1)] != []
    assert [number for number, item in shown.items() if "`tests/" not in item] == []


def test_every_part_of_the_report_is_explained_under_its_heading() -> None:
    template = (ROOT / "grader/report/page.html").read_text(encoding="utf-8")
    explained = re.findall(r"^(.+)\n: ", text_of("book/handbook/report"), flags=re.MULTILINE)
    assert explained == re.findall(r"<h2[^>]*>([^<]+)</h2>", template) != []


# ----------------------------------------------------------------------------------------------- how they are read


PAGE = """
Text with `grader scores UNIT` in it.

```bash
grader one \\
  --two
# exit status 1
grader three
```

```text
a ... b
```

% test: a step

```{code-block} text
:caption: ../class/list.csv

a,b
```

```python
not_run()
```
"""


def test_a_page_is_read_in_its_order() -> None:
    assert list(blocks(PAGE)) == [
        Block("bash", 4, "grader one \\\n  --two\n# exit status 1\ngrader three\n"),
        Block("text", 11, "a ... b\n"),
        Block("step", 15, "a step"),
        Block("file", 17, "a,b\n", "../class/list.csv"),
    ]


def test_an_output_belongs_to_the_block_right_above_it_only() -> None:
    assert [block.kind for block in blocks("```bash\ntrue\n```\n\nBut:\n\n```text\nx\n```\n")] == ["bash"]


def test_lines_are_joined_and_a_stated_status_is_no_part_of_the_command() -> None:
    first = next(blocks(PAGE))
    assert commands(first.text) == [Command("grader one --two", 1), Command("grader three", 0)]


def test_code_in_running_text_is_found_and_code_in_blocks_is_not() -> None:
    assert inline(PAGE) == ["grader scores UNIT"]


@pytest.mark.parametrize(
    ("shown", "came"),
    [
        ("a\n", "a\n"),
        ("│ ada │ 3 │\n", "│ ada     │   3 │   \n\n"),
        ("┏━┳━┓\n", "┏━━━━━┳━━━┓\n"),
        ("graded in ... s\n", "graded in 3.5 s\n"),
        ("a\n...\nd\n", "a\nb\nc\nd\n"),
        ("a\n...\nd\n", "a\nd\n"),
        ("...\n", ""),
        ("f(x) + [y]\n", "f(x) + [y]\n"),
    ],
)
def test_what_came_out_fits(shown: str, came: str) -> None:
    assert fits(shown, came)


@pytest.mark.parametrize(
    ("shown", "came"),
    [
        ("a\n", "b\n"),
        ("a\n", "a\nb\n"),
        ("a\nb\n", "a\n"),
        ("graded in ... s\n", "graded in\n3 s\n"),
        ("a\n...\nd\n", "a\nb\n"),
        ("a.c\n", "abc\n"),
    ],
)
def test_what_came_out_does_not_fit(shown: str, came: str) -> None:
    assert not fits(shown, came)


def test_a_cell_of_a_notebook_is_changed_as_the_page_says(tmp_path: Path) -> None:
    notebook = tmp_path / "a.ipynb"
    notebook.write_text('{"cells": [{"source": ["x = 1\\n", "y = 2\\n"]}, {"source": "z = 3"}]}')
    change_notebook(notebook, "-x = 1\n y = 2\n+w = 4\n")
    assert '"y = 2\\nw = 4\\n"' in notebook.read_text()


def test_a_change_that_fits_no_cell_is_a_fault(tmp_path: Path) -> None:
    notebook = tmp_path / "a.ipynb"
    notebook.write_text('{"cells": [{"source": "z = 3"}]}')
    with pytest.raises(ValueError, match="not enough"):
        change_notebook(notebook, "-x = 1\n")
