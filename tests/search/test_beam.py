import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import NeedError, NonFiniteError, ShapeError, UsageError
from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.search.interface import Adjust, Hypothesis
from heedful.text.vocabulary import EOS, UNK
from tests.search.engines import Tokens, Toy, all_outputs, ends_at_length, never_ends, no_marks, slow_search

SOURCES = [(5, 6, EOS), (4, EOS), (6, 4, 5, 5, EOS), (EOS,), (5, 5, 5, 5, 4, 6, EOS)]


def arrays(sources: Sequence[Sequence[int]]) -> list[np.ndarray]:
    return [np.array(source, dtype=np.int64) for source in sources]


def config(**changes: object) -> SearchConfig:
    return SearchConfig(**{"max_length_ratio": 1.0, "max_length_offset": 4, **changes})  # type: ignore[arg-type]


def cap_of(source: Tokens, settings: SearchConfig) -> int:
    return int((len(source) - 1) * settings.max_length_ratio + settings.max_length_offset)


def tokens_of(results: list[list[Hypothesis]]) -> list[list[Tokens]]:
    return [[one.token_ids for one in hypotheses] for hypotheses in results]


@pytest.mark.parametrize("seed", range(5))
def test_greedy_takes_the_most_probable_token_at_each_step(seed: int) -> None:
    engine = Toy(seed=seed, vocab_size=12)
    results = search(engine, arrays(SOURCES), config(beam=1), max_length=100)
    for source, hypotheses in zip(SOURCES, results, strict=True):
        tokens: Tokens = ()
        reason = "length"
        while len(tokens) < len(source) + 3:
            log_probs = engine.log_probs(source, tokens).copy()
            log_probs[[0, 2]] = -np.inf
            if log_probs.argmax() == EOS:
                reason = "eos"
                break
            tokens += (int(log_probs.argmax()),)
        assert [(one.token_ids, one.finish_reason) for one in hypotheses] == [(tokens, reason)]


@given(
    seed=st.integers(0, 10_000),
    beam=st.integers(1, 6),
    nbest=st.integers(1, 6),
    alpha=st.sampled_from([0.0, 0.6, 1.0, 2.0]),
    penalty=st.sampled_from(["power", "gnmt"]),
    min_length=st.integers(0, 3),
    forbid_unknown=st.booleans(),
    sharpness=st.sampled_from([0.3, 2.0, 6.0]),
    vocab_size=st.integers(4, 9),
)
@settings(max_examples=150, deadline=None)
def test_equals_a_slow_search_of_each_source_alone(
    seed: int,
    beam: int,
    nbest: int,
    alpha: float,
    penalty: str,
    min_length: int,
    forbid_unknown: bool,
    sharpness: float,
    vocab_size: int,
) -> None:
    engine = Toy(seed=seed, vocab_size=vocab_size, sharpness=sharpness)
    chosen = config(
        beam=beam,
        nbest=min(nbest, beam),
        alpha=alpha,
        length_penalty=penalty,
        min_length=min_length,
        forbid_unknown=forbid_unknown,
    )
    results = search(engine, arrays(SOURCES), chosen, max_length=100)
    for source, hypotheses in zip(SOURCES, results, strict=True):
        expected = slow_search(engine, source, chosen, cap_of(source, chosen))
        if not expected:  # all that was left was banned
            assert {one.finish_reason for one in hypotheses} == {"stuck"}
            continue
        assert [one.token_ids for one in hypotheses] == [one.tokens for one in expected]
        assert [one.finish_reason == "eos" for one in hypotheses] == [one.has_ended for one in expected]
        assert [one.log_prob for one in hypotheses] == [one.log_prob for one in expected]
        assert [one.score for one in hypotheses] == pytest.approx([one.score for one in expected], rel=1e-14)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("penalty", "alpha"), [("power", 0.0), ("power", 1.0), ("gnmt", 0.6), ("power", 3.0)])
