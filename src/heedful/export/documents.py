"""Graphs of a hierarchical classifier: one for the words of sentences, one for the sentences of documents."""

from pathlib import Path
from typing import Final, final

import numpy as np
import torch
from torch import Tensor, nn

from heedful.engines.documents import SENTENCES, WORDS
from heedful.export.onnx import record_graph
from heedful.models.hierarchical import HierarchicalClassifier
from heedful.models.label_model import Encoded
from heedful.search.inputs import InputArrays, InputDraw, IntArray, TokenArrays, token_draw, token_sequences
from heedful.text.vocabulary import EOS

_LENGTHS: Final = torch.tensor([4, 3, 2])
_SENTENCE_TOKENS: Final = 6
"""Average length of a drawn sentence."""


@final
class _Words(nn.Module):
    def __init__(self, model: HierarchicalClassifier) -> None:
        super().__init__()
        self.model = model

    def forward(self, items: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        vectors, weights = self.model.words.pool(self.model.embedding(items), lengths)
        return (vectors,) if weights is None else (vectors, weights)


@final
class _Sentences(nn.Module):
    def __init__(self, model: HierarchicalClassifier) -> None:
        super().__init__()
        self.model = model

    def forward(self, items: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        vectors, weights = self.model.sentences.pool(items, lengths)
        log_probs = self.model.log_probs(self.model.scores(Encoded(vectors)))
        return (log_probs, vectors) if weights is None else (log_probs, vectors, weights)


def record_levels(model: HierarchicalClassifier, folder: Path, max_length: int) -> None:
    """Write both graphs.

    Args:
        model: in the form that `heedful.export.onnx.recordable` makes.
        max_length: maximum number of tokens of a document.

    Raises:
        UsageError: the model cannot be written as a graph.
    """
    rows, width = len(_LENGTHS), int(_LENGTHS.max())
    size = 2 * model.config.hidden_size
    ids = torch.full((rows, width), EOS)
    items = torch.zeros(rows, width, size)
    axes, own = {0: "sequence", 1: "position"}, {0: "sequence"}
    weights = ["weights"] if model.has_attention else []
    for module, example, outputs, name in (
        (_Words(model), ids, ["vectors"], WORDS),
        (_Sentences(model), items, ["log_probs", "vectors"], SENTENCES),
    ):
        inputs = {"items": (example, axes), "lengths": (_LENGTHS, own)}
        record_graph(module, inputs, {}, [*outputs, *weights], folder / name, max_length)


def document_draw(num_tokens: int) -> InputDraw:
    """Return a function that draws random documents of several sentences.

    Returns:
        A function that draws ordinary tokens, and EOS after each sentence.
    """
    draw_tokens = token_draw(num_tokens)

    def draw(num_positions: IntArray, generator: np.random.Generator) -> InputArrays:
        sequences = token_sequences(draw_tokens(num_positions, generator))
        ends = (generator.integers(0, _SENTENCE_TOKENS, len(ids)) == 0 for ids in sequences)
        return TokenArrays([np.where(end, EOS, ids) for end, ids in zip(ends, sequences, strict=True)])

    return draw
