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
from heedful.search.constraints import Constraints
from heedful.search.inputs import InputArrays
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

    def start(self, inputs: InputArrays, num_hypotheses: int) -> State:
        """Check the batch and begin."""
        self.starts += 1
        source, source_lengths = inputs.named_arrays().values()
        assert source.dtype == np.int64
        assert source.shape == (source_lengths.size, inputs.width)
        assert inputs.width == source_lengths.max()
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


@dataclass
class SlowGroup:
    """A group of the slow search's beam: its live hypotheses (log probability less charges, tokens), and its finds."""

    beam_state: list[tuple[float, Tokens]] = field(default_factory=lambda: [(0.0, ())])
    found: list[Found] = field(default_factory=list)
    num_steps: int = 0


def score_of(log_prob: float, length: int, config: SearchConfig) -> float:
    """The formula, written out once more."""
    lp = ((5 + length) / 6) ** config.alpha if config.length_penalty == "gnmt" else length**config.alpha
    return log_prob / lp + config.length_reward * length


def stands_in(phrase: Sequence[int], tokens: Sequence[int]) -> bool:
    """Whether a phrase stands in a sequence, by way of text."""
    as_text = [" " + " ".join(map(str, ids)) + " " for ids in (phrase, tokens)]
    return as_text[0] in as_text[1]


def begun_of(phrase: Sequence[int], tokens: Tokens) -> int:
    """How many first tokens of a phrase, but not all, a sequence ends in."""
    return max(size for size in range(len(phrase)) if tokens[len(tokens) - size :] == tuple(phrase[:size]))


def still_needed(tokens: Tokens, constraints_of: Constraints) -> int:
    """Tokens that an output needs to hold its phrases, one after the other, with gaps where phrases are banned."""
    gap = int(any(len(phrase) > 1 for phrase in constraints_of.banned))
    whole = [p for p in constraints_of.required if not any(p != q and stands_in(p, q) for q in constraints_of.required)]
    missing = [phrase for phrase in set(map(tuple, whole)) if not stands_in(phrase, tokens)]
    pending = max((begun_of(phrase, tokens) for phrase in constraints_of.banned), default=0)
    begun = [begun_of(phrase, tokens) for phrase in missing]
    return sum(len(phrase) + gap for phrase in missing) - max(
        (size + gap for size in begun if not gap or pending <= size), default=0
    )


def may_follow(token: int, prefix: Tokens, config: SearchConfig, constraints_of: Constraints, cap: int) -> bool:
    """Whether the settings and the demand let a token follow a sequence."""
    step, tokens = len(prefix), (*prefix, token)
    if step < len(constraints_of.prefix):
        return token == constraints_of.prefix[step]
    if token in (PAD, BOS) or (token == UNK and config.forbid_unknown):
        return False
    if token == EOS:
        return step >= config.min_length and all(stands_in(phrase, prefix) for phrase in constraints_of.required)
    if any(tokens[-len(phrase) :] == tuple(phrase) for phrase in constraints_of.banned):
        return False
    for phrase in map(tuple, constraints_of.whole):
        others = [ids for ids in map(tuple, constraints_of.required) if ids != phrase and not stands_in(ids, phrase)]
        if token in constraints_of.continuing and prefix[len(prefix) - len(phrase) :] == phrase:
            if not any(token in ids for ids in others):
                return False
    size = config.no_repeat_ngram_size
    if size and len(tokens) >= size and tokens[-size:] in [tokens[at : at + size] for at in range(len(tokens) - size)]:
        return False
    return still_needed(tokens, constraints_of) <= cap - (step + 1)


def slow_step(
    engine: Toy,
    source: Tokens,
    group: SlowGroup,
    taken: list[int],
    config: SearchConfig,
    constraints_of: Constraints,
    cap: int,
) -> None:
    """One step of a group; `taken` are the tokens that earlier groups took at this step, and grows by its own."""
    size, step = config.beam // config.num_groups, group.num_steps
    candidates = []
    for place, (log_prob, prefix) in enumerate(group.beam_state):
        for token, value in enumerate(engine.log_probs(source, prefix).tolist()):
            if value == -np.inf or not may_follow(token, prefix, config, constraints_of, cap):
                continue
            is_charged = token in prefix and step >= len(constraints_of.prefix)
            paid = value - value * (1.0 - config.repetition_penalty) if is_charged else value
            key = log_prob + paid - config.diversity * taken.count(token)
            candidates.append((-key, place, token, log_prob + paid, prefix))
    candidates.sort()
    if constraints_of.required:
        turns: dict[int, int] = {}
        dealt = []
        for offer in candidates:
            bank = still_needed((*offer[4], offer[2]), constraints_of)
            turns[bank] = turns.get(bank, -1) + 1
            dealt.append((turns[bank], bank, offer))
        candidates = [offer for _, _, offer in sorted(dealt)]
    if size == 1:
        candidates = candidates[:1]
    taken += [token for _, _, token, _, _ in candidates if token != EOS][:size]
    going = []
    for rank, (_, _, token, total, prefix) in enumerate(candidates):
        is_at_cap = step + 1 == cap
        if rank < size and (token == EOS or is_at_cap):
            tokens = prefix if token == EOS else (*prefix, token)
            group.found.append(Found(score_of(total, step + 1, config), total, tokens, token == EOS))
        elif token != EOS and not is_at_cap:
            going.append((total, (*prefix, token)))
    group.beam_state = going[:size]
    group.num_steps += 1


def may_stop(group: SlowGroup, config: SearchConfig) -> bool:
    """The rules called likely and full."""
    if config.stopping == "certain" or not group.beam_state:
        return False
    best_live = max(log_prob for log_prob, _ in group.beam_state)
    size = config.beam // config.num_groups
    if config.stopping == "full":
        best_scores = sorted((one.score for one in group.found), reverse=True)[:size]
        return len(best_scores) == size and best_scores[-1] >= score_of(best_live, group.num_steps, config)
    if config.alpha == 0 and config.length_reward == 0:
        best = sorted((one.log_prob for one in group.found), reverse=True)[: config.nbest]
        return len(best) == config.nbest and best[-1] >= best_live
    if len(group.found) < size:
        return False
    return max(one.score for one in group.found) >= score_of(best_live, group.num_steps, config)


def slow_search(
    engine: Toy, source: Tokens, config: SearchConfig, cap: int, constraints_of: Constraints | None = None
) -> list[Found]:
    """Search one source with lists, following the rule's text and nothing of the fast search.

    Where the rule is called certain, nothing stops the slow search but the cap.
    """
    groups = [SlowGroup() for _ in range(config.num_groups)]
    for _ in range(cap):
        taken: list[int] = []
        for group in groups:
            slow_step(engine, source, group, taken, config, constraints_of or Constraints(), cap)
            if may_stop(group, config):
                group.beam_state = []
    ordered = sorted((one for group in groups for one in group.found), key=lambda one: -one.score)
    distinct = {(one.tokens, one.has_ended): one for one in reversed(ordered)}
    return [one for one in ordered if distinct[one.tokens, one.has_ended] is one][: config.nbest]


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
