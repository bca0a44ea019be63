"""From text to token numbers: the two ways of cutting words that the real models of the course were trained with.

Both are written for reading, not for speed, and cut text as the models' own tokenizers do.
"""

import itertools
import re
import unicodedata
from collections.abc import Sequence

__all__ = ["BytePairs", "WordPiece"]

_LONGEST_WORD = 100

# Contractions; words, with the space before them; single digits; runs of other signs, with the space before them;
# other spaces. Numerals that are no digits, such as Roman ones, count as letters here.
_SPLIT = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+|\d| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


def _is_punctuation(sign: str) -> bool:
    """Unicode punctuation, and every printable ASCII sign that is neither letter nor digit."""
    return unicodedata.category(sign).startswith("P") or (
        sign.isascii() and sign.isprintable() and not sign.isalnum()
    )


def _is_ideograph(sign: str) -> bool:
    return unicodedata.name(sign, "").startswith(("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH"))


class WordPiece:
    """Lower-case WordPiece as BERT uses it: the longest known piece first, ``##`` before pieces inside a word.

    ``vocabulary`` lists the pieces by number. Source: Devlin et al. (2018).
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self.vocabulary = tuple(vocabulary)
        self._numbers = {piece: number for number, piece in enumerate(self.vocabulary)}

    def words(self, text: str) -> list[str]:
        """Lower-case words without accents; every punctuation sign and every ideograph is a word of its own."""
        kept = []
        for sign in unicodedata.normalize("NFD", text.lower()):
            if sign.isspace():
                kept.append(" ")
            elif _is_punctuation(sign) or _is_ideograph(sign):
                kept.append(f" {sign} ")
            elif unicodedata.category(sign)[0] != "C" and unicodedata.category(sign) != "Mn" and sign != "\ufffd":
                kept.append(sign)
        return "".join(kept).split()

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text between [CLS] and [SEP]; a word that cannot be cut into known pieces is [UNK]."""
        inner = [piece for word in self.words(text) for piece in self._cut(word)]
        return ["[CLS]", *inner, "[SEP]"]

    def __call__(self, text: str) -> list[int]:
        """The numbers of a text's pieces."""
        return [self._numbers[piece] for piece in self.pieces(text)]

    def _cut(self, word: str) -> list[str]:
        found: list[str] = []
        start = 0
        while start < len(word) <= _LONGEST_WORD:
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if prefix + word[start:end] in self._numbers), None)
            if end is None:
                return ["[UNK]"]
            found.append(prefix + word[start:end])
            start = end
        return found or ["[UNK]"]


def _byte_signs() -> list[str]:
    """A visible sign for each of the 256 bytes: itself where it is printable, else the next one from 256 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    signs, spare = [], 256
    for byte in range(256):
        if byte in printable:
            signs.append(chr(byte))
        else:
            signs.append(chr(spare))
            spare += 1
    return signs


class BytePairs:
    """Byte-pair encoding on bytes, as SmolLM2 uses it: neighbors are merged, the earliest learned pair first.

    ``vocabulary`` lists the tokens by number, ``merges`` the learned pairs in order, each as "left right".
    Special tokens in a text are cut like any other text.
    """

    def __init__(self, vocabulary: Sequence[str], merges: Sequence[str]) -> None:
        self.vocabulary = tuple(vocabulary)
        self._numbers = {token: number for number, token in enumerate(self.vocabulary)}
        self._ranks = {pair: rank for rank, pair in enumerate(merges)}
        self._signs = _byte_signs()
        self._bytes = {sign: byte for byte, sign in enumerate(self._signs)}

    def __call__(self, text: str) -> list[int]:
        """The numbers of a text's tokens."""
        numbers = []
        for word in _SPLIT.findall(text):
            signs = [self._signs[byte] for byte in word.encode("utf-8")]
            numbers += [self._numbers[token] for token in self._merge(signs)]
        return numbers

    def text(self, number: int) -> str:
        """What a token stands for; bytes that are no whole character are shown as the replacement sign."""
        token = bytes(self._bytes[sign] for sign in self.vocabulary[number])
        return token.decode("utf-8", errors="replace")

    def _merge(self, parts: list[str]) -> list[str]:
        while len(parts) > 1:
            pairs = [f"{left} {right}" for left, right in itertools.pairwise(parts)]
            best = min(pairs, key=lambda pair: self._ranks.get(pair, len(self._ranks)))
            if best not in self._ranks:
                break
            merged: list[str] = []
            for part in parts:
                if merged and f"{merged[-1]} {part}" == best:
                    merged[-1] += part
                else:
                    merged.append(part)
            parts = merged
        return parts
