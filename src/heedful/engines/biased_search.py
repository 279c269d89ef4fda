"""Biased search: outputs that follow the corrections of similar sources (`heedful.search.biased`)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Final, final

import numpy as np

from heedful.engines.engine import Backend, Stepwise
from heedful.engines.exact import Exact
from heedful.engines.scored_pairs import TextPair
from heedful.engines.translation_memory import MemoryMatch
from heedful.search.biased import BiasedEngine, StoredSteps, source_key, store_steps
from heedful.search.inputs import InputDraw
from heedful.search.interface import IntArray
from heedful.text.encoding import encode_source, encode_target
from heedful.text.tokenizer import TextConfig, Tokenizer

MOST_NUMBERS: Final = 1 << 25
"""Most numbers in the stored steps of a batch, which has one source at least; 128 MiB."""


@final
class KnnSearch:
    """Backends for sources that have near matches in a translation memory."""

    def __init__(
        self,
        backend: Stepwise,
        tokenizers: tuple[Tokenizer, Tokenizer],
        text: TextConfig,
        exact_draw: InputDraw | None = None,
    ) -> None:
        """Set the model.

        Args:
            backend: backend that decodes token by token.
            exact_draw: function that draws random sources, where results must be bit-identical in every batch
                (`heedful.engines.exact`); None where they need not be.
        """
        self._backend: Final = backend
        self._source, self._target = tokenizers
        self._text: Final = text
        self._exact_draw: Final = exact_draw

    def batches(
        self, texts: Sequence[str], matches: Sequence[Sequence[MemoryMatch]]
    ) -> Iterator[tuple[list[str], Backend]]:
        """Divide sources into batches whose stored steps fit into memory.

        Args:
            matches: near matches of each, one or more.

        Yields:
            The next sources, in order, and the backend that decodes them.
        """
        start = 0
        while start < len(texts):
            pairs: dict[TextPair, tuple[IntArray, list[int]]] = {}
            stop, number = start, 0
            while stop < len(texts) and (stop == start or number < MOST_NUMBERS):
                for match in matches[stop]:
                    if match.pair not in pairs:
                        pairs[match.pair] = self._encode(match.pair)
                        number += len(pairs[match.pair][1]) * len(self._target)
                stop += 1
            yield list(texts[start:stop]), self._biased(texts[start:stop], matches[start:stop], pairs)
            start = stop

    def _encode(self, pair: TextPair) -> tuple[IntArray, list[int]]:
        """Tokens of the source and of the correction."""
        source, _ = encode_source(self._source, pair[0], self._text)
        target, _ = encode_target(self._target, pair[1], self._text)
        return source, target.tolist()

    def _biased(
        self,
        texts: Sequence[str],
        matches: Sequence[Sequence[MemoryMatch]],
        pairs: Mapping[TextPair, tuple[IntArray, list[int]]],
    ) -> Backend:
        stored = self._store(pairs)
        by_source = {
            source_key(encode_source(self._source, text, self._text)[0]): StoredSteps.joined(
                [stored[match.pair] for match in near]
            )
            for text, near in zip(texts, matches, strict=True)
        }
        biased = self._backend.wrapped(lambda engine: BiasedEngine(engine, by_source))
        return Exact(biased, self._exact_draw) if self._exact_draw else biased

    def _store(self, pairs: Mapping[TextPair, tuple[IntArray, list[int]]]) -> dict[TextPair, StoredSteps]:
        """Steps of the corrections; for exact results each is decoded alone, so that no other one changes its bits."""
        engine = self._backend.make_engine(False)
        names = sorted(pairs, key=lambda pair: (len(pairs[pair][1]), pair))
        size = 1 if self._exact_draw else 32
        stored: dict[TextPair, StoredSteps] = {}
        with self._backend.single_threaded() if self._exact_draw else nullcontext():
            for start in range(0, len(names), size):
                group = names[start : start + size]
                sources, outputs = zip(*(pairs[name] for name in group), strict=True)
                stored.update(
                    zip(group, store_steps(engine, [np.array(each) for each in sources], outputs), strict=True)
                )
        return stored
