import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints
from heedful.search.interface import Hypothesis
from heedful.search.random_numbers import uniforms
from heedful.search.sampling import allowed, draw, probabilities
from heedful.text.vocabulary import EOS, PAD, UNK
from tests.search.engines import Tokens, Toy, all_outputs, ends_at_length, never_ends, no_marks, stands_in

SOURCES: list[Tokens] = [(5, 6, EOS), (4, EOS), (6, 4, 5, 5, EOS), (EOS,)]


def arrays(sources: Sequence[Tokens]) -> list[np.ndarray]:
    return [np.array(source, dtype=np.int64) for source in sources]


def sampling(**changes: object) -> SearchConfig:
    return SearchConfig(**{"method": "sampling", "beam": 1, "max_length_ratio": 1.0, "max_length_offset": 4, **changes})  # type: ignore[arg-type]


def slow_distribution(log_probs: Sequence[float], config: SearchConfig) -> list[float]:
    """Probabilities of the tokens, from the definitions of the limits, token by token."""
    if config.temperature == 0:
        best = max(range(len(log_probs)), key=lambda token: (log_probs[token], -token))
        return [float(token == best) for token in range(len(log_probs))]
    largest = max(log_probs)
    weights = [math.exp((value - largest) / config.temperature) for value in log_probs]
    ranked = sorted(range(len(weights)), key=lambda token: (-weights[token], token))
    if config.top_k:
        ranked = ranked[: config.top_k]
    total = math.fsum(weights[token] for token in ranked)
    kept, held = [], 0.0
    for token in ranked:
        if held < config.top_p * total and weights[token] >= config.min_p * weights[ranked[0]]:
            kept.append(token)
        held += weights[token]
    total = math.fsum(weights[token] for token in kept)
    return [weights[token] / total if token in kept else 0.0 for token in range(len(weights))]


CASES = [
    {},
    {"temperature": 0.5},
    {"temperature": 3.0},
    {"top_k": 3},
    {"top_p": 0.7},
    {"min_p": 0.3},
    {"temperature": 1.5, "top_k": 5, "top_p": 0.9, "min_p": 0.2},
]


def chi_square_limit(degrees: int) -> float:
    """Exceeded once in 1000 times (Wilson and Hilferty's approximation)."""
    return degrees * (1 - 2 / (9 * degrees) + 3.0902 * math.sqrt(2 / (9 * degrees))) ** 3


@pytest.mark.parametrize("changes", CASES)
@pytest.mark.parametrize("seed", [1, 2])
def test_frequencies_are_the_probabilities(changes: dict[str, object], seed: int) -> None:
    config, size = sampling(**changes), 20_000
    log_probs = np.log(np.random.default_rng(3).dirichlet(np.ones(8)))
    expected = np.array(slow_distribution(log_probs.tolist(), config)) * size
    numbers = uniforms(seed, np.arange(size), np.zeros(size, dtype=np.int64), 0)
    counts = np.bincount(draw(np.tile(log_probs, (size, 1)), numbers, config), minlength=8)
    possible = expected > 0
    assert counts[~possible].sum() == 0
    assert possible.sum() > 1
    statistic = ((counts - expected)[possible] ** 2 / expected[possible]).sum()
    assert statistic < chi_square_limit(int(possible.sum()) - 1)


