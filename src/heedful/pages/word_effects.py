"""Page of a classified text: its words shaded by attention, and by what leaving each out does."""

from collections.abc import Sequence
from html import escape

from heedful.pages.attention_text import TextView, shaded
from heedful.pages.document import document, table

MOST_LABELS_SHOWN = 10


def word_effects_page(
    title: str,
    labels: Sequence[tuple[str, float]],
    weights: Sequence[Sequence[tuple[str, float]]],
    effects: Sequence[Sequence[tuple[str, float]]],
    note: str,
) -> str:
    """Make the page.

    Args:
        labels: labels and their probabilities, the most probable first.
        weights: words of each sentence with their attention weights; all 0 from a model without attention.
        effects: the same words with the effects of leaving them out, positive where a word speaks for the label.
        note: how far weights can be trusted; empty = nothing is known.

    Returns:
        One HTML file that needs no network.
    """
    named = [("label", "probability"), *((label, f"{share:.4f}") for label, share in labels[:MOST_LABELS_SHOWN])]
    parts = [table(named)]
    if drawn := TextView("", weights).draw():
        parts += ["<h2>Attention</h2>", f'<p class="faint">{escape(TextView.explanation)}.</p>', drawn]
    largest = max((abs(effect) for words in effects for _, effect in words), default=0.0)
    lines = [f'<p dir="auto">{"".join(shaded(*word, largest) for word in words)}</p>' for words in effects]
    parts += [
        "<h2>Without each word</h2>",
        '<p class="faint">Blue words speak for the label: it is less probable without them. Orange words speak against '
        "it. Point at a word for its effect in nats.</p>",
        '<div class="document">\n' + "\n".join(lines) + "\n</div>",
    ]
    if note:
        parts.append(f"<p>{escape(note)}</p>")
    return document(title, parts)
