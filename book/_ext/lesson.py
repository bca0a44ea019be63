"""Directives of the lessons: a forecast that the reader commits to, and a question with marked choices.

Both take a question as their argument and, in their content, a list of choices. The right choice begins with
``[x]``, every other with ``[ ]``; what follows a choice's first paragraph explains it. Paragraphs after the list
are the answer. Without a list the reader types a forecast::

    :::{forecast} Which sign has $z_B$?
    - [ ] positive

      The largest term is negative.
    - [x] negative

      The two large entries point against each other.

    The pre-activation is {glue:text}`z_B`.
    :::

The page works without scripts: the answer stands in a disclosure element. Printed, it is question and answer.
With scripts ``asked.mjs`` makes the choices radio buttons, and remembers the answer under the key that
``lesson_progress`` gives. Flashcards, explorers and the progress page have a module each beside this one.
"""

from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from lesson_cards import setup_cards
from lesson_explorer import setup_explorer
from lesson_formulas import setup_formulas
from lesson_progress import record, setup_progress, short_hash
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata


class asked(nodes.General, nodes.Element):  # noqa: N801 - docutils names node classes so
    """A forecast or question with its choices and its answer."""


class asked_title(nodes.TextElement):  # noqa: N801
    """The question itself."""


class asked_choices(nodes.General, nodes.Element):  # noqa: N801
    """All choices of a question."""


class asked_choice(nodes.General, nodes.Element):  # noqa: N801
    """One choice: its text."""


class asked_answer(nodes.General, nodes.Element):  # noqa: N801
    """What the reader sees after committing: the right choice, why, and what each choice says."""


