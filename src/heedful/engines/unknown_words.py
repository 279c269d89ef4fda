"""Unknown words in outputs, replaced by dictionary translations of the source words that they attend to.

Luong et al. 2015, arXiv:1508.04025, section 3.3; Jean et al. 2015, arXiv:1412.2007, section 3.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from heedful.engines.engine import DEFAULT_BATCH_TOKENS, Backend, score_sorted
from heedful.errors import UsageError
from heedful.search.interface import Hypothesis, IntArray
from heedful.text.dictionary import Dictionary, replace_unknown
from heedful.text.inline_terms import source_words
from heedful.text.links import merge_weights
from heedful.text.sentences import split_sentences
from heedful.text.tokenizer import TextConfig, Tokenizer
from heedful.text.vocabulary import EOS, UNK


@final
@dataclass(frozen=True)
class UnknownWords:
    """Replacement of the unknown words in a model's outputs.

    Attributes:
        dictionary: translations of source words; a source word without an entry is copied.
        backend: backend that scores outputs, to find the source words that unknown words attend to.
        source_tokenizer: tokenizer of the source side.
        target_tokenizer: tokenizer of the target side, whose tokens are words.
        alignment_shift: number of steps between the one that predicts a token and the one whose attention aligns it.
    """

    dictionary: Dictionary
    backend: Backend
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    alignment_shift: int = 0

    def check(self, text: TextConfig) -> None:
        """Refuse a model whose unknown tokens cannot be replaced.

        Raises:
            UsageError: target tokens are not words, or the model has no attention.
        """
        if text.target_units != "words":
            raise UsageError(f"replace_unknown: outputs of this model are {text.target_units}, not words; leave it out")
        if reason := self.backend.supports_scoring(True):
            raise UsageError(f"replace_unknown: {reason}")

    def replaced(
        self,
        texts: Sequence[str],
        source_ids: Sequence[IntArray],
        hypotheses: Sequence[Sequence[Hypothesis]],
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
    ) -> dict[tuple[int, int], str]:
        """Replace the unknown words of outputs.

        Args:
            source_ids: [position] ids of each source, ending in EOS.
            hypotheses: hypotheses of each source.
            batch_tokens: maximum number of source positions in a batch.

        Returns:
            The new text of each output with unknown words, by the indices of source and hypothesis.

        Cost: one forced decoding of each output that has unknown words but no attention weights.
        """
        positions = [
            (row, rank)
            for row, ranked in enumerate(hypotheses)
            for rank, hypothesis in enumerate(ranked)
            if UNK in hypothesis.token_ids
        ]
        unscored = [position for position in positions if hypotheses[position[0]][position[1]].weights is None]
        decodings = score_sorted(
            self.backend,
            [source_ids[row] for row, _ in unscored],
            [hypotheses[row][rank].token_ids for row, rank in unscored],
            batch_tokens=batch_tokens,
            need_alignment=bool(unscored),
        )
        weights = {position: decoding.weights for position, decoding in zip(unscored, decodings, strict=True)}
        written: dict[tuple[int, int], str] = {}
        for row, rank in positions:
            hypothesis = hypotheses[row][rank]
            attention = hypothesis.weights if hypothesis.weights is not None else weights[row, rank]
            if attention is not None:
                written[row, rank] = self._write(texts[row], source_ids[row], hypothesis.token_ids, attention)
        return written

    def _write(self, text: str, source_ids: IntArray, token_ids: Sequence[int], weights: NDArray[np.floating]) -> str:
        indices = source_words(self.source_tokenizer, source_ids[:-1].tolist())
        rows = weights[self.alignment_shift :]
        # No step reads the last token of an output that was cut, so the step that predicts it aligns it.
        weights = np.concatenate([rows, weights[len(rows) : len(token_ids)]])
        by_word = merge_weights(weights, indices, range(len(token_ids)))
        # If the source was cut, the text has more words than were encoded.
        sentences = split_sentences(text) if EOS in source_ids[:-1] else [text]
        parts = (self.source_tokenizer.normalize(sentence).split(" ") for sentence in sentences)
        words = [word for part in parts for word in part if word][: by_word.shape[1]]
        output = self.target_tokenizer.pieces(token_ids)
        return " ".join(replace_unknown(output, by_word, words, self.dictionary))
