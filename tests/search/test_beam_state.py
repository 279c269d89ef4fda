import numpy as np

from heedful.search.beam_state import BeamState, Candidates
from heedful.search.config import SearchConfig
from heedful.text.vocabulary import EOS

NOT_LAST = np.array([False])


def offers_of(log_probs: list[float], ids: list[int], parents: list[int] | None = None) -> Candidates:
    row = np.array([log_probs])
    return Candidates(row, row, np.array([parents or [0] * len(ids)]), np.array([ids]))


def test_only_the_first_hypothesis_is_live_at_the_start() -> None:
    beam_state = BeamState.start(2, SearchConfig(beam=3, nbest=2))
    assert beam_state.log_probs.tolist() == [[0.0, -np.inf, -np.inf]] * 2
    assert beam_state.token_ids.shape == (2, 3, 0)
    assert beam_state.sources.tolist() == [0, 1]


def test_rank_adds_up_and_orders_by_log_prob_hypothesis_and_id() -> None:
    beam_state = BeamState.start(1, SearchConfig(beam=2))
    beam_state.log_probs[:] = [[-1.0, -2.0]]
    log_probs = np.array([[[-1.0, -2.0, -2.0], [-1.0, -1.0, -9.0]]])
    ids = np.array([[[5, 9, 8], [6, 4, 3]]])
    candidates = beam_state.rank(log_probs, ids)
    assert candidates.log_probs.tolist() == [[-2.0, -3.0, -3.0, -3.0]]
    assert candidates.parents.tolist() == [[0, 0, 0, 1]]
    assert candidates.ids.tolist() == [[5, 8, 9, 4]]
    assert candidates.token_log_probs.tolist() == [[-1.0, -2.0, -2.0, -1.0]]


def test_rank_takes_nothing_from_empty_places_whatever_they_offer() -> None:
    beam_state = BeamState.start(1, SearchConfig(beam=2))
    candidates = beam_state.rank(np.array([[[-1.0], [np.nan]]]), np.array([[[4], [5]]]))
    assert candidates.exist.tolist() == [[True, False]]
    assert candidates.ids[0, 0] == 4


def test_ending_is_eos_within_the_beam_or_anything_at_the_cap() -> None:
    candidates = offers_of([-1.0, -2.0, -3.0, -np.inf], [4, EOS, EOS, 5])
    assert candidates.ending(2, NOT_LAST).tolist() == [[False, True, False, False]]
    assert candidates.ending(3, NOT_LAST).tolist() == [[False, True, True, False]]
    assert candidates.ending(4, ~NOT_LAST).tolist() == [[True, True, True, False]]


def test_advance_fills_the_beam_with_the_best_that_go_on() -> None:
    config = SearchConfig(beam=2)
    beam_state = BeamState.start(1, config)
    beam_state, parents, done = beam_state.advance(
        offers_of([-1.0, -2.0, -3.0, -4.0], [EOS, 4, EOS, 5]), NOT_LAST, config
    )
    assert beam_state.log_probs.tolist() == [[-2.0, -4.0]]
    assert beam_state.token_ids.tolist() == [[[4], [5]]]
    assert beam_state.num_finished.tolist() == [1]
    assert parents.tolist() == [[0, 0]]
    assert not done
    beam_state, parents, done = beam_state.advance(
        offers_of([-4.5, -5.0, -6.0, -7.0], [6, EOS, 7, 8], [1, 0, 1, 0]), NOT_LAST, config
    )
    assert beam_state.token_ids.tolist() == [[[5, 6], [5, 7]]]
    assert beam_state.token_log_probs.tolist() == [[[-4.0, -4.5], [-4.0, -6.0]]]
    assert beam_state.origins.tolist() == [[[0, 1], [0, 1]]]
    assert parents.tolist() == [[1, 1]]
    assert done


def test_a_row_with_nothing_live_or_at_its_cap_is_done() -> None:
    config = SearchConfig(beam=2)
    candidates = offers_of([-1.0, -np.inf], [EOS, 4])
    after, _, done = BeamState.start(1, config).advance(candidates, NOT_LAST, config)
    assert done
    assert after.log_probs.tolist() == [[-np.inf, -np.inf]]
    _, _, done = BeamState.start(1, config).advance(offers_of([-1.0, -2.0], [5, 4]), ~NOT_LAST, config)
    assert done


def test_bare_log_probabilities_wait_until_the_nth_best_cannot_be_beaten() -> None:
    candidates = offers_of([-1.0, -2.0, -3.0, -4.0], [EOS, 4, EOS, 5])
    for nbest, expected in ((1, True), (2, False)):
        config = SearchConfig(beam=3, nbest=nbest, alpha=0.0)
        after, _, done = BeamState.start(1, config).advance(candidates, NOT_LAST, config)
        assert done.tolist() == [expected]
        assert after.best_finished.tolist() == [[-1.0, -3.0][:nbest]]
    for beta in (0.0, 0.5):  # with coverage the number counts, as in CTranslate2
        config = SearchConfig(beam=2, alpha=0.0, beta=beta)
        _, _, done = BeamState.start(1, config).advance(candidates, NOT_LAST, config)
        assert done.tolist() == [beta == 0]


