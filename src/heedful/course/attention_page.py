"""Page of the attention in a lesson, for models that are written out there and have no folder."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final, final

import numpy as np

from heedful.errors import ShapeError, UsageError
from heedful.pages.bundle import offline_page
from heedful.pages.sentence import ROLE_NAMES, Output, SentenceView, WeightMap
from heedful.pages.words import Words
from heedful.text.vocabulary import EOS, UNK

_END: Final = "</s>"


@final
class AttentionPage:
    """Attention between words, drawn in a notebook as a page to play with.

    Example:
        >>> AttentionPage(["le", "chat"], ["the", "cat"], {"cross": [np.eye(2)[None]]})
        <AttentionPage le chat -> the cat>
    """

    def __init__(self, source: Sequence[str], output: Sequence[str], weights: Mapping[str, Sequence[Any]]) -> None:
        """Take the words and the weights.

        Args:
            source: words that are attended to.
            output: words that the model says, in the order of its steps.
            weights: tables [head, query, key] of each layer, as arrays or tensors, by part of the model: "cross" with
                output and source as queries and keys, "encoder" with the source as both, "decoder" with the words
                that the model reads, one before each of the output.

        Raises:
            UsageError: a part is unknown.
            ShapeError: a table has another shape than its words.
        """
        sizes = {"cross": (len(output), len(source)), "encoder": (len(source),) * 2, "decoder": (len(output),) * 2}
        self.maps: Final = tuple(
            WeightMap(role, layer, np.asarray(table, dtype=np.float32))
            for role, layers in weights.items()
            for layer, table in enumerate(layers)
        )
        """Tables of all layers."""
        for each in self.maps:
            if each.role not in ROLE_NAMES:
                raise UsageError(f"weights: no part {each.role!r}; it is one of {', '.join(ROLE_NAMES)}")
            if each.weights.ndim != 3 or each.weights.shape[1:] != sizes[each.role]:
                raise ShapeError(
                    f"weights: a table of {each.role!r} is {list(each.weights.shape)}, "
                    f"but its words need [head, {', '.join(map(str, sizes[each.role]))}]"
                )
        self.source: Final = tuple(source)
        """Words that are attended to."""
        self.output: Final = tuple(output)
        """Words that the model says."""

    def __repr__(self) -> str:
        return f"<AttentionPage {' '.join(self.source)} -> {' '.join(self.output)}>"

    def to_html(self) -> str:
        """Write the page as one HTML file that needs no network."""
        source, output = (
            [f"▁{word}" if word != _END else word for word in words] for words in (self.source, self.output)
        )
        ids, texts = _ids(self.output), [_text(words) for words in (self.source, self.output)]
        view = SentenceView(
            model="",
            kind="",
            languages=("", ""),
            engine="",
            text=texts[0],
            source_ids=_ids(self.source),
            source=Words.of(_ids(self.source), source),
            was_cut=False,
            outputs=(Output(texts[1], ids, Words.of(ids, output), (), math.nan, math.nan, self._mean()),),
            maps=self.maps,
        )
        return offline_page(" → ".join(texts), view.to_dict())

    def _repr_html_(self) -> str:
        """Draw the page in a notebook."""
        return (
            f'<iframe srcdoc="{escape(self.to_html())}" sandbox="allow-scripts allow-downloads" '
            f'title="{escape(_text(self.output))}" style="width: 100%; height: 42rem; border: 0"></iframe>'
        )

    def _mean(self) -> Any:
        """Weights between output and source in the last layer, as a mean over its heads; None without any."""
        cross = [each.weights for each in self.maps if each.role == "cross"]
        return cross[-1].mean(axis=0) if cross else None


def _ids(words: Sequence[str]) -> tuple[int, ...]:
    """Stand-ins for token ids, which words do not have."""
    return tuple(EOS if word == _END else UNK for word in words)


def _text(words: Sequence[str]) -> str:
    return " ".join(word for word in words if word != _END)
