"""The workflow that publishes the book: it can be read, and what it runs and publishes is there."""

import re
from typing import Any

import pytest
import yaml

from tests.helpers import ROOT
from tools.live import fetch
from tools.places import HTML

FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))


def steps(workflow: Any) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.fixture(scope="module")
def pages() -> Any:
    return yaml.safe_load((ROOT / ".github" / "workflows" / "pages.yml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_workflow_runs_make_targets_that_exist(path: Any) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    commands = [line for step in steps(workflow) for line in step.get("run", "").splitlines()]
    assert commands
    assert [line for line in commands if not re.fullmatch(r"make [a-z-]+( [A-Z]+=\S+)*", line)] == []
    assert {line.split()[1] for line in commands} <= TARGETS


def test_what_is_published_is_the_built_book(pages: Any) -> None:
    (upload,) = (step for step in steps(pages) if "upload-pages-artifact" in step.get("uses", ""))
    assert ROOT / upload["with"]["path"] == HTML


def test_the_book_is_published_with_what_runs_in_the_browser(pages: Any) -> None:
    commands = [step["run"] for step in steps(pages) if "run" in step]
    assert commands == ["make book"]


def test_the_publishing_may_write_pages_and_nothing_else(pages: Any) -> None:
    assert pages["permissions"] == {"contents": "read", "pages": "write", "id-token": "write"}
    assert all("permissions" not in job for job in pages["jobs"].values())


def test_the_kept_downloads_are_those_of_the_build(pages: Any) -> None:
    (cache,) = (step for step in steps(pages) if "actions/cache" in step.get("uses", ""))
    assert fetch.cache_folder({}).as_posix().endswith(cache["with"]["path"].removeprefix("~") + "/live")
    (named,) = re.findall(r"hashFiles\('([^']+)'\)", cache["with"]["key"])
    assert (ROOT / named).exists()
