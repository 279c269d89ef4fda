"""Toy engines whose answers can be worked out by hand, and a slow search to compare with.

`Toy` gives each (source, prefix) its own log probabilities, drawn from a hash. It reads the prefix out of the state
that it is handed, where it is kept token by token: a search that keeps, reorders or feeds wrongly gets the log
probabilities of another prefix, and its totals no longer equal those of `Toy.rescore`.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from heedful.search.array_scores import ArrayScores
from heedful.search.config import SearchConfig
from heedful.search.interface import Hypothesis
from heedful.text.vocabulary import BOS, EOS, PAD, UNK

Tokens = tuple[int, ...]
Edit = Callable[[np.ndarray, Tokens, Tokens], None]


@dataclass
class State:
    """The sources still in the batch, and what each of their hypotheses has been fed, the start mark first."""

    sources: list[Tokens]
    prefixes: list[list[Tokens]]
    width: int
    is_used: bool = False


@dataclass
class Toy:
    """A model of random, fixed log probabilities; `edit(logits, source, prefix)` may change them."""

    vocab_size: int = 7
    seed: int = 0
    sharpness: float = 2.0
    edit: Edit | None = None
    has_weights: bool = True
    rows_fed: list[int] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    starts: int = 0
    _known: dict[tuple[Tokens, Tokens], np.ndarray] = field(default_factory=dict)

    def log_probs(self, source: Tokens, prefix: Tokens) -> np.ndarray:
        """[vocab] log probabilities after a prefix (without start mark)."""
        if (source, prefix) not in self._known:
            generator = np.random.default_rng(zlib.crc32(repr((self.seed, source, prefix)).encode()))
            logits = generator.normal(size=self.vocab_size) * self.sharpness
            if self.edit is not None:
                self.edit(logits, source, prefix)
            finite = logits[np.isfinite(logits)]
            shift = finite.max() + np.log(np.exp(finite - finite.max()).sum()) if finite.size else 0.0
            self._known[source, prefix] = logits - shift
        return self._known[source, prefix]

    def weights(self, source: Tokens, prefix: Tokens) -> np.ndarray:
        """[position] attention of the token after a prefix."""
        generator = np.random.default_rng(zlib.crc32(repr((self.seed, "weights", source, prefix)).encode()))
        energies = np.exp(generator.normal(size=len(source)) * 2)
        return (energies / energies.sum()).astype(np.float32)

    def rescore(self, source: Sequence[int], hypothesis: Hypothesis) -> list[float]:
        """The log probability of each generated token, by forced decoding."""
        tokens = hypothesis.token_ids + ((EOS,) if hypothesis.finish_reason == "eos" else ())
        place = tuple(int(token) for token in source) or (EOS,)
        return [float(self.log_probs(place, tokens[:step])[token]) for step, token in enumerate(tokens)]

    def start(self, source: np.ndarray, source_lengths: np.ndarray, num_hypotheses: int) -> State:
        """Check the batch and begin."""
        self.starts += 1
        assert source.dtype == np.int64
        assert source.shape == (source_lengths.size, source_lengths.max())
        assert source_lengths.min() >= 1
        sources = []
        for row, length in zip(source, source_lengths, strict=True):
            assert (row[length:] == PAD).all()
            sources.append(tuple(row[:length].tolist()))
        return State(sources, [[()] * num_hypotheses for _ in sources], source.shape[1])

    def step(
        self, state: object, tokens: np.ndarray, parents: np.ndarray | None, keep: np.ndarray | None
    ) -> tuple[ArrayScores, State]:
        """Keep, reorder, feed."""
        assert isinstance(state, State)
        assert not state.is_used, "a state was used twice"
        state.is_used = True
        sources, prefixes = state.sources, state.prefixes
        if keep is not None:
            assert (np.diff(keep) > 0).all()
            assert 0 < keep.size < len(sources), "keep is given only when a row leaves"
            sources, prefixes = [sources[row] for row in keep], [prefixes[row] for row in keep]
        if parents is not None:
            assert parents.shape == tokens.shape
            prefixes = [[row[parent] for parent in chosen] for row, chosen in zip(prefixes, parents, strict=True)]
        assert tokens.shape == (len(sources), len(prefixes[0]))
        assert ((tokens >= 0) & (tokens < self.vocab_size)).all()
        prefixes = [
            [(*prefix, int(token)) for prefix, token in zip(row, fed, strict=True)]
            for row, fed in zip(prefixes, tokens, strict=True)
        ]
        assert all(prefix[0] == BOS for row in prefixes for prefix in row)
        self.rows_fed.append(len(sources))
        return self._scores(sources, prefixes, state.width), State(sources, prefixes, state.width)

    def _scores(self, sources: list[Tokens], prefixes: list[list[Tokens]], width: int) -> ArrayScores:
        weights = np.zeros((len(sources), len(prefixes[0]), width), dtype=np.float32)
        for row, source in enumerate(sources):
            for place, prefix in enumerate(prefixes[row]):
                weights[row, place, : len(source)] = self.weights(source, prefix[1:])
        log_probs = [
            [self.log_probs(source, prefix[1:]) for prefix in row]
            for source, row in zip(sources, prefixes, strict=True)
        ]
        return ArrayScores(np.array(log_probs), weights if self.has_weights else None)


def never_ends(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
    """Make the end mark impossible."""
    logits[EOS] = -np.inf


def no_marks(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
    """Make filling, unknown token and start mark impossible, so that all that is left is allowed anyway."""
    logits[[PAD, UNK, BOS]] = -np.inf


def ends_at_length(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
    """Copy the source's length: the end mark is certain after as many tokens, and impossible before."""
    if len(prefix) == len(source) - 1:
        logits[np.arange(logits.size) != EOS] = -np.inf
    else:
        logits[EOS] = -np.inf


