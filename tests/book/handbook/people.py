"""The class of the handbook's pages: who is in it, and what each of them hands in for the unit activations."""

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.course import Course
from grader.demo_class import demo_class
from grader.notebooks import answer_ids, grade_id, read_notebook

__all__ = ["CLASS", "Person", "fill_folder", "fill_zip", "owner"]

UNIT = "activations"
DEMO = demo_class(UNIT)

CUT_OFF = """
def sigmoid(z):
    z = np.asarray(z, dtype=float)
    size = np.abs(z)
    small = np.where(size > 708, 0.0, np.exp(-size))
    return np.where(z < 0, small, 1) / (1 + small)
"""
"""Right for every number whose exponential is a normal one; a hidden test asks for more than the task says."""

LOOP = """
def tail_reach(tolerance, z):
    reach = {}
    for label, activation in [("relu", relu), ("gelu", gelu), ("silu", silu)]:
        farthest = 0
        for entry in z:
            if abs(float(activation(entry))) >= tolerance and entry < farthest:
                farthest = float(entry)
        reach[label] = farthest
    return reach
"""
RENAMED = """
def tail_reach(tolerance, z):
    # go through all activations
    result = {}
    for key, f in [("relu", relu), ("gelu", gelu), ("silu", silu)]:
        lowest = 0
        for value in z:
            if abs(float(f(value))) >= tolerance and value < lowest:
                lowest = float(value)
        result[key] = lowest
    return result
"""


@dataclass(frozen=True)
class Person:
    """A learner of the class: the login, the name, the answers that are not the reference's, and how many are given."""

    login: str
    first: str
    last: str
    answers: tuple[tuple[str, str], ...] = ()
    answered: int | None = None


def _mistake(name: str) -> tuple[str, str]:
    return DEMO.mistakes[name]


CLASS = (
    Person("alovelace", "Ada", "Lovelace"),
    Person("aturing", "Alan", "Turing", answered=5),
    Person("enoether", "Emmy", "Noether", (("sigmoid", CUT_OFF),)),
    Person("ghopper", "Grace", "Hopper"),
    Person("kjohnson", "Katherine", "Johnson", (_mistake("tanh_form_for_exact_gelu"), ("tail_reach", LOOP))),
    Person("mmirzakhani", "Maryam", "Mirzakhani"),
    Person(
        "skovalevskaya", "Sofia", "Kovalevskaya", (_mistake("product_rule_forgotten"), ("tail_reach", RENAMED))
    ),
)


def owner(name: str) -> Person:
    """Whose file it is, by the login or the name in its path."""
    plain = "".join(letter for letter in name.casefold() if letter.isalnum())
    found = {
        person
        for person in CLASS
        for said in (person.login, person.first + person.last, person.last + person.first)
        if said.casefold() in plain
    }
    (person,) = found
    return person


def content(course: Course, name: str, earlier: int = 0) -> bytes:
    """What is in a file of a download; an ``earlier`` attempt has one answer less for each that came after it."""
    if name.endswith(".ipynb"):
        return notebook(course, owner(name), earlier)
    if "_attempt_" in name and name.endswith(".txt"):
        person = owner(name)
        return f"Name: {person.first} {person.last} ({person.login})\nAssignment: {UNIT}\n".encode()
    return b"%PDF-1.7\n" if name.endswith(".pdf") else b"<html></html>\n"


def notebook(course: Course, person: Person, earlier: int = 0) -> bytes:
    """The released notebook with a person's answers in it, as Jupyter saves it."""
    made: Any = read_notebook(course.exercise(UNIT))
    reference = read_notebook(course.reference(UNIT))
    sources = {str(grade_id(cell)): _without_marks(cell["source"]) for cell in reference["cells"]}
    order = answer_ids(reference)
    answers = {name: sources[name] for name in order[: person.answered]} | {
        name: code.strip("\n") for name, code in person.answers
    }
    for name in order[len(order) - earlier :] if earlier else ():
        answers.pop(name, None)
    for cell in made["cells"]:
        cell["source"] = answers.get(str(grade_id(cell)), cell["source"])
    return (json.dumps(made, indent=1) + "\n").encode()


def _without_marks(source: str) -> str:
    return "\n".join(line for line in source.splitlines() if not line.strip().startswith("### "))


def fill_zip(course: Course, target: Path, listing: str) -> None:
    """Make the archive that a page lists."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, earlier in _listed(listing):
            archive.writestr(name, content(course, name, earlier))


def fill_folder(course: Course, target: Path, listing: str) -> None:
    """Make the folder that a page lists."""
    for name, earlier in _listed(listing):
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(course, name, earlier))


def _listed(listing: str) -> list[tuple[str, int]]:
    """Names in a list, each with how many later notebooks of the same person are in it; lists are in order of time."""
    names = listing.splitlines()
    people = [owner(name).login if name.endswith(".ipynb") else "" for name in names]
    return [
        (name, people[place + 1 :].count(people[place]) if people[place] else 0)
        for place, name in enumerate(names)
    ]