def test_a_beam_as_wide_as_all_prefixes_finds_the_best_of_all_outputs(seed: int, penalty: str, alpha: float) -> None:
    engine = Toy(seed=seed, vocab_size=6, sharpness=1.0)
    num_prefixes = 1 + 3 + 9  # below a cap of 3, of the 3 tokens that are no mark (1, 4, 5)
    for source in SOURCES:
        chosen = config(
            beam=num_prefixes,
            nbest=num_prefixes,
            length_penalty=penalty,
            alpha=alpha,
            max_length_ratio=0.0,
            max_length_offset=3,
        )
        (hypotheses,) = search(engine, arrays([source]), chosen, max_length=9)
        expected = all_outputs(engine, source, chosen, 3)[:num_prefixes]
        assert [one.token_ids for one in hypotheses] == [one.tokens for one in expected]
        assert [one.score for one in hypotheses] == pytest.approx([one.score for one in expected], rel=1e-13)


def test_a_beam_far_beyond_the_number_of_outputs_returns_them_all() -> None:
    engine = Toy(vocab_size=6)
    chosen = config(beam=1000, nbest=1000, max_length_ratio=0.0, max_length_offset=3)
    (hypotheses,) = search(engine, arrays([SOURCES[0]]), chosen, max_length=9)
    assert {(one.token_ids, one.finish_reason == "eos") for one in hypotheses} == {
        (one.tokens, one.has_ended) for one in all_outputs(engine, SOURCES[0], chosen, 3)
    }
    assert len(hypotheses) == 1 + 3 + 9 + 27


