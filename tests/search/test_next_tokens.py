"""The options together, against the slow search; what each of them does alone is tested beside its own module."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import NonFiniteError, UsageError
from heedful.search.array_scores import ArrayScores
from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints, check_constraints, least_length
from heedful.search.interface import Hypothesis
from heedful.text.vocabulary import EOS, PAD
from tests.search.engines import Tokens, Toy, slow_search

SOURCES: list[Tokens] = [(5, 6, EOS), (4, EOS), (6, 4, 5, 5, EOS), (EOS,)]
PHRASE = st.lists(st.integers(4, 8), min_size=1, max_size=3).map(tuple)


def arrays(sources: Sequence[Tokens]) -> list[np.ndarray]:
    return [np.array(source, dtype=np.int64) for source in sources]


@st.composite
def configs(draw: st.DrawFn) -> SearchConfig:
    num_groups = draw(st.sampled_from([1, 1, 2, 3]))
    beam = num_groups * draw(st.integers(1, 4))
    chosen = {
        "beam": beam,
        "nbest": draw(st.integers(1, beam)),
        "num_groups": num_groups,
        "diversity": draw(st.sampled_from([0.1, 1.0, 30.0])) if num_groups > 1 else 0.0,
        "length_penalty": draw(st.sampled_from(["power", "gnmt"])),
        "alpha": draw(st.sampled_from([0.0, 0.6, 1.0])),
        "length_reward": draw(st.sampled_from([0.0, 0.7])),
        "repetition_penalty": draw(st.sampled_from([1.0, 1.0, 1.3, 4.0])),
        "min_length": draw(st.integers(0, 3)),
        "max_length_ratio": 1.0,
        "max_length_offset": draw(st.integers(1, 4)),
        "forbid_unknown": draw(st.booleans()),
        "stopping": draw(st.sampled_from(["likely", "likely", "full", "certain"])),
    }
    return SearchConfig(**chosen)


@st.composite
def constraints(draw: st.DrawFn) -> Constraints:
    required = draw(st.lists(PHRASE, max_size=2))
    banned = draw(st.lists(PHRASE, max_size=2))
    whole = [phrase for phrase in required if draw(st.booleans())]
    continuing = draw(st.lists(st.integers(4, 8), max_size=4))
    prefix = draw(st.lists(st.integers(4, 8), max_size=2).map(tuple))
    constraints_of = Constraints(prefix, required, banned, whole, continuing)
    try:
        check_constraints([constraints_of], None, 1, SearchConfig(), 99)
    except UsageError:  # a required phrase holds a banned one
        return Constraints(prefix, required, (), whole, continuing)
    return constraints_of


def agree(
    found: Sequence[Hypothesis], engine: Toy, source: Tokens, config: SearchConfig, constraints_of: Constraints
) -> None:
    """Compare with the slow search of one source."""
    checked = check_constraints([constraints_of], None, 1, config, 99)[0]
    cap = max(int((len(source) - 1) * config.max_length_ratio + config.max_length_offset), least_length(checked))
    expected = slow_search(engine, source, config, cap, constraints_of)
    if not expected:
        assert {one.finish_reason for one in found} == {"stuck"}
        return
    assert [one.token_ids for one in found] == [one.tokens for one in expected]
    assert [one.finish_reason == "eos" for one in found] == [one.has_ended for one in expected]
    assert [one.score for one in found] == pytest.approx([one.score for one in expected], rel=1e-12, abs=1e-12)
    for one in found:
        assert list(one.token_log_probs) == engine.rescore(source, one)
        assert one.log_prob == pytest.approx(sum(one.token_log_probs), rel=1e-13)


@given(
    config=configs(),
    asked=st.lists(constraints(), min_size=len(SOURCES), max_size=len(SOURCES)),
    no_repeat=st.sampled_from([0, 0, 1, 2]),
    seed=st.integers(0, 10_000),
    sharpness=st.sampled_from([0.3, 2.0, 6.0]),
)
@settings(max_examples=80, deadline=None)
def test_all_options_together_equal_a_slow_search_of_each_source_alone(
    config: SearchConfig, asked: list[Constraints], no_repeat: int, seed: int, sharpness: float
) -> None:
    if no_repeat:  # which is refused with required phrases
        config = SearchConfig(**(config.model_dump() | {"no_repeat_ngram_size": no_repeat}))
        asked = [Constraints(constraints_of.prefix, (), constraints_of.banned) for constraints_of in asked]
    engine = Toy(seed=seed, vocab_size=10, sharpness=sharpness)
    results = search(engine, arrays(SOURCES), config, max_length=99, constraints=asked)
    for source, constraints_of, found in zip(SOURCES, asked, results, strict=True):
        agree(found, engine, source, config, constraints_of)


@given(
    config=configs(),
    asked=st.lists(constraints(), min_size=len(SOURCES), max_size=len(SOURCES)),
    order=st.permutations(range(len(SOURCES))),
    is_sampling=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_neighbours_and_order_change_no_bit_whatever_is_asked(
    config: SearchConfig, asked: list[Constraints], order: list[int], is_sampling: bool
) -> None:
    if is_sampling:
        config = SearchConfig(
            method="sampling", beam=1, nbest=3, top_p=0.9, max_length_offset=4, repetition_penalty=1.5
        )
        asked = [Constraints(one.prefix, (), one.banned, index=place) for place, one in enumerate(asked)]
    engine = Toy(vocab_size=10)
    alone = [
        search(engine, arrays([source]), config, max_length=50, need_alignment=True, constraints=[constraints_of])[0]
        for source, constraints_of in zip(SOURCES, asked, strict=True)
    ]
    shuffled, ordered = [SOURCES[place] for place in order], [asked[place] for place in order]
    together = search(engine, arrays(shuffled), config, max_length=50, need_alignment=True, constraints=ordered)
    for place, found in zip(order, together, strict=True):
        assert found == alone[place]
        for one, other in zip(found, alone[place], strict=True):
            assert one.weights is not None
            np.testing.assert_array_equal(one.weights, other.weights)


@pytest.mark.parametrize("banned", [(), [(7, 7)]])
def test_tokens_of_phrases_do_not_crowd_out_the_others(banned: Sequence[Tokens]) -> None:
    def fond(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
        logits[[4, 5, 6]] += 9.0

    constraints_of = Constraints(required=[(4,), (5,), (6,)], banned=banned)
    for beam in (1, 2, 3):
        config = SearchConfig(beam=beam, nbest=beam, max_length_ratio=1.0, max_length_offset=4)
        engine = Toy(vocab_size=10, edit=fond)
        results = search(engine, arrays(SOURCES), config, max_length=99, constraints=[constraints_of] * len(SOURCES))
        for source, found in zip(SOURCES, results, strict=True):
            agree(found, engine, source, config, constraints_of)


@pytest.mark.parametrize("repetition_penalty", [1.0, 2.0])
def test_repetition_costs_in_the_score_and_not_in_log_probabilities(repetition_penalty: float) -> None:
    engine = Toy(vocab_size=9)
    config = SearchConfig(beam=4, nbest=4, repetition_penalty=repetition_penalty, max_length_offset=4, alpha=0.5)
    for source, found in zip(SOURCES, search(engine, arrays(SOURCES), config, max_length=20), strict=True):
        for one in found:
            values = engine.rescore(source, one)
            tokens = (*one.token_ids, *([EOS] if one.finish_reason == "eos" else []))
            held = [value * (repetition_penalty - 1) for at, value in enumerate(values) if tokens[at] in tokens[:at]]
            assert one.log_prob == pytest.approx(sum(values), rel=1e-12)
            assert one.score == pytest.approx((sum(values) + sum(held)) / len(values) ** 0.5, rel=1e-12)


def test_repetition_penalty_makes_outputs_less_repetitive() -> None:
    def repeats(repetition_penalty: float) -> int:
        config = SearchConfig(repetition_penalty=repetition_penalty, max_length_offset=8, alpha=0.0, min_length=6)
        results = search(Toy(vocab_size=9), arrays(SOURCES), config, max_length=20)
        return sum(len(found[0].token_ids) - len(set(found[0].token_ids)) for found in results)

    assert repeats(3.0) < repeats(1.0)


def test_a_prefix_stands_above_bans_and_costs_nothing_extra() -> None:
    engine = Toy(vocab_size=9)
    config = SearchConfig(beam=3, no_repeat_ngram_size=1, repetition_penalty=2.0, max_length_offset=5)
    constraints_of = Constraints(prefix=(4, 4, 4), banned=[(4, 4), (4,)])
    (found,) = search(engine, arrays(SOURCES[:1]), config, max_length=20, constraints=[constraints_of])
    assert found[0].token_ids[:3] == (4, 4, 4)
    assert 4 not in found[0].token_ids[3:]
    assert found[0].score == pytest.approx(found[0].log_prob / len(found[0].token_log_probs), rel=1e-12)


@pytest.mark.parametrize(
    ("constraints_of", "message"),
    [
        (Constraints(prefix=(9,)), "prefixes: token 9 is not in the vocabulary of 9"),
        (Constraints(required=[(4, 11)]), "required phrases: token 11 is not"),
        (Constraints(banned=[(4, 12)]), "banned phrases: token 12 is not"),
        (Constraints(banned=[(10,)]), "banned phrases: token 10 is not"),
    ],
)
def test_tokens_that_the_engine_does_not_know_are_refused(constraints_of: Constraints, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        search(Toy(vocab_size=9), arrays(SOURCES[:1]), SearchConfig(), max_length=9, constraints=[constraints_of])


class Blind(ArrayScores):
    """Scores that never show the whole vocabulary."""

    def full(self) -> np.ndarray:
        raise AssertionError("the whole vocabulary was asked for")

    def of(self, sources: np.ndarray, hypotheses: np.ndarray, ids: np.ndarray) -> np.ndarray:
        return self._log_probs[sources, hypotheses, ids]

    @property
    def vocab_size(self) -> int:
        return self._log_probs.shape[-1]


class BlindToy(Toy):
    def _scores(self, sources, prefixes, width):  # type: ignore[no-untyped-def]
        return Blind(super()._scores(sources, prefixes, width).full())


@pytest.mark.parametrize(
    "changes",
    [
        {"beam": 4, "nbest": 2, "repetition_penalty": 1.5, "stopping": "certain"},
        {"beam": 4, "num_groups": 2, "diversity": 1.0},
        {"method": "sampling", "beam": 1, "nbest": 3, "top_k": 4, "top_p": 0.9, "repetition_penalty": 1.5},
        {"method": "sampling", "beam": 1, "temperature": 0.0},
    ],
)
def test_only_sampling_without_top_k_looks_at_the_whole_vocabulary(changes: dict[str, object]) -> None:
    config = SearchConfig(max_length_offset=4, **changes)  # type: ignore[arg-type]
    required = () if "method" in changes else [(7, 8)]
    asked = [Constraints((4, 5), required, [(6, 6)])] * len(SOURCES)
    found = search(BlindToy(vocab_size=10), arrays(SOURCES), config, max_length=20, constraints=asked)
    assert found == search(Toy(vocab_size=10), arrays(SOURCES), config, max_length=20, constraints=asked)


@pytest.mark.parametrize("top_k", [0, 2])
def test_nan_is_refused_when_sampling_too(top_k: int) -> None:
    class Broken(Toy):
        def _scores(self, sources, prefixes, width):  # type: ignore[no-untyped-def]
            log_probs = super()._scores(sources, prefixes, width).full().copy()
            if len(prefixes[0][0]) == 2:
                log_probs[-1, 0, 5] = np.nan
            return ArrayScores(log_probs)

    config = SearchConfig(method="sampling", beam=1, nbest=2, top_k=top_k, min_length=2)
    with pytest.raises(NonFiniteError, match=r"NaN" if top_k else r"source 1, step 1: a log probability is NaN"):
        search(Broken(), arrays(SOURCES[:2]), config, max_length=9)


def test_an_empty_place_is_fed_a_token_all_the_same() -> None:
    class Watched(Toy):
        def step(self, state, tokens, parents, keep):  # type: ignore[no-untyped-def]
            assert tokens.min() >= PAD
            return super().step(state, tokens, parents, keep)

    config = SearchConfig(beam=6, num_groups=2, diversity=1.0, max_length_offset=3)
    asked = [Constraints(required=[(4, 5)]), Constraints(required=[(4,)])]
    search(Watched(vocab_size=6), arrays(SOURCES[:2]), config, max_length=9, constraints=asked)