class Asked(SphinxDirective):
    """Shared work of ``forecast`` and ``question``."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec = {"name": directives.unchanged, "unit": directives.unchanged}  # noqa: RUF012 - docutils' interface
    label = ""

    def run(self) -> list[nodes.Node]:
        """Build the question node from the argument, the choices and the answer."""
        number = self.env.new_serialno("asked")
        node = asked(kind=self.name, label=self.label, ident=f"{self.name}-{number + 1}")
        self.set_source_info(node)
        title = asked_title()
        inline, messages = self.state.inline_text(self.arguments[0], self.lineno)
        title += inline
        node += title
        body = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, body)
        choices, answer = self._split(body)
        if choices is not None:
            node += choices
        node["typed"] = choices is None
        node["key"] = record(self.env, self.name, self.arguments[0], node)
        node += answer
        if "name" in self.options:
            node["names"].append(nodes.fully_normalize_name(self.options["name"]))
            self.state.document.note_explicit_target(node)
        return [node, *messages]

    def _split(self, body: nodes.Element) -> tuple[asked_choices | None, asked_answer]:
        answer = asked_answer()
        listing = next((child for child in body.children if isinstance(child, nodes.bullet_list)), None)
        if listing is None:
            answer += body.children
            return None, answer
        choices, notes = asked_choices(), nodes.definition_list(classes=["ffn-asked-notes"])
        for item in listing.children:
            right, text = _take_mark(item)
            if text is None:
                raise self.error(f"a choice of this {self.name} must begin with [x] or [ ]")
            wording = short_hash(text.rawsource[3:] or text.astext())
            choices += asked_choice("", *[child.deepcopy() for child in text.children], right=right, ident=wording)
            explanation = item.children[1:]
            if not explanation:
                raise self.error(f"a choice of this {self.name} has no explanation; add a paragraph below it")
            term = nodes.term("", "", *text.children)
            term["classes"] = ["ffn-right" if right else "ffn-wrong"]
            notes += nodes.definition_list_item("", term, nodes.definition("", *explanation))
        if sum(choice["right"] for choice in choices.children) != 1:
            raise self.error(f"this {self.name} needs exactly one right choice, marked [x]")
        answer += [child for child in body.children if child is not listing]
        answer += notes
        if len({choice["ident"] for choice in choices.children}) < len(choices.children):
            raise self.error(f"two choices of this {self.name} are worded alike")
        return choices, answer


def _take_mark(item: nodes.Node) -> tuple[bool, nodes.paragraph | None]:
    """Whether a list item is marked right, and its first paragraph without the mark; None where none is."""
    paragraph = item.children[0] if item.children else None
    if not isinstance(paragraph, nodes.paragraph) or not isinstance(paragraph.children[0], nodes.Text):
        return False, None
    text = str(paragraph.children[0])
    if text[:3] not in ("[x]", "[ ]"):
        return False, None
    paragraph.children[0] = nodes.Text(text[3:].lstrip())
    paragraph.children[0].parent = paragraph
    return text[1] == "x", paragraph


class Forecast(Asked):
    """A question to answer before the page shows the answer."""

    label = "Forecast"


class Question(Asked):
    """A question to answer after the page has shown the idea."""

    label = "Question"


def visit_asked(self, node):  # type: ignore[no-untyped-def]
    """Open the section with its label."""
    kind, ident = node["kind"], node["ident"]
    anchors = "".join(f'<span id="{i}"></span>' for i in node["ids"])
    self.body.append(
        f'<section class="ffn-asked ffn-{kind}" id="{ident}" aria-labelledby="{ident}-title" '
        f'data-kind="{kind}" data-key="{self.attval(node["key"])}" data-typed="{str(node["typed"]).lower()}">'
        f'{anchors}<p class="ffn-asked-label">{node["label"]}</p>'
    )


def depart_asked(self, node):  # type: ignore[no-untyped-def]
    """Close the section."""
    self.body.append("</section>\n")


def visit_title(self, node):  # type: ignore[no-untyped-def]
    """Open the question."""
    self.body.append(f'<p class="ffn-asked-title" id="{node.parent["ident"]}-title">')


def depart_title(self, node):  # type: ignore[no-untyped-def]
    """Close the question."""
    self.body.append("</p>\n")


def visit_choices(self, node):  # type: ignore[no-untyped-def]
    """Open the list of choices."""
    self.body.append('<ul class="ffn-choices">\n')


def depart_choices(self, node):  # type: ignore[no-untyped-def]
    """Close the list of choices."""
    self.body.append("</ul>\n")


def visit_choice(self, node):  # type: ignore[no-untyped-def]
    """Open a choice."""
    right = str(node["right"]).lower()
    self.body.append(f'<li class="ffn-choice" data-right="{right}" data-choice="{node["ident"]}"><span>')


def depart_choice(self, node):  # type: ignore[no-untyped-def]
    """Close a choice."""
    self.body.append("</span></li>\n")


def visit_answer(self, node):  # type: ignore[no-untyped-def]
    """Open the folded answer."""
    what = "Show the answer" if node.parent["kind"] == "question" else "Commit to a forecast, then show the answer"
    self.body.append(f'<details class="ffn-answer"><summary>{what}</summary>\n<div class="ffn-answer-body">\n')


def depart_answer(self, node):  # type: ignore[no-untyped-def]
    """Close the folded answer."""
    self.body.append("</div></details>\n")


def pass_through(self, node):  # type: ignore[no-untyped-def]
    """Other builders show the contents as they stand."""


def drop_thebe(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Take out what jupyter-book adds for thebe: it loads scripts from another host, and declares a name twice."""
    context["script_files"] = [
        script
        for script in context["script_files"]
        if "thebe" not in f"{script.filename} {script.attributes.get('body', '')}".lower()
    ]


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the directives."""
    setup_formulas()
    for node, visit, depart in (
        (asked, visit_asked, depart_asked),
        (asked_title, visit_title, depart_title),
        (asked_choices, visit_choices, depart_choices),
        (asked_choice, visit_choice, depart_choice),
        (asked_answer, visit_answer, depart_answer),
    ):
        other = (pass_through, pass_through)
        app.add_node(node, html=(visit, depart), latex=other, text=other)
    app.connect("html-page-context", drop_thebe, priority=900)
    app.add_directive("forecast", Forecast)
    app.add_directive("question", Question)
    setup_progress(app)
    setup_cards(app)
    setup_explorer(app)
    # The number grows when the records in the environment change their form, so that old ones are thrown away.
    return {"version": "1", "env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