@dataclass(order=True)
class Found:
    """A hypothesis of the slow search: what it is, and what made it."""

    score: float
    log_prob: float
    tokens: Tokens
    has_ended: bool


def score_of(log_prob: float, length: int, config: SearchConfig) -> float:
    """The formula, written out once more."""
    if config.length_penalty == "gnmt":
        return log_prob / ((5 + length) / 6) ** config.alpha
    return log_prob / length**config.alpha


def slow_search(engine: Toy, source: Tokens, config: SearchConfig, cap: int) -> list[Found]:
    """Search one source with lists, following the rule's text and nothing of the fast search."""
    live: list[tuple[float, Tokens]] = [(0.0, ())]
    found: list[Found] = []
    for step in range(cap):
        offers = []
        for place, (log_prob, prefix) in enumerate(live):
            for token, value in enumerate(engine.log_probs(source, prefix).tolist()):
                is_banned = token in (PAD, BOS) or (token == UNK and config.forbid_unknown)
                if not is_banned and not (token == EOS and step < config.min_length) and value > -np.inf:
                    offers.append((-(log_prob + value), place, token, prefix))
        offers.sort()
        going = []
        for rank, (negative, _, token, prefix) in enumerate(offers):
            is_at_cap = step + 1 == cap
            if rank < config.beam and (token == EOS or is_at_cap):
                tokens = prefix if token == EOS else (*prefix, token)
                score = score_of(-negative, step + 1, config)
                found.append(Found(score, -negative, tokens, token == EOS))
            elif token != EOS and not is_at_cap:
                going.append((-negative, (*prefix, token)))
        live = going[: config.beam]
        if not live:
            break
        if config.alpha == 0:
            best = sorted((one.log_prob for one in found), reverse=True)[: config.nbest]
            if len(best) == config.nbest and best[-1] >= live[0][0]:
                break
        elif len(found) >= config.beam:
            if max(one.score for one in found) >= score_of(live[0][0], step + 1, config):
                break
    return sorted(found, key=lambda one: -one.score)[: config.nbest]


def all_outputs(engine: Toy, source: Tokens, config: SearchConfig, cap: int) -> list[Found]:
    """Enumerate every output up to the cap, best score first."""
    found: list[Found] = []

    def extend(prefix: Tokens, log_prob: float) -> None:
        for token, value in enumerate(engine.log_probs(source, prefix).tolist()):
            if token in (PAD, BOS) or value == -np.inf:
                continue
            length, total = len(prefix) + 1, log_prob + value
            if token == EOS or length == cap:
                tokens = prefix if token == EOS else (*prefix, token)
                found.append(Found(score_of(total, length, config), total, tokens, token == EOS))
            else:
                extend((*prefix, token), total)

    extend((), 0.0)
    return sorted(found, reverse=True)
