"""Map of attention between words, as text and pictures show it; the page merges pieces by itself."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import UsageError
from heedful.pages.sentence import RoleName, SentenceView
from heedful.pages.words import ROOT_SIGN, START_SIGN, Words
from heedful.text.links import merge_weights


@final
@dataclass(frozen=True, eq=False)
class WordMap:
    """Attention weights between the words of two texts."""

    columns: tuple[str, ...]
    rows: tuple[str, ...]
    weights: NDArray[np.float64]
    """[row, column]"""
    title: str
    tree: tuple[tuple[int, int], ...] = ()
    """Cells of the arcs of the tree with the largest sum of weights."""

    @staticmethod
    def between(
        columns: Words, rows: Words, weights: NDArray[np.float32], title: str, tree: NDArray[np.int64] | None = None
    ) -> "WordMap":
        """Merge the pieces of a map into words; a text of a single word is shown piece by piece.

        Args:
            columns: text that is attended to, of which a decoder has not seen the last token.
            weights: [row piece, column piece].
            tree: [row piece] piece that is its head, the first column being the root; None = no tree.

        Returns:
            The map; arcs within a word are left out.
        """
        columns, rows = columns.opened(), rows.opened()
        arcs = [] if tree is None else [(rows.word_of[row], columns.word_of[head]) for row, head in enumerate(tree)]
        cells = tuple((row, column) for row, column in arcs if column != row + 1)
        seen = columns.word_of[: weights.shape[1]]
        merged = merge_weights(weights, seen, rows.word_of)
        return WordMap(columns.words[: seen[-1] + 1], rows.words, merged, title, cells)


def map_within(view: SentenceView, role: RoleName) -> WordMap:
    """Make the map of attention within the source, or within the output.

    Args:
        role: encoder or decoder.

    Returns:
        The mean over the heads of the highest layer; with a single head also its tree.

    Raises:
        UsageError: the model has no such attention, or this engine does not give it.
    """
    maps = [one for one in view.maps if one.role == role]
    if not maps:
        reason = (
            view.missing.get("layers")
            or view.missing.get("heads")
            or f"{view.model} has no attention within the {_TEXTS[role]}"
        )
        raise UsageError(f"--attention {role}: {reason}")
    highest = maps[-1]
    rows = view.source if role == "encoder" else view.outputs[0].words
    sign = START_SIGN if role == "decoder" else ROOT_SIGN if highest.has_root else ""
    tree = highest.tree[0] if highest.tree is not None and len(highest.tree) == 1 else None
    title = view.text if role == "encoder" else view.outputs[0].text
    return WordMap.between(rows.after(sign) if sign else rows, rows, highest.weights.mean(axis=0), title, tree)


_TEXTS: dict[str, str] = {"encoder": "source", "decoder": "output"}
