"""Unknown words of outputs, replaced by translations of the source words that they attend to.

Luong et al. 2015, arXiv:1508.04025, section 3.3; Jean et al. 2015, arXiv:1412.2007, section 3.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import UsageError
from heedful.runtime.engine import DEFAULT_BATCH_TOKENS, Backend, read_sorted
from heedful.search.interface import Hypothesis, IntArray
from heedful.text.dictionary import Dictionary, replace_unknown
from heedful.text.links import merge_weights
from heedful.text.tokenizer import TextConfig, Tokenizer
from heedful.text.vocabulary import UNK


@final
@dataclass(frozen=True)
class UnknownWords:
    """Replaces the unknown words of a model's outputs.

    Attributes:
        dictionary: of source words; one that it does not have is copied.
        backend: reads outputs once more, to see what their unknown words attend to.
        source_tokenizer: of the source side.
        target_tokenizer: of the target side, whose tokens are words.
    """

    dictionary: Dictionary
    backend: Backend
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer

    def check(self, text: TextConfig) -> None:
        """Refuse a model whose unknown tokens cannot be replaced.

        Args:
            text: what the model's tokens are.

        Raises:
            UsageError: its targets are no words, or it has no attention.
        """
        if text.target_units != "words":
            raise UsageError(f"replace_unknown: outputs of this model are {text.target_units}, not words; leave it out")
        if reason := self.backend.supports_reading(True):
            raise UsageError(f"replace_unknown: {reason}")

    def replaced(
        self,
        texts: Sequence[str],
        source_ids: Sequence[IntArray],
        found: Sequence[Sequence[Hypothesis]],
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
    ) -> dict[tuple[int, int], str]:
        """Write outputs that have unknown words without them.

        Args:
            texts: the sources as they stand in the text.
            source_ids: [position] ids of each, ending in eos.
            found: for each source its hypotheses.
            batch_tokens: most source positions read together.

        Returns:
            The text of each output that had an unknown word, by the places of its source and of the hypothesis.

        Cost: outputs with unknown words are read once more where their attention is not known; nothing where there is
            none.
        """
        places = [
            (row, rank)
            for row, hypotheses in enumerate(found)
            for rank, hypothesis in enumerate(hypotheses)
            if UNK in hypothesis.token_ids
        ]
        unread = [place for place in places if found[place[0]][place[1]].weights is None]
        readings = read_sorted(
            self.backend,
            [source_ids[row] for row, _ in unread],
            [found[row][rank].token_ids for row, rank in unread],
            batch_tokens=batch_tokens,
            need_alignment=bool(unread),
        )
        weights = {place: reading.weights for place, reading in zip(unread, readings, strict=True)}
        written: dict[tuple[int, int], str] = {}
        for row, rank in places:
            hypothesis = found[row][rank]
            attention = hypothesis.weights if hypothesis.weights is not None else weights[row, rank]
            if attention is not None:
                written[row, rank] = self._write(texts[row], source_ids[row], hypothesis.token_ids, attention)
        return written

    def _write(self, text: str, source_ids: IntArray, token_ids: Sequence[int], weights: NDArray[np.floating]) -> str:
        indices = self.source_tokenizer.word_indices(source_ids[:-1].tolist())
        by_word = merge_weights(weights, indices, range(len(token_ids)))
        # A source that was cut has more words than were read.
        words = [word for word in self.source_tokenizer.normalize(text).split(" ") if word][: by_word.shape[1]]
        output = self.target_tokenizer.pieces(token_ids)
        return " ".join(replace_unknown(output, by_word, words, self.dictionary))
