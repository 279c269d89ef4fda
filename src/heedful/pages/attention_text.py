"""Document whose words are shaded by their attention weights, with a bar for each sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, final

from heedful.pages.attention_view import AttentionView

_LEAST_SHARE: Final = 0.05
"""Least share of the largest weight that is shaded."""
_STRONGEST: Final = 0.65
"""Opacity of the largest weight, at which the text is still easy to read."""


@final
@dataclass(frozen=True)
class TextView(AttentionView):
    """Sentences and words of a document with their weights."""

    explanation = "Words are the darker the larger their weights, and the bar before a sentence is their sum"
    sentences: Sequence[Sequence[tuple[str, float]]]
    """Words of each sentence, with the space before them, and their weights in [0, 1]."""

    def draw(self) -> str:
        totals = [sum(weight for _, weight in words) for words in self.sentences]
        largest = max((weight for words in self.sentences for _, weight in words), default=0.0)
        if not largest > 0.0:
            return ""
        lines = [
            f'<div class="sentence"><span class="bar" title="{total:.3f}">'
            f'<span style="width:{100 * total / max(totals):.0f}%"></span></span>'
            f'<p dir="auto">{"".join(shaded(text, weight, largest) for text, weight in words)}</p></div>'
            for total, words in zip(totals, self.sentences, strict=True)
        ]
        return '<div class="document">\n' + "\n".join(lines) + "\n</div>"


def shaded(text: str, value: float, largest: float) -> str:
    """Write a word on a shade of its value.

    Args:
        text: the word, with the space before it.
        value: weight or effect; a negative one has the second colour of the page.
        largest: size of the value whose shade is the strongest.

    Returns:
        HTML; plain where the value is small.
    """
    core, size = text.strip(), abs(value)
    if not core or not largest > 0.0 or size < _LEAST_SHARE * largest:
        return escape(text)
    colour = "--first" if value > 0.0 else "--second"
    shade = f"color-mix(in srgb, var({colour}) {100 * _STRONGEST * size / largest:.0f}%, transparent)"
    space = text[: len(text) - len(text.lstrip())]
    return f'{space}<mark style="background:{shade}" title="{value:.3f}">{escape(core)}</mark>'
