"""Scored pairs: log probabilities, attention and word alignments of given pairs, by forced decoding."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp
from typing import final

import numpy as np
from numpy.typing import NDArray

from heedful.engines.engine import Backend, score_sorted
from heedful.errors import UsageError
from heedful.search.forced import ForcedDecoding
from heedful.text.encoding import encode_source, encode_target
from heedful.text.links import Links, format_pharaoh, links_from_weights, merge_weights
from heedful.text.quoting import shortened
from heedful.text.tokenizer import TextConfig, Tokenizer
from heedful.text.vocabulary import EOS

TextPair = tuple[str, str]
"""Source and target texts."""


@final
@dataclass(frozen=True, eq=False)
class ScoredPair:
    """Pair whose target was scored token by token, given its source.

    Attributes:
        source: source text.
        target: target text.
        token_log_probs: log probability of each token in `target_pieces`, in nats.
        source_pieces: source tokens as the model read them, EOS included.
        target_pieces: target tokens and EOS; without EOS where the target was truncated, for it does not end there.
        attention: [target piece, source piece] weights; None unless requested.
        alignment: links (source word, target word), 0-based; None unless requested.
        was_cut: whether a side was longer than the model accepts and was truncated.
        alignment_shift: number of steps between the one that predicts a token and the one whose attention aligns it.
        has_end: whether the last target token is EOS.

    Example:
        >>> pair = ScoredPair("Guten Tag", "Good day", (-0.1, -0.3, -0.1), ("Guten", "Tag"), ("Good", "day", "<eos>"))
        >>> pair
        <ScoredPair 'Guten Tag' -> 'Good day', log_prob -0.50>
    """

    source: str
    target: str
    token_log_probs: tuple[float, ...]
    source_pieces: tuple[str, ...]
    target_pieces: tuple[str, ...]
    attention: NDArray[np.float32] | None = None
    alignment: tuple[tuple[int, int], ...] | None = None
    was_cut: bool = False
    alignment_shift: int = 0
    has_end: bool = True

    def __repr__(self) -> str:
        has = ", with attention" if self.attention is not None else ""
        texts = f"{shortened(self.source)} -> {shortened(self.target)}"
        return f"<ScoredPair {texts}, log_prob {self.log_prob:.2f}{has}>"

    @property
    def log_prob(self) -> float:
        """Log probability of the target given the source, in nats: the sum over its tokens."""
        return float(np.sum(self.token_log_probs))

    @property
    def per_token(self) -> float:
        """Mean log probability per token."""
        return self.log_prob / max(1, len(self.token_log_probs))

    @property
    def perplexity(self) -> float:
        """Perplexity: exp(-per_token)."""
        return exp(min(-self.per_token, 700.0))

    def pharaoh(self) -> str:
        """Write the alignment as ``0-0 1-2``.

        Returns:
            Source-target links between words in Pharaoh format; empty without an alignment.
        """
        return format_pharaoh(self.alignment or ())

    def token_alignment(self) -> Links:
        """Compute links between tokens, whereas `alignment` links words.

        Returns:
            Links (source token, target token), 0-based, without EOS; empty without attention.
        """
        if self.attention is None:
            return []
        rows = self.attention[self.alignment_shift :]
        num_targets = min(len(self.target_pieces) - self.has_end, len(rows))
        return links_from_weights(rows, len(self.source_pieces) - 1, num_targets)


def word_links(weights: NDArray[np.floating], source_words: Sequence[int], target_words: Sequence[int]) -> Links:
    """Link each target word to the source word that it attends to most.

    Before the largest weight is taken, weights are averaged over the tokens of a target word and summed over the tokens
    of a source word; this is closer to manual alignments than merging links between tokens afterwards.

    Args:
        weights: [target token, source token]; rows and columns beyond the two lists, such as EOS, are dropped.
        source_words: 0-based word index of each source token.
        target_words: 0-based word index of each target token.

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


def num_scored_characters(tokenizer: Tokenizer, text: str, config: TextConfig) -> int:
    """Count the characters of a target whose tokens are scored.

    Returns:
        The number of characters, after normalization; of a target that is truncated, those of its remaining tokens.
    """
    ids, was_cut = encode_target(tokenizer, text, config)
    return len(tokenizer.decode(ids.tolist()) if was_cut else tokenizer.normalize(text))


@final
@dataclass(frozen=True)
class PairScorer:
    """Scorer of text pairs with one model."""

    backend: Backend
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    text: TextConfig
    alignment_shift: int = 0
    """Number of steps between the one that predicts a token and the one whose attention aligns it: 1 where the model
    learned to align the token that it reads."""

    def score(self, pairs: Sequence[TextPair], attention: bool, batch_tokens: int) -> Iterator[ScoredPair]:
        """Score pairs.

        Args:
            pairs: pairs of a source and a target; either may be blank.
            attention: whether attention and alignment are needed.
            batch_tokens: maximum number of source positions in a batch.

        Yields:
            The scored pairs, in order.

        Raises:
            UsageError: the model has no attention, or the backend cannot score given outputs.
        """
        if reason := self.backend.supports_scoring(attention):
            raise UsageError(f"{self.backend.name}: {reason}")
        sources = [encode_source(self.source_tokenizer, source, self.text) for source, _ in pairs]
        # Targets are truncated like sources, because training saw no longer ones.
        targets = [encode_target(self.target_tokenizer, target, self.text) for _, target in pairs]
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
        has_end = target[-1:] == [EOS]
        if decoding.weights is not None:
            source_words = self.source_tokenizer.word_indices(source[:-1])
            weights = decoding.weights[self.alignment_shift :]
            target_words = self.target_tokenizer.word_indices(target[: len(target) - has_end])
            links = tuple(word_links(weights, source_words, target_words[: len(weights)]))
        return ScoredPair(
            *pair,
            tuple(decoding.log_probs.tolist()),
            tuple(self.source_tokenizer.pieces(source)),
            tuple(self.target_tokenizer.pieces(target)),
            decoding.weights,
            links,
            was_cut,
            self.alignment_shift,
            has_end,
        )
