"""Page of the errors of a model that writes single words: confused phones or letters, and the words that are wrong."""

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final, NamedTuple, final

from rich.cells import cell_len

from heedful.pages.document import document, table
from heedful.pages.label_errors import LengthScore, length_table

MOST_SYMBOLS: Final = 20
"""Largest number of symbols of the picture: those with most errors."""
MOST_PAIRS: Final = 30
"""Number of confusions that are listed."""
BLANK: Final = "∅"
"""Sign for no symbol."""
_CELL: Final = 30
_LETTER_WIDTH: Final = 11.0
_FAINTEST, _STRONGEST = 0.1, 0.5
"""Opacity of the cells of the fewest and the most errors; above the strongest, numbers in them were hard to read."""

Pair = tuple[str, str]


class WrongWord(NamedTuple):
    """Word whose output equals none of its references."""

    source: str
    pairs: Sequence[Pair]
    """Symbols of the closest reference and of the output, aligned; an empty string is no symbol."""
    separator: str
    """Text between symbols."""
    probability: float
    """Probability that the model gave its output."""

    @property
    def num_wrong(self) -> int:
        """Number of symbols that are wrong."""
        return sum(said != written for said, written in self.pairs)

    def side(self, index: int) -> str:
        """Write the reference (0) or the output (1) as text."""
        return self.separator.join(pair[index] for pair in self.pairs if pair[index])


@final
class SymbolErrorPage(NamedTuple):
    """Errors of a model on a test set of words."""

    model: str
    num_words: int
    num_right: int
    symbols: Counter[str]
    """Number of times that each symbol stands in the references."""
    errors: Counter[Pair]
    """Number of times that a symbol of a reference has another one in its place; an empty string is no symbol."""
    examples: Mapping[Pair, Sequence[WrongWord]]
    """Some words with each of these errors."""
    by_length: Sequence[LengthScore]
    confident: Sequence[WrongWord]
    """Wrong words, the most probable outputs first."""
    worst: Sequence[WrongWord]
    """Words with several wrong symbols, those with most first."""

    def to_dict(self) -> dict[str, Any]:
        """List the errors.

        Returns:
            Values that JSON can hold.
        """
        return {
            "num_words": self.num_words,
            "num_right": self.num_right,
            "num_symbols": self.symbols.total(),
            **self._kinds(),
            "confusions": [
                {
                    "reference": said,
                    "output": written,
                    "count": number,
                    "share": number / self.symbols[said] if said else None,
                    "words": [one.source for one in self.examples[said, written]],
                }
                for (said, written), number in self._ordered()
            ],
        }

    def to_html(self) -> str:
        """Write the page, one HTML file that needs no network."""
        share, num_wrong = 100.0 * self.num_right / self.num_words, self.errors.total()
        kinds, total = self._kinds(), self.symbols.total()
        parts = [
            f"<p>{self.num_right:,} of {self.num_words:,} words are right: {share:.2f} %. Of {total:,} symbols of the "
            f"references {kinds['num_replaced']:,} are replaced and {kinds['num_missing']:,} missing, and "
            f"{kinds['num_added']:,} are too many: {100.0 * num_wrong / max(1, total):.2f} % errors.</p>"
        ]
        if num_wrong:
            parts += ["<h2>Confused symbols</h2>", *self._picture(), "<h2>Commonest errors</h2>", self._listed()]
        parts += ["<h2>By length</h2>", length_table(self.by_length, "letters", "words")]
        if num_wrong:
            parts += ["<h2>Most confident wrong words</h2>", _words(self.confident)]
        if self.worst:
            parts += ["<h2>Words with most wrong symbols</h2>", _words(self.worst)]
        return document(f"Errors of {self.model}", parts)

    def _kinds(self) -> dict[str, int]:
        """Numbers of errors of each kind."""
        missing = sum(number for (_, written), number in self.errors.items() if not written)
        added = sum(number for (said, _), number in self.errors.items() if not said)
        return {"num_replaced": self.errors.total() - missing - added, "num_missing": missing, "num_added": added}

    def _ordered(self) -> list[tuple[Pair, int]]:
        """Errors, the commonest first, equally common ones by symbol."""
        return sorted(self.errors.items(), key=lambda one: (-one[1], one[0]))

    def _picture(self) -> list[str]:
        """Matrix of the symbols with most errors."""
        by_symbol: Counter[str] = Counter()
        for (said, written), number in self.errors.items():
            by_symbol[said] += number
            by_symbol[written] += number
        del by_symbol[""]
        common = sorted(by_symbol.items(), key=lambda one: (-one[1], one[0]))[:MOST_SYMBOLS]
        listed = [*sorted(symbol for symbol, _ in common), ""]
        cut = f" These are the {MOST_SYMBOLS} symbols with most errors." if len(by_symbol) > MOST_SYMBOLS else ""
        note = (
            f'<p class="faint">A row for each symbol of the references, a column for each that the model writes in its '
            f"place. {BLANK} is no symbol: its column has what is missing, its row what is too many.{cut}</p>"
        )
        return [note, _matrix(listed, self.errors)]

    def _listed(self) -> str:
        rows = [("reference → model", "times", "of the symbol", "words")]
        for (said, written), number in self._ordered()[:MOST_PAIRS]:
            share = f"{100.0 * number / self.symbols[said]:.1f} %" if said else "–"
            words = ", ".join(one.source for one in self.examples[said, written])
            rows.append((f"{said or BLANK} → {written or BLANK}", f"{number:,}", share, words))
        return table(rows, text_columns=(3,))