@given(
    sources=st.lists(st.lists(st.integers(4, 6), max_size=5), min_size=1, max_size=7),
    beam=st.integers(1, 4),
    alpha=st.sampled_from([0.0, 1.0]),
    beta=st.sampled_from([0.0, 0.5]),
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_neighbours_and_order_change_no_bit(
    sources: list[list[int]], beam: int, alpha: float, beta: float, data: st.DataObject
) -> None:
    ended = [(*source, EOS) for source in sources]
    chosen = config(beam=beam, nbest=beam, alpha=alpha, beta=beta)
    engine = Toy(vocab_size=8)
    alone = [search(engine, arrays([source]), chosen, max_length=50, need_alignment=True)[0] for source in ended]
    order = data.draw(st.permutations(range(len(ended))))
    together = search(engine, arrays([ended[place] for place in order]), chosen, max_length=50, need_alignment=True)
    for place, hypotheses in zip(order, together, strict=True):
        assert hypotheses == alone[place]
        for one, other in zip(hypotheses, alone[place], strict=True):
            assert one.weights is not None
            np.testing.assert_array_equal(one.weights, other.weights)


@pytest.mark.parametrize("beam", [1, 2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_scores_equal_forced_decoding(beam: int, seed: int) -> None:
    engine = Toy(seed=seed, vocab_size=9)
    chosen = config(beam=beam, nbest=beam, alpha=0.7)
    for source, hypotheses in zip(SOURCES, search(engine, arrays(SOURCES), chosen, max_length=99), strict=True):
        for one in hypotheses:
            forced = engine.rescore(source, one)
            assert list(one.token_log_probs) == forced
            assert one.log_prob == pytest.approx(sum(forced), rel=1e-14)
            assert one.score == pytest.approx(sum(forced) / len(forced) ** 0.7, rel=1e-14)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_n_best_is_sorted_distinct_and_its_beginning_does_not_depend_on_n(alpha: float) -> None:
    for seed in range(20):
        engine = Toy(seed=seed, vocab_size=9, sharpness=3.0)
        lists = [
            search(engine, arrays(SOURCES), config(beam=4, nbest=nbest, alpha=alpha), max_length=99)
            for nbest in (1, 2, 4)
        ]
        for one, two, four in zip(*lists, strict=True):
            assert one == four[:1]
            assert two == four[:2]
            scores = [hypothesis.score for hypothesis in four]
            assert scores == sorted(scores, reverse=True)
            assert len({(h.token_ids, h.finish_reason) for h in four}) == len(four) == 4


def test_rows_leave_the_batch_when_their_search_is_done() -> None:
    sources = [(4, EOS), (4, 5, 6, EOS), (EOS,), (4, 4, 4, 5, EOS)]
    engine = Toy(edit=ends_at_length)
    results = search(engine, arrays(sources), config(beam=1), max_length=50)
    assert engine.rows_fed == [4, 3, 2, 2, 1]
    assert [len(hypotheses[0].token_ids) for hypotheses in results] == [1, 3, 0, 4]


def test_greedy_search_never_makes_the_engine_reorder() -> None:
    class Watched(Toy):
        def step(self, state, tokens, parents, keep):  # type: ignore[no-untyped-def]
            assert parents is None
            return super().step(state, tokens, parents, keep)

    search(Watched(), arrays(SOURCES), config(beam=1), max_length=50)


def sure(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
    """Eight times token 4, then the end mark, with little doubt; next best is always the end mark."""
    logits[:] = np.log(1e-5)
    logits[EOS] = np.log(1e-4)
    logits[EOS if len(prefix) >= 8 else 4] = np.log(0.999)


@pytest.mark.parametrize("alpha", [0.6, 1.0])
def test_improbable_ends_do_not_stop_a_sure_search(alpha: float) -> None:
    engine = Toy(edit=sure)
    (hypotheses,) = search(
        engine, arrays([(4, EOS)]), config(beam=3, nbest=3, alpha=alpha, max_length_offset=40), max_length=50
    )
    assert hypotheses[0].token_ids == (4,) * 8
    assert (
        hypotheses[0].token_ids
        == search(engine, arrays([(4, EOS)]), config(beam=1, max_length_offset=40), max_length=50)[0][0].token_ids
    )


def test_stops_once_beam_hypotheses_have_finished_and_none_live_scores_higher() -> None:
    engine = Toy(edit=sure)
    search(engine, arrays([(4, EOS)]), config(beam=3, max_length_offset=40), max_length=50)
    assert len(engine.rows_fed) == 9  # the step that ends the best output is the last


def test_bare_log_probabilities_stop_only_when_nothing_live_can_be_better() -> None:
    def late(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
        logits[:] = -np.inf
        if prefix == ():
            logits[EOS], logits[4], logits[5] = np.log(0.3), np.log(0.5), np.log(0.2)
        elif prefix == (5,) or len(prefix) == 3:
            logits[EOS] = 0.0
        else:
            logits[4] = 0.0

    # EOS is second at step 1 and (5,) ends at step 2: `beam` have finished, and the best is yet to come.
    best = {
        alpha: search(Toy(edit=late), arrays([(4, EOS)]), config(beam=2, alpha=alpha), max_length=9)[0][0]
        for alpha in (0.0, 1e-9)
    }
    assert best[0.0].token_ids == (4, 4, 4)
    assert best[0.0].log_prob == pytest.approx(np.log(0.5))
    assert best[1e-9].token_ids == (4, 4, 4)


def test_bare_log_probabilities_stop_early() -> None:
    def certain(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
        logits[:] = np.log(0.01)
        logits[EOS if len(prefix) == 2 else 4] = 0.0

    engine = Toy(edit=certain)
    search(engine, arrays([(4, EOS)]), config(beam=5, alpha=0.0, max_length_offset=40), max_length=99)
    assert len(engine.rows_fed) == 3


def test_an_end_mark_below_the_beam_is_dropped_and_one_within_frees_its_place() -> None:
    def spread(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
        logits[:] = -np.inf
        values = {4: 0.4, EOS: 0.3, 5: 0.2, 6: 0.1} if len(prefix) == 0 else {4: 0.5, 5: 0.3, EOS: 0.2}
        for token, value in values.items():
            logits[token] = np.log(value)

    chosen = config(beam=2, nbest=2, max_length_ratio=0.0, max_length_offset=2)
    (hypotheses,) = search(Toy(edit=spread), arrays([(4, EOS)]), chosen, max_length=9)
    # Step 1: (4) and EOS are best; 5 takes EOS's place. Step 2, the cap: (4, 4) 0.20, (4, 5) 0.12 are best;
    # (5, 4) 0.10 and (4) EOS 0.08 stand below.
    assert [(one.token_ids, one.finish_reason) for one in hypotheses] == [((4, 4), "length"), ((4, 5), "length")]
    wider = config(beam=3, nbest=3, max_length_ratio=0.0, max_length_offset=2)
    (hypotheses,) = search(Toy(edit=spread), arrays([(4, EOS)]), wider, max_length=9)
    assert [one.token_ids for one in hypotheses] == [(4, 4), (4, 5), (5, 4)]


@pytest.mark.parametrize("beam", [1, 3])
def test_a_model_that_never_ends_is_ended_at_the_cap_of_its_source(beam: int) -> None:
    chosen = config(beam=beam, nbest=beam, max_length_ratio=2.0, max_length_offset=3)
    engine = Toy(edit=never_ends)
    results = search(engine, arrays(SOURCES), chosen, max_length=12)
    for source, hypotheses in zip(SOURCES, results, strict=True):
        for one in hypotheses:
            assert one.finish_reason == "length"
            assert len(one.token_ids) == len(one.token_log_probs) == min(2 * (len(source) - 1) + 3, 12)
            assert one.score == pytest.approx(one.log_prob / len(one.token_ids))
    assert len(engine.rows_fed) == 12


def test_a_thousand_hostile_inputs_all_end() -> None:
    generator = np.random.default_rng(3)
    sources = [generator.integers(4, 7, size=length) for length in generator.integers(0, 30, size=1000)]
    results = search(
        Toy(edit=never_ends), sources, config(beam=1, max_length_ratio=0.1, max_length_offset=1), max_length=50
    )
    assert len(results) == 1000
    assert {one.finish_reason for hypotheses in results for one in hypotheses} == {"length"}
    # These sources lack their end mark: every token of them counts.
    assert [len(found[0].token_ids) for found in results] == [int(0.1 * ids.size) + 1 for ids in sources]


def test_a_cap_is_1_at_least() -> None:
    chosen = config(max_length_ratio=0.0, max_length_offset=0)
    (hypotheses,) = search(Toy(), arrays([(4, EOS)]), chosen, max_length=9)
    assert len(hypotheses[0].token_log_probs) == 1


def test_nothing_in_nothing_out_and_the_engine_is_not_asked() -> None:
    engine = Toy()
    assert search(engine, [], config(), max_length=5) == []
    assert engine.starts == 0


def test_an_empty_source_is_its_end_mark_alone() -> None:
    empty = np.empty(0, dtype=np.int64)
    assert search(Toy(), [empty], config(), max_length=9) == search(Toy(), arrays([(EOS,)]), config(), max_length=9)


@pytest.mark.parametrize("beam", [1, 4])
def test_marks_are_never_generated(beam: int) -> None:
    def tempting(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
        logits[[0, 2]] += 9.0
        logits[UNK] += 4.0

    results = search(Toy(edit=tempting), arrays(SOURCES), config(beam=beam, nbest=beam), max_length=99)
    generated = set(itertools.chain.from_iterable(one.token_ids for found in results for one in found))
    assert generated & {0, 2, 3} == set()
    assert UNK in generated
    forbidding = config(beam=beam, nbest=beam, forbid_unknown=True)
    results = search(Toy(edit=tempting), arrays(SOURCES), forbidding, max_length=99)
    assert UNK not in set(itertools.chain.from_iterable(one.token_ids for found in results for one in found))


def test_min_length_holds_the_end_mark_back() -> None:
    def eager(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
        logits[EOS] += 20.0

    for min_length in (0, 1, 3):
        results = search(Toy(edit=eager), arrays(SOURCES), config(min_length=min_length), max_length=99)
        assert {len(hypotheses[0].token_ids) for hypotheses in results} == {min_length}
    results = search(Toy(edit=eager), arrays([(EOS,)]), config(min_length=9), max_length=99)
    assert results[0][0].finish_reason == "length"  # the cap of 4 comes first


def test_one_possible_token_makes_one_hypothesis_however_wide_the_beam() -> None:
    def only(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
        logits[np.arange(logits.size) != (EOS if len(prefix) == 2 else 5)] = -np.inf

    for beam in (1, 2, 20):
        results = search(Toy(edit=only), arrays(SOURCES), config(beam=beam, nbest=beam), max_length=99)
        assert tokens_of(results) == [[(5, 5)]] * len(SOURCES)
        assert (results[0][0].log_prob, results[0][0].score) == (0.0, 0.0)


def test_a_vocabulary_of_marks_alone() -> None:
    results = search(Toy(vocab_size=4), arrays(SOURCES), config(beam=50, forbid_unknown=True), max_length=99)
    assert tokens_of(results) == [[()]] * len(SOURCES)


def test_where_nothing_is_possible_the_live_hypotheses_are_returned() -> None:
    def dead_end(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
        if len(prefix) == 2 and len(source) > 1:
            logits[:] = -np.inf
        logits[EOS] = -np.inf if len(source) > 1 else logits[EOS] + 50

    results = search(Toy(edit=dead_end), arrays([(4, EOS), (EOS,)]), config(beam=3, nbest=3), max_length=99)
    assert [one.finish_reason for one in results[0]] == ["stuck"] * 3
    assert all(len(one.token_ids) == len(one.token_log_probs) == 2 for one in results[0])
    assert results[1][0].finish_reason == "eos"
    only_end = search(Toy(vocab_size=4), arrays([(4, EOS)]), config(forbid_unknown=True, min_length=1), max_length=9)
    assert [(one.token_ids, one.score, one.finish_reason) for one in only_end[0]] == [((), 0.0, "stuck")]


def test_a_dead_end_after_a_finished_hypothesis_returns_that() -> None:
    def then_nothing(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
        if len(prefix) == 1:
            logits[:] = -np.inf

    (hypotheses,) = search(Toy(edit=then_nothing), arrays([(4, EOS)]), config(beam=8, nbest=8), max_length=99)
    assert [(one.token_ids, one.finish_reason) for one in hypotheses] == [((), "eos")]


def test_ties_go_to_the_lower_hypothesis_then_the_lower_id() -> None:
    def flat(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
        logits[:] = 0.0
        logits[EOS] = -np.inf

    chosen = config(beam=3, nbest=3, max_length_ratio=0.0, max_length_offset=2)
    (hypotheses,) = search(Toy(edit=flat), arrays([(4, EOS)]), chosen, max_length=9)
    assert [one.token_ids for one in hypotheses] == [(1, 1), (1, 4), (1, 5)]


@pytest.mark.parametrize("beam", [1, 4])
def test_weights_are_those_of_the_tokens_and_of_the_real_source(beam: int) -> None:
    engine = Toy(vocab_size=9)
    results = search(engine, arrays(SOURCES), config(beam=beam, nbest=beam), max_length=99, need_alignment=True)
    for source, hypotheses in zip(SOURCES, results, strict=True):
        for one in hypotheses:
            rows = [engine.weights(source, (*one.token_ids, EOS)[:step]) for step in range(len(one.token_log_probs))]
            assert one.weights is not None
            assert one.weights.dtype == np.float32
            np.testing.assert_array_equal(one.weights, np.array(rows).reshape(-1, len(source)))


def test_weights_are_not_asked_for_unless_needed() -> None:
    blind = Toy(has_weights=False)
    results = search(blind, arrays(SOURCES), config(), max_length=99)
    assert all(one.weights is None for hypotheses in results for one in hypotheses)
    with pytest.raises(NeedError, match="beta = 0"):
        search(blind, arrays(SOURCES), config(), max_length=99, need_alignment=True)
    with pytest.raises(NeedError):
        search(blind, arrays(SOURCES), config(beta=0.1), max_length=99)


def test_coverage_enters_the_score_and_weights_stay_inside() -> None:
    engine = Toy(vocab_size=9)
    chosen = config(beam=4, nbest=4, length_penalty="gnmt", alpha=0.2, beta=0.4)
    results = search(engine, arrays(SOURCES), chosen, max_length=99)
    for source, hypotheses in zip(SOURCES, results, strict=True):
        assert [one.score for one in hypotheses] == sorted((one.score for one in hypotheses), reverse=True)
        for one in hypotheses:
            assert one.weights is None
            coverage = np.zeros(len(source))
            for step in range(len(one.token_log_probs)):
                coverage += engine.weights(source, (*one.token_ids, EOS)[:step])
            expected = one.log_prob / ((5 + len(one.token_log_probs)) / 6) ** 0.2
            expected += 0.4 * sum(np.log(min(value, 1.0)) for value in coverage)
            assert one.score == pytest.approx(expected, rel=1e-6)


def test_coverage_can_change_the_best() -> None:
    def best(beta: float) -> list[Tokens]:
        chosen = config(beam=4, beta=beta)
        return [found[0].token_ids for found in search(Toy(vocab_size=9), arrays(SOURCES), chosen, max_length=99)]

    assert best(0.0) != best(5.0)


@pytest.mark.parametrize("beam", [1, 3])
def test_prefixes_begin_the_outputs_and_count_in_their_scores(beam: int) -> None:
    engine = Toy(vocab_size=9, edit=no_marks)
    prefixes = [(5, 4, 8), (), (7,), (4, 4, 4, 4, 4, 4), (6, 6)]
    chosen = config(beam=beam, nbest=beam)
    results = search(engine, arrays(SOURCES), chosen, max_length=20, prefixes=prefixes)
    free = search(engine, arrays(SOURCES), chosen, max_length=20)
    assert results[1] == free[1]
    for source, prefix, hypotheses in zip(SOURCES, prefixes, results, strict=True):
        for one in hypotheses:
            assert one.token_ids[: len(prefix)] == prefix
            assert list(one.token_log_probs) == engine.rescore(source, one)
    if beam == 1:
        continued = results[2][0].token_ids
        assert continued[1] == int(engine.log_probs(SOURCES[2], (7,)).argmax())
    # A prefix may be longer than the cap its source gives (4 here): one token more is then generated.
    assert max(len(one.token_log_probs) for one in results[3]) == 7


@pytest.mark.parametrize(
    ("prefixes", "message"),
    [
        ([(4,)], "1 given for 2 sources"),
        ([(4,), (4, 5, 6, 5, 4)], "source 1 has 5 tokens, an output at most 5"),
        ([(4,), (4, EOS)], "source 1 contains PAD, BOS, EOS"),
        ([(-1,), ()], "source 0 contains PAD, BOS, EOS or a negative"),
        ([(), (4, 7)], "token 7 is not in the vocabulary of 7"),
    ],
)
def test_wrong_prefixes_are_refused(prefixes: list[Tokens], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        search(Toy(), arrays(SOURCES[:2]), config(), max_length=5, prefixes=prefixes)


def test_cancelling_stops_within_a_step_and_keeps_what_has_ended() -> None:
    sources = [(4, EOS), (4, 5, 6, 5, EOS)]
    for allowed in range(6):
        engine = Toy(edit=ends_at_length)
        answers = iter([False] * allowed + [True] * 9)
        results = search(engine, arrays(sources), config(beam=2, nbest=2), max_length=99, cancelled=answers.__next__)
        assert len(engine.rows_fed) == min(allowed, 5)
        for source, hypotheses in zip(sources, results, strict=True):
            reason, length = ("eos", len(source) - 1) if allowed >= len(source) else ("cancelled", allowed)
            assert {one.finish_reason for one in hypotheses} == {reason}
            assert {len(one.token_ids) for one in hypotheses} == {length}
            assert all(list(one.token_log_probs) == engine.rescore(source, one) for one in hypotheses)


def test_cancelled_before_the_first_step_is_one_empty_hypothesis() -> None:
    (hypotheses,) = search(Toy(), arrays([(4, EOS)]), config(nbest=5), max_length=9, cancelled=lambda: True)
    assert [(one.token_ids, one.log_prob, one.finish_reason) for one in hypotheses] == [((), 0.0, "cancelled")]


def test_what_the_caller_raises_to_stop_passes_through_between_steps() -> None:
    class Enough(Exception):
        pass

    engine = Toy(edit=never_ends)

    def cancelled() -> bool:
        if len(engine.rows_fed) == 2:
            raise Enough
        return False

    with pytest.raises(Enough):
        search(engine, arrays(SOURCES), config(), max_length=20, cancelled=cancelled)
    assert len(engine.rows_fed) == 2


class Unchecked:
    """Step scores that let NaN pass, as an engine's own top-k would."""

    weights = np.zeros((1, 1, 1), dtype=np.float32)

    def __init__(self, log_probs: np.ndarray) -> None:
        self.log_probs = log_probs

    def full(self) -> np.ndarray:
        return self.log_probs

    def top(self, k: int, adjust: Adjust | None = None) -> tuple[np.ndarray, np.ndarray]:
        ids = np.broadcast_to(np.arange(4, 4 + k), (*self.log_probs.shape[:2], k))
        return np.take_along_axis(self.log_probs, ids, axis=2), ids


@pytest.mark.parametrize("beam", [1, 2])
def test_nan_is_refused_and_says_where(beam: int) -> None:
    class Broken(Toy):
        def _scores(self, sources, prefixes, width):  # type: ignore[no-untyped-def]
            log_probs = super()._scores(sources, prefixes, width).full().copy()
            if len(prefixes[0][0]) == 2:
                log_probs[-1, 0] = np.nan
            return Unchecked(log_probs)

    with pytest.raises(NonFiniteError, match=r"source 1, step 1: a log probability is NaN"):
        search(Broken(edit=never_ends), arrays(SOURCES[:2]), config(beam=beam), max_length=9)


def test_nan_of_an_empty_place_does_no_harm() -> None:
    class Idle(Toy):
        def _scores(self, sources, prefixes, width):  # type: ignore[no-untyped-def]
            log_probs = super()._scores(sources, prefixes, width).full().copy()
            if len(prefixes[0][0]) == 1:
                log_probs[:, 1:] = np.nan  # at the first step only hypothesis 0 is live
            return Unchecked(log_probs)

    (hypotheses,) = search(Idle(edit=never_ends), arrays([(4, EOS)]), config(beam=2, nbest=2), max_length=2)
    assert [one.finish_reason for one in hypotheses] == ["length"] * 2


def test_weights_of_another_width_are_refused() -> None:
    class Wide(Toy):
        def _scores(self, sources, prefixes, width):  # type: ignore[no-untyped-def]
            return super()._scores(sources, prefixes, width + 1)

    with pytest.raises(ShapeError, match=r"\[1, 5, 4\].*3 positions"):
        search(Wide(), arrays([(4, 5, EOS)]), config(), max_length=9, need_alignment=True)


def test_weights_survive_an_engine_that_reuses_its_array() -> None:
    class Reusing(Toy):
        def step(self, state, tokens, parents, keep):  # type: ignore[no-untyped-def]
            if self._latest is not None:
                self._latest[:] = np.nan
            scores, state = super().step(state, tokens, parents, keep)
            self._latest = scores.weights
            return scores, state

        _latest: np.ndarray | None = None

    (hypotheses,) = search(Reusing(), arrays([(4, 5, EOS)]), config(), max_length=9, need_alignment=True)
    assert hypotheses[0].weights is not None
    assert np.isfinite(hypotheses[0].weights).all()


@pytest.mark.parametrize("max_length", [0, -3])
def test_no_room_for_a_token_is_refused(max_length: int) -> None:
    with pytest.raises(UsageError, match="max_length"):
        search(Toy(), arrays(SOURCES), config(), max_length=max_length)


def test_a_source_that_is_not_flat_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"source 1 has shape \[1, 2\]"):
        search(Toy(), [np.array([4, EOS]), np.array([[4, EOS]])], config(), max_length=9)


class TestCanaries:
    """The tests above must notice a search that mistreats the state: these engines mistreat it for it."""

    @pytest.mark.parametrize("fault", ["parents", "keep", "tokens"])
    def test_forced_decoding_notices(self, fault: str) -> None:
        class Faulty(Toy):
            def step(self, state, tokens, parents, keep):  # type: ignore[no-untyped-def]
                if fault == "parents" and parents is not None:
                    parents = parents[:, ::-1]
                if fault == "keep" and keep is not None:
                    keep = np.arange(keep.size)
                if fault == "tokens":
                    tokens = np.where(tokens == 4, 5, tokens)
                return super().step(state, tokens, parents, keep)

        engine = Faulty(vocab_size=9)
        results = search(engine, arrays(SOURCES), config(beam=3, nbest=3), max_length=99)
        assert any(
            list(one.token_log_probs) != engine.rescore(source, one)
            for source, hypotheses in zip(SOURCES, results, strict=True)
            for one in hypotheses
        )