@given(
    log_probs=st.lists(st.sampled_from([-np.inf, -0.5, -1.0, -2.0, -2.5, -7.0, -900.0]), min_size=1, max_size=9),
    temperature=st.sampled_from([0.0, 1e-3, 0.5, 1.0, 3.0]),
    top_k=st.integers(0, 10),
    top_p=st.sampled_from([1e-9, 0.3, 0.9, 1.0]),
    min_p=st.sampled_from([0.0, 0.1, 1.0]),
)
@settings(max_examples=200, deadline=None)
def test_limits_leave_what_their_definitions_say(
    log_probs: list[float], temperature: float, top_k: int, top_p: float, min_p: float
) -> None:
    if max(log_probs) == -np.inf:
        log_probs = [*log_probs, -1.0]
    config = sampling(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    weights = allowed(probabilities(np.array([log_probs]), temperature or 1.0), config)[0]
    assert weights / weights.sum() == pytest.approx(slow_distribution(log_probs, config), abs=1e-12)


@pytest.mark.parametrize("top_p", [0.5, 0.99])
def test_a_nucleus_of_thousands_and_one_of_one(top_p: float) -> None:
    generator = np.random.default_rng(0)
    log_probs = np.log(generator.dirichlet(np.full(3000, 5.0), size=2))
    log_probs[1] = np.log(generator.dirichlet(np.full(3000, 0.001)) + 1e-300)  # one token holds nearly everything
    config = sampling(top_p=top_p)
    weights = allowed(probabilities(log_probs, 1.0), config)
    for row in range(2):
        assert weights[row] / weights[row].sum() == pytest.approx(
            slow_distribution(log_probs[row].tolist(), config), abs=1e-12
        )


def test_the_ends_of_the_unit_interval_hit_possible_tokens() -> None:
    log_probs = np.array([[-np.inf, -1.0, -2.0, -np.inf]])
    for number, token in ((0.0, 1), (np.nextafter(1.0, 0.0), 2)):
        assert draw(log_probs, np.array([number]), sampling()).tolist() == [token]


@pytest.mark.parametrize("changes", [{}, {"temperature": 2.0, "top_k": 2}, {"repetition_penalty": 3.0, "top_p": 0.95}])
def test_whole_outputs_come_as_often_as_they_should(changes: dict[str, object]) -> None:
    size = 2000
    config = sampling(nbest=size, max_length_ratio=0.0, max_length_offset=2, **changes)
    engine = Toy(vocab_size=6, sharpness=1.0)
    source = (4, EOS)
    (found,) = search(engine, arrays([source]), config, max_length=9)
    assert len(found) == size
    counts = Counter((one.token_ids, one.finish_reason == "eos") for one in found)

    def step(prefix: Tokens) -> list[float]:
        log_probs = engine.log_probs(source, prefix).copy()
        log_probs[[0, 2]] = -np.inf
        for token in set(prefix):
            log_probs[token] *= config.repetition_penalty
        return slow_distribution(log_probs.tolist(), config)

    statistic, degrees = 0.0, -1
    for one in all_outputs(engine, source, config, 2):
        tokens = one.tokens + ((EOS,) if one.has_ended else ())
        expected = size * math.prod(step(tokens[:at])[token] for at, token in enumerate(tokens))
        if expected:
            statistic += (counts.pop((one.tokens, one.has_ended), 0) - expected) ** 2 / expected
            degrees += 1
    assert not counts
    assert statistic < chi_square_limit(degrees)


def test_samples_depend_on_seed_index_number_and_step_alone() -> None:
    engine = Toy(vocab_size=9)
    asked = [Constraints(index=place) for place in (7, 2, 0, 9)]
    wide = search(engine, arrays(SOURCES), sampling(nbest=5), max_length=20, constraints=asked)
    narrow = search(engine, arrays(SOURCES), sampling(nbest=2), max_length=20, constraints=asked)
    assert [found[:2] for found in wide] == narrow
    for place, found in enumerate(wide):
        alone = search(
            engine, arrays(SOURCES[place : place + 1]), sampling(nbest=5), max_length=20, constraints=[asked[place]]
        )
        assert alone == [found]
    other_seed = search(engine, arrays(SOURCES), sampling(nbest=5, seed=2), max_length=20, constraints=asked)
    other_index = search(engine, arrays(SOURCES), sampling(nbest=5), max_length=20)
    for other in (other_seed, other_index):
        assert sum(one != two for one, two in zip(other, wide, strict=True)) >= 3
    # Without an index a source's place counts: the same source twice gives different samples.
    twice = search(engine, arrays([SOURCES[0]] * 2), sampling(nbest=5), max_length=20)
    assert twice[0] != twice[1]
    # One more step to go changes nothing before.
    longer = search(engine, arrays(SOURCES), sampling(nbest=5, max_length_offset=5), max_length=20, constraints=asked)
    for found, other in zip(wide, longer, strict=True):
        for one, two in zip(found, other, strict=True):
            assert two.token_ids[: len(one.token_ids)] == one.token_ids


@pytest.mark.parametrize("changes", [{"temperature": 0.0}, {"top_k": 1}, {"top_p": 1e-9}, {"min_p": 1.0}])
def test_without_choice_sampling_is_greedy(changes: dict[str, object]) -> None:
    engine = Toy(vocab_size=12)
    greedy = SearchConfig(beam=1, max_length_ratio=1.0, max_length_offset=4)
    assert search(engine, arrays(SOURCES), sampling(**changes), max_length=20) == search(
        engine, arrays(SOURCES), greedy, max_length=20
    )


@pytest.mark.parametrize("changes", [{}, {"top_k": 4}, {"top_p": 0.8, "temperature": 1.3}, {"repetition_penalty": 1.5}])
def test_log_probabilities_are_the_models_whatever_is_drawn_from(changes: dict[str, object]) -> None:
    engine = Toy(vocab_size=9)
    found = search(engine, arrays(SOURCES), sampling(nbest=4, alpha=0.5, **changes), max_length=20)
    for source, hypotheses in zip(SOURCES, found, strict=True):
        assert len(hypotheses) == 4
        for one in hypotheses:
            assert list(one.token_log_probs) == engine.rescore(source, one)
            assert one.log_prob == pytest.approx(sum(one.token_log_probs), rel=1e-13)
            if "repetition_penalty" not in changes:
                assert one.score == pytest.approx(one.log_prob / len(one.token_log_probs) ** 0.5, rel=1e-13)


@pytest.mark.parametrize("top_k", [0, 3])
def test_samples_obey_prefixes_bans_and_limits(top_k: int) -> None:
    engine = Toy(vocab_size=10, edit=never_ends)
    chosen = sampling(nbest=20, top_k=top_k, no_repeat_ngram_size=2, forbid_unknown=True, temperature=5.0)
    asked = [Constraints((4, 5), (), [(6, 7), (8,)])] * len(SOURCES)
    for hypotheses in search(engine, arrays(SOURCES), chosen, max_length=20, constraints=asked):
        assert len({one.token_ids for one in hypotheses}) > 1
        for one in hypotheses:
            assert one.token_ids[:2] == (4, 5)
            assert not {PAD, UNK, 2, EOS, 8} & set(one.token_ids)
            assert not stands_in((6, 7), one.token_ids)
            pairs = list(zip(one.token_ids, one.token_ids[1:], strict=False))
            assert len(set(pairs)) == len(pairs)


def test_min_length_and_cap_hold_for_samples() -> None:
    found = search(Toy(), arrays(SOURCES), sampling(nbest=30, min_length=3), max_length=20)
    for source, hypotheses in zip(SOURCES, found, strict=True):
        assert {one.finish_reason for one in hypotheses} == {"eos", "length"}
        for one in hypotheses:
            assert 3 <= len(one.token_ids) <= len(source) + 3


def test_weights_are_those_of_the_sample() -> None:
    engine = Toy(vocab_size=9)
    found = search(engine, arrays(SOURCES), sampling(nbest=3), max_length=20, need_alignment=True)
    for source, hypotheses in zip(SOURCES, found, strict=True):
        for one in hypotheses:
            rows = [engine.weights(source, (*one.token_ids, EOS)[:step]) for step in range(len(one.token_log_probs))]
            assert one.weights is not None
            np.testing.assert_array_equal(one.weights, np.array(rows).reshape(-1, len(source)))


def test_sources_leave_when_all_their_samples_have_ended_and_nothing_is_reordered() -> None:
    class Watched(Toy):
        def step(self, state, tokens, parents, keep):  # type: ignore[no-untyped-def]
            assert parents is None
            return super().step(state, tokens, parents, keep)

    engine = Watched(edit=ends_at_length, vocab_size=9)
    found = search(engine, arrays(SOURCES), sampling(nbest=3), max_length=20)
    assert engine.rows_fed == [4, 3, 2, 1, 1]
    assert [{len(one.token_ids) for one in hypotheses} for hypotheses in found] == [{2}, {1}, {4}, {0}]


def reasons(hypotheses: Sequence[Hypothesis]) -> list[str]:
    return [one.finish_reason for one in hypotheses]


def test_each_sample_is_returned_where_it_is_stuck_or_cancelled() -> None:
    def sometimes_stuck(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
        if prefix[:1] == (4,):
            logits[:] = -np.inf
        elif prefix:
            logits[EOS] = 50.0
        else:
            logits[4] = 1.0

    (found,) = search(Toy(edit=sometimes_stuck), arrays(SOURCES[:1]), sampling(nbest=40, min_length=1), max_length=9)
    assert set(reasons(found)) == {"eos", "stuck"}
    assert all((one.finish_reason == "stuck") == (one.token_ids == (4,)) for one in found)
    answers = iter([False, False, True])
    (found,) = search(
        Toy(edit=no_marks), arrays(SOURCES[:1]), sampling(nbest=40), max_length=9, cancelled=answers.__next__
    )
    assert set(reasons(found)) == {"eos", "cancelled"}
    assert all(len(one.token_ids) == 2 for one in found if one.finish_reason == "cancelled")


def test_very_low_and_very_high_temperatures_are_harmless() -> None:
    greedy = SearchConfig(beam=1, max_length_ratio=1.0, max_length_offset=4)
    engine = Toy(vocab_size=9)
    cold = search(engine, arrays(SOURCES), sampling(temperature=1e-300), max_length=20)
    assert cold == search(engine, arrays(SOURCES), greedy, max_length=20)
    hot = search(engine, arrays(SOURCES), sampling(temperature=1000.0, nbest=20), max_length=20)
    assert all(len({one.token_ids for one in hypotheses}) > 10 for hypotheses in hot)
