r"""The directive ``flashcards``: a list whose items are cards.

The first paragraph of an item is the card's front, everything below it is the back. An optional argument names
the deck::

    :::{flashcards} Recall
    - What does the sublayer do to a token, in three verbs?

      It **expands** to $d_{\text{ff}}$, **activates**, and **projects** back to $d$.
    - How many parameters has a bias-free gated block?

      $3\, d\, d_{\text{ff}}$
    :::

The front is the summary of a disclosure element, so that the deck works without scripts; printed, it is a list of
questions and answers. ``cards.mjs`` shows one card at a time and remembers which were known,
under a key made from page and front: a card whose front is reworded is a new card.
"""

from typing import Any

from docutils import nodes
from lesson_progress import record
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class flashcards(nodes.General, nodes.Element):  # noqa: N801 - docutils names node classes so
    """A deck."""


class flashcard(nodes.General, nodes.Element):  # noqa: N801
    """One card: its front, then its back."""


class flashcard_front(nodes.TextElement):  # noqa: N801
    """What the card asks."""


class flashcard_back(nodes.General, nodes.Element):  # noqa: N801
    """What the card answers."""


class Flashcards(SphinxDirective):
    """A deck of flashcards; the module's docstring gives the syntax."""

    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Turn the list's items into cards."""
        self.assert_has_content()
        body = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, body)
        if len(body.children) != 1 or not isinstance(body.children[0], nodes.bullet_list):
            raise self.error("flashcards take one list, whose items are the cards, and nothing else")
        deck = flashcards(title=self.arguments[0] if self.arguments else "Flashcards")
        self.set_source_info(deck)
        deck += [self._card(item) for item in body.children[0].children if isinstance(item, nodes.Element)]
        return [deck]

    def _card(self, item: nodes.Element) -> flashcard:
        front, *back = item.children or [nodes.Text("")]
        if not isinstance(front, nodes.paragraph) or not back:
            raise self.error(f"the card “{front.astext()}” needs a paragraph as its front and a back below it")
        card: flashcard = flashcard(key=record(self.env, "card", front.rawsource or front.astext(), item))
        card += flashcard_front("", "", *front.children)
        card += flashcard_back("", *back)
        return card


def visit_deck(self: Any, node: nodes.Element) -> None:
    """Open the deck."""
    self.body.append(f'<section class="ffn-cards" aria-label="{self.attval(node["title"])}">\n')


def depart_deck(self: Any, node: nodes.Element) -> None:
    """Close the deck."""
    self.body.append("</section>\n")


def visit_card(self: Any, node: nodes.Element) -> None:
    """Open a card."""
    self.body.append(f'<details class="ffn-card" data-key="{self.attval(node["key"])}">')


def depart_card(self: Any, node: nodes.Element) -> None:
    """Close a card."""
    self.body.append("</details>\n")


def visit_front(self: Any, node: nodes.Element) -> None:
    """Open the front."""
    self.body.append("<summary>")


def depart_front(self: Any, node: nodes.Element) -> None:
    """Close the front."""
    self.body.append("</summary>\n")


def visit_back(self: Any, node: nodes.Element) -> None:
    """Open the back."""
    self.body.append('<div class="ffn-card-back">\n')


def depart_back(self: Any, node: nodes.Element) -> None:
    """Close the back."""
    self.body.append("</div>")


def pass_through(self: Any, node: nodes.Element) -> None:
    """Other builders show the contents as they stand."""


def setup_cards(app: Sphinx) -> None:
    """Register the directive."""
    for node, visit, depart in (
        (flashcards, visit_deck, depart_deck),
        (flashcard, visit_card, depart_card),
        (flashcard_front, visit_front, depart_front),
        (flashcard_back, visit_back, depart_back),
    ):
        other = (pass_through, pass_through)
        app.add_node(node, html=(visit, depart), latex=other, text=other)
    app.add_directive("flashcards", Flashcards)
