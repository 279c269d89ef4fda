"""Scored pairs: log probabilities, attention and word alignments of given pairs, by forced decoding."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp
from typing import final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import UsageError
from heedful.runtime.engine import Backend, score_sorted
from heedful.search.forced import ForcedDecoding
from heedful.text.links import Links, format_pharaoh, links_from_weights, merge_weights
from heedful.text.tokenizer import TextConfig, Tokenizer
from heedful.text.vocabulary import EOS

TextPair = tuple[str, str]
"""Source and target texts."""


@final
@dataclass(frozen=True, eq=False)
class ScoredPair:
    """Target scored token by token, given its source.

    Attributes:
        source: text.
        target: text.
        token_log_probs: of each target token and the EOS, in nats.
        source_pieces: tokens of the source as the model saw them, EOS included.
        target_pieces: tokens of the target, EOS included.
        attention: [target piece, source piece] weights; None unless asked for.
        alignment: links (source word, target word), 0-based; None unless asked for.
        was_cut: whether a side was longer than the model takes and lost its end.
    """

    source: str
    target: str
    token_log_probs: tuple[float, ...]
    source_pieces: tuple[str, ...]
    target_pieces: tuple[str, ...]
    attention: NDArray[np.float32] | None = None
    alignment: tuple[tuple[int, int], ...] | None = None
    was_cut: bool = False

    @property
    def log_prob(self) -> float:
        """Log p(target | source), in nats: the sum over tokens and EOS."""
        return float(np.sum(self.token_log_probs))

    @property
    def per_token(self) -> float:
        """Mean log probability of a token, EOS included."""
        return self.log_prob / len(self.token_log_probs)

    @property
    def perplexity(self) -> float:
        """Perplexity: exp(-per_token)."""
        return exp(min(-self.per_token, 700.0))

    def pharaoh(self) -> str:
        """Write the alignment as ``0-0 1-2``.

        Returns:
            Source-target links between words; empty where there are none.
        """
        return format_pharaoh(self.alignment or ())

    def token_alignment(self) -> Links:
        """Align tokens, where `alignment` aligns words.

        Returns:
            Links (source token, target token), 0-based, without EOS; empty where there is no attention.
        """
        if self.attention is None:
            return []
        return links_from_weights(self.attention, len(self.source_pieces) - 1, len(self.target_pieces) - 1)


def word_links(weights: NDArray[np.floating], source_words: Sequence[int], target_words: Sequence[int]) -> Links:
    """Link each target word to the source word that it attends to most.

    Weights are averaged over the tokens of a target word and summed over the tokens of a source word before the largest
    is taken; this is closer to manual alignments than merging the links between tokens afterwards.

    Args:
        weights: [target token, source token]; rows and columns beyond the two lists, such as EOS, are dropped.
        source_words: for each source token the word it belongs to, from 0.
        target_words: the same for the target.

    Returns:
        One link for each target word, except words that attend only to dropped columns.

    Raises:
        ShapeError: `weights` is smaller than the lists.

    Example:
        >>> word_links(np.array([[0.3, 0.3, 0.4], [0.4, 0.4, 0.2]]), [0, 0, 1], [0, 1])
        [(0, 0), (0, 1)]
    """
    words = merge_weights(weights, source_words, target_words)
    return links_from_weights(words, words.shape[1], words.shape[0])


def encode_source(tokenizer: Tokenizer, text: str, config: TextConfig) -> tuple[NDArray[np.int64], bool]:
    """Encode a source sentence, cut to what the model takes.

    Args:
        tokenizer: of the source side.
        text: any text; cut before tokenising, so that a huge line takes little time.
        config: the limits.

    Returns:
        [position] ids ending in eos (eos alone for blank text), and whether something was cut off.
    """
    if not text.strip():
        return np.array([EOS], dtype=np.int64), False
    # No piece is longer than 16 characters, so what is left out here could not have been kept below.
    most = 16 * config.max_tokens
    # A NUL ends a string in some libraries; to the model it is an unknown character all the same.
    ids = tokenizer.encode(text[:most].replace("\0", "\ufffd"))
    room = config.max_tokens - 1
    return np.array([*ids[:room], EOS], dtype=np.int64), len(ids) > room or len(text) > most


@final
@dataclass(frozen=True)
class PairScorer:
    """Scorer of pairs of texts with one model."""

    backend: Backend
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    text: TextConfig

    def score(self, pairs: Sequence[TextPair], attention: bool, batch_tokens: int) -> Iterator[ScoredPair]:
        """Score pairs.

        Args:
            pairs: a source and a target each; either may be blank.
            attention: whether attention and alignment are wanted.
            batch_tokens: most source positions in a batch.

        Yields:
            The scored pairs, in order.

        Raises:
            UsageError: the model has no attention, or the backend cannot score given outputs.
        """
        if reason := self.backend.supports_scoring(attention):
            raise UsageError(f"{self.backend.name}: {reason}")
        sources = [encode_source(self.source_tokenizer, source, self.text) for source, _ in pairs]
        # A target is cut as a source is: training saw none that is longer.
        targets = [encode_source(self.target_tokenizer, target, self.text) for _, target in pairs]
        decodings = score_sorted(
            self.backend,
            [ids for ids, _ in sources],
            [ids.tolist() for ids, _ in targets],
            batch_tokens=batch_tokens,
            need_alignment=attention,
        )
        for pair, (source, is_source_cut), (target, is_target_cut), decoding in zip(
            pairs, sources, targets, decodings, strict=True
        ):
            yield self._finish(pair, source.tolist(), target.tolist(), decoding, is_source_cut or is_target_cut)

    def _finish(
        self, pair: TextPair, source: list[int], target: list[int], decoding: ForcedDecoding, was_cut: bool
    ) -> ScoredPair:
        links: tuple[tuple[int, int], ...] | None = None
        if decoding.weights is not None:
            source_words = self.source_tokenizer.word_indices(source[:-1])
            links = tuple(word_links(decoding.weights, source_words, self.target_tokenizer.word_indices(target[:-1])))
        return ScoredPair(
            *pair,
            tuple(decoding.log_probs.tolist()),
            tuple(self.source_tokenizer.pieces(source)),
            tuple(self.target_tokenizer.pieces(target)),
            decoding.weights,
            links,
            was_cut,
        )
