"""Texts with the weights of their words: as colours on a terminal, as numbers elsewhere."""

from typing import TYPE_CHECKING, Final

from heedful.text.weighted_words import weighted_sentences

if TYPE_CHECKING:
    from rich.console import Console

    from heedful.predictors.classifier import Classification

LEAST_SHOWN: Final = 0.1
"""Least share of the largest weight that a word needs for its weight to be written."""
_DARK: Final = (8, 81, 156)
"""Colour of the largest weight; smaller ones are lighter."""


def weighted_text(result: "Classification", console: "Console") -> str:
    """Write a text with the weights of its words, one sentence a line, the weight of the sentence first.

    Args:
        console: where the text is going to be printed; on one with colours, words are coloured by weight, the largest
            of the text darkest; elsewhere the weight follows each word that has a considerable one.

    Returns:
        Lines that end in a newline; none without attention.
    """
    if result.attention is None:
        return ""
    from rich.text import Text

    weights = result.attention.tolist()
    largest = max(weights, default=0.0) or 1.0
    with console.capture() as capture:
        for words in weighted_sentences(result.pieces, weights, result.text):
            line = Text(f"  {sum(weight for _, weight in words):.2f}  ")
            for word, weight in words:
                share = min(1.0, weight / largest)
                core = word.strip()
                if console.color_system is not None:
                    line.append(word[: len(word) - len(word.lstrip())])
                    line.append(core, _style(share) if share >= LEAST_SHOWN else "")
                else:
                    line.append(word + (f" ({weight:.2f})" if core and share >= LEAST_SHOWN else ""))
            console.print(line, soft_wrap=True, highlight=False)
    return capture.get()


def _style(share: float) -> str:
    red, green, blue = (round(255 + share * (part - 255)) for part in _DARK)
    return f"{'white' if share > 0.5 else 'black'} on rgb({red},{green},{blue})"