def test_select_keeps_rows_of_everything() -> None:
    beam_state = BeamState.start(3, SearchConfig(beam=2)).select(np.array([0, 2]))
    assert beam_state.sources.tolist() == [0, 2]
    assert {len(getattr(beam_state, name)) for name in BeamState.__slots__} == {2}
    assert beam_state.flat_indices(np.array([[1, 0], [1, 1]])).tolist() == [[1, 0], [3, 3]]


def test_rows_of_a_source_lie_beside_each_other() -> None:
    beam_state = BeamState.start(2, SearchConfig(beam=6, num_groups=3, diversity=1.0))
    assert beam_state.sources.tolist() == [0, 0, 0, 1, 1, 1]
    assert beam_state.groups.tolist() == [0, 1, 2, 0, 1, 2]
    assert beam_state.log_probs.tolist() == [[0.0, -np.inf]] * 6
    assert beam_state.exist.tolist() == [[True, False]] * 6
    assert BeamState.start(2, SearchConfig(method="sampling", beam=1, nbest=3)).log_probs.shape == (6, 1)


def test_charges_count_for_good_and_handicaps_in_the_order_alone() -> None:
    beam_state = BeamState.start(1, SearchConfig(beam=2))
    log_probs = np.array([[[-1.0, -2.0, -3.0], [0.0, 0.0, 0.0]]])
    ids = np.array([[[4, 5, 6], [7, 8, 9]]])
    charges = np.array([[[1.5, 0.0, 0.0], [0.0, 0.0, 0.0]]])
    candidates = beam_state.rank(log_probs, ids, charges)
    assert (candidates.ids[0, :3].tolist(), candidates.log_probs[0, :3].tolist()) == ([5, 4, 6], [-2.0, -2.5, -3.0])
    assert candidates.token_log_probs[0, :3].tolist() == [-2.0, -1.0, -3.0]
    candidates = beam_state.rank(log_probs, ids, None, charges, 2)
    assert (candidates.ids.tolist(), candidates.log_probs.tolist()) == ([[5, 4]], [[-2.0, -1.0]])


def test_a_beam_of_one_looks_at_the_best_offer_alone() -> None:
    config = SearchConfig(beam=1, stopping="certain")
    beam_state = BeamState.start(1, config)
    candidates = beam_state.rank(np.array([[[-1.0, -1.5]]]), np.array([[[EOS, 4]]]))
    assert candidates.ids.tolist() == [[EOS]]
    _, _, done = beam_state.advance(candidates, NOT_LAST, config)
    assert done


def test_who_goes_on_and_who_is_first() -> None:
    candidates = offers_of([-1.0, -2.0, -3.0, -np.inf], [4, EOS, 6, 5])
    chosen, lives = candidates.going_on(3, NOT_LAST)
    assert (chosen.tolist(), lives.tolist()) == ([[0, 2, 1]], [[True, True, False]])
    assert not candidates.going_on(3, ~NOT_LAST)[1].any()
    assert candidates.first(2).ids.tolist() == [[4, EOS]]


def test_the_certain_rule_is_not_asked_here() -> None:
    candidates = offers_of([-1.0, -2.0, -3.0, -4.0], [EOS, 4, EOS, 5])
    for stopping, expected in (("likely", True), ("certain", False)):
        config = SearchConfig(beam=3, alpha=0.0, stopping=stopping)  # type: ignore[arg-type]
        assert BeamState.start(1, config).advance(candidates, NOT_LAST, config)[2].tolist() == [expected]


def test_the_rule_of_a_full_beam_waits_for_the_worst_of_it() -> None:
    for stopping, expected in (("likely", True), ("full", False)):
        config = SearchConfig(beam=2, alpha=0.5, stopping=stopping)  # type: ignore[arg-type]
        first = BeamState.start(1, config).advance(offers_of([-1.0, -2.0, -3.0], [EOS, 4, 5]), NOT_LAST, config)[0]
        candidates = first.rank(np.array([[[-8.0, -0.1], [-9.0, -1.0]]]), np.array([[[EOS, 4], [5, 6]]]))
        ended = candidates.take(np.array([[2, 0, 1]]))
        assert first.advance(ended, NOT_LAST, config)[2].tolist() == [expected]


def test_a_reward_for_length_is_part_of_the_score() -> None:
    config = SearchConfig(beam=1, length_reward=0.5)
    after, _, _ = BeamState.start(1, config).advance(offers_of([-3.0], [EOS]), NOT_LAST, config)
    assert after.best_scores.tolist() == [[-2.5]]