def _matrix(symbols: Sequence[str], errors: Counter[Pair]) -> str:
    """Picture of the errors between symbols."""
    labels = [symbol or BLANK for symbol in symbols]
    widest = max(map(cell_len, labels)) * _LETTER_WIDTH
    turns = widest > _CELL - 4
    left, top = widest + 14, widest + 16 if turns else 30.0
    size = _CELL * len(labels)
    most = max((errors[said, written] for said in symbols for written in symbols), default=0)
    shapes = [
        f'<path d="M{left + at:.0f} {top:.0f}V{top + size:.0f}M{left:.0f} {top + at:.0f}H{left + size:.0f}" '
        'stroke="var(--line)" stroke-width=".5"/>'
        for at in range(0, size + 1, _CELL)
    ]
    for index, label in enumerate(labels):
        middle = (index + 0.5) * _CELL
        shapes.append(
            f'<text x="{left - 7:.0f}" y="{top + middle + 5:.0f}" text-anchor="end" class="name">{escape(label)}</text>'
        )
        x, y = left + middle, top - 10
        anchor = f'transform="rotate(-90 {x:.0f} {y:.0f})" dy="5"' if turns else 'text-anchor="middle"'
        shapes.append(f'<text x="{x:.0f}" y="{y:.0f}" {anchor} class="name">{escape(label)}</text>')
    for row, said in enumerate(symbols):
        for column, written in enumerate(symbols):
            x, y = left + column * _CELL, top + row * _CELL
            if said == written:
                shapes.append(f'<rect x="{x:.0f}" y="{y:.0f}" width="{_CELL}" height="{_CELL}" fill="var(--tint)"/>')
            if number := errors[said, written]:
                opacity = _FAINTEST + (_STRONGEST - _FAINTEST) * number / most
                tip = escape(f"{labels[row]} → {labels[column]}: {number:,}")
                shapes.append(
                    f'<g><title>{tip}</title><rect x="{x:.0f}" y="{y:.0f}" width="{_CELL}" height="{_CELL}" '
                    f'fill="var(--first)" fill-opacity="{opacity:.2f}"/><text x="{x + _CELL / 2:.0f}" '
                    f'y="{y + _CELL / 2 + 4:.0f}" text-anchor="middle" class="number">{number:,}</text></g>'
                )
    width, height = left + size + 2, top + size + 2
    words = "Errors of each symbol of the references; the next table lists the commonest"
    return (
        "<style>svg text.name { font-size: 15px; fill: var(--ink); } svg text.number { fill: var(--ink); }</style>\n"
        f'<div class="wide"><svg class="map" style="width:{width:.0f}px" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'role="img" aria-label="{words}">\n' + "\n".join(shapes) + "\n</svg></div>"
    )


def _words(words: Sequence[WrongWord]) -> str:
    """Table of wrong words, whose wrong symbols are underlined."""
    head = ("word", "reference", "model", "wrong", "probability")
    cells = "".join(
        f'<th scope="col"{" class=text" if name in ("reference", "model") else ""}>{name}</th>' for name in head
    )
    rows = [
        f'<tr><th scope="row" dir="auto">{escape(one.source)}</th>'
        + "".join(f'<td class="text" dir="auto">{_marked(one, side)}</td>' for side in (0, 1))
        + f"<td>{one.num_wrong}</td><td>{one.probability:.3f}</td></tr>"
        for one in words
    ]
    body = "\n".join(rows)
    return f'<div class="wide"><table>\n<thead><tr>{cells}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>'


def _marked(word: WrongWord, side: int) -> str:
    """One side of a word; its wrong symbols, and a sign where one is missing, are bold and underlined."""
    shown: list[str] = []
    for pair in word.pairs:
        text = escape(pair[side] or BLANK)
        shown.append(text if pair[0] == pair[1] else f"<b><u>{text}</u></b>")
    return escape(word.separator).join(shown)
