from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.search.beam import search
from heedful.search.beam_state import BeamState
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints
from heedful.search.forbidden_tokens import (
    NOTHING_FORBIDDEN,
    ForbiddenTokens,
    after_phrases,
    as_adjust,
    find_forbidden_tokens,
    last_of_phrases,
    repeated_ngrams,
)
from heedful.search.interface import Adjust
from heedful.search.phrases import Phrases
from heedful.search.search_state import SearchState
from heedful.text.vocabulary import EOS
from tests.search.engines import Toy, never_ends, stands_in

SOURCES = [np.array(ids) for ids in ((5, 6, EOS), (4, EOS), (6, 4, 5, 5, EOS))]


def as_set(forbidden: ForbiddenTokens) -> set[tuple[int, int, int]]:
    return set(zip(*(axis.tolist() for axis in forbidden), strict=True))


@given(
    st.lists(st.lists(st.lists(st.integers(4, 6), min_size=5, max_size=5), min_size=2, max_size=2), min_size=1),
    st.integers(1, 4),
    st.integers(0, 5),
)
def test_a_token_is_banned_if_it_ends_a_sequence_again(rows: list[list[list[int]]], size: int, num_steps: int) -> None:
    token_ids = np.array(rows)[:, :, :num_steps]
    expected = set()
    for (row, hypothesis), _ in np.ndenumerate(token_ids[:, :, 0] if num_steps else np.zeros(token_ids.shape[:2])):
        tokens = token_ids[row, hypothesis].tolist()
        for token in (4, 5, 6):
            longer = [*tokens, token]
            seen = [longer[at : at + size] for at in range(len(longer) - size)]
            if len(longer) >= size and longer[len(longer) - size :] in seen:
                expected.add((row, hypothesis, token))
    assert as_set(repeated_ngrams(token_ids, size)) == expected


def test_the_last_token_of_a_phrase_is_banned_where_the_others_stand() -> None:
    token_ids = np.array([[[4, 5], [5, 4]], [[4, 5], [5, 4]]])
    phrases = Phrases.of([[(4, 5, 6), (7,)], [(4, 4), (4, 5, 4, 6)]])
    assert as_set(last_of_phrases(token_ids, phrases)) == {(0, 0, 6), (0, 0, 7), (0, 1, 7), (1, 1, 4)}


def test_no_letters_follow_a_whole_phrase() -> None:
    token_ids = np.array([[[4, 5], [5, 4]], [[4, 5], [5, 4]]])
    phrases = Phrases.of([[(4, 5), (5,)], [(4, 4), (5, 4)]])
    ids = np.array([[[6, 7], [8, -1]], [[6, 7], [5, 9]]])
    assert as_set(after_phrases(token_ids, phrases, ids)) == {(0, 0, 6), (0, 0, 7), (0, 0, 8), (1, 1, 5), (1, 1, 9)}
    assert not after_phrases(token_ids[:, :, :0], phrases, ids).ids.size


def test_bans_are_told_in_the_engines_terms() -> None:
    beam_state = BeamState.start(2, SearchConfig(beam=4, num_groups=2, diversity=1.0))
    forbidden = ForbiddenTokens(np.array([0, 3]), np.array([1, 0]), np.array([7, 8]))
    adjust = as_adjust(forbidden, Adjust(banned=np.array([0])), beam_state, 4)
    assert (adjust.sources.tolist(), adjust.hypotheses.tolist(), adjust.ids.tolist()) == ([0, 1], [1, 2], [7, 8])
    assert adjust.banned.tolist() == [0]
    assert (adjust.values == -np.inf).all()
    for_all = Adjust(banned=np.array([0]))
    assert as_adjust(NOTHING_FORBIDDEN, for_all, beam_state, 4) is for_all


def test_what_every_source_bans_is_banned_for_all() -> None:
    search_state = SearchState.of(
        SOURCES[:2], SearchConfig(), 9, False, None, [Constraints(banned=[(4,), (6,)]), Constraints(banned=[(6,)])]
    )
    assert search_state.banned_ids.tolist() == [6]
    assert 6 in search_state.adjust(0).banned.tolist()
    assert as_set(find_forbidden_tokens(BeamState.start(2, SearchConfig()), search_state)) == {
        (0, hypothesis, 4) for hypothesis in range(5)
    }


@pytest.mark.parametrize(
    "settings", [{"beam": 1}, {"beam": 4, "nbest": 4}, {"method": "sampling", "beam": 1, "nbest": 4}]
)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_output_holds_a_sequence_twice(settings: dict[str, object], size: int) -> None:
    def monotonous(logits: np.ndarray, source: Sequence[int], prefix: Sequence[int]) -> None:
        logits[[4, 5]] += 5.0
        logits[EOS] -= 5.0

    chosen = SearchConfig(no_repeat_ngram_size=size, max_length_ratio=0.0, max_length_offset=12, **settings)  # type: ignore[arg-type]
    found = search(Toy(edit=monotonous, vocab_size=9), SOURCES, chosen, max_length=20)
    for one in [one for hypotheses in found for one in hypotheses]:
        grams = [one.token_ids[at : at + size] for at in range(len(one.token_ids) - size + 1)]
        assert len(set(grams)) == len(grams)
        assert len(one.token_ids) >= size


@pytest.mark.parametrize(
    "settings", [{"beam": 1}, {"beam": 4, "nbest": 4}, {"method": "sampling", "beam": 1, "nbest": 4}]
)
def test_no_output_holds_a_banned_phrase_but_in_its_prefix(settings: dict[str, object]) -> None:
    chosen = SearchConfig(max_length_ratio=0.0, max_length_offset=8, **settings)  # type: ignore[arg-type]
    banned = [[(4, 5), (6,)], [(5, 5, 5), (4, 4)], [(7, 4), (4, 7), (8,)]]
    constraints = [
        Constraints(prefix=(6, 4), banned=banned[0]),
        Constraints(banned=banned[1]),
        Constraints(banned=banned[2]),
    ]
    free = search(Toy(edit=never_ends, vocab_size=9), SOURCES, chosen, max_length=20)
    found = search(Toy(edit=never_ends, vocab_size=9), SOURCES, chosen, max_length=20, constraints=constraints)
    for place, hypotheses in enumerate(found):
        for one in hypotheses:
            generated = one.token_ids[1:] if place == 0 else one.token_ids
            assert not any(stands_in(phrase, generated) for phrase in banned[place])
    assert any(
        stands_in(phrase, one.token_ids)
        for place, hypotheses in enumerate(free)
        for one in hypotheses
        for phrase in banned[place]
    )


def test_where_everything_is_banned_the_search_is_stuck() -> None:
    chosen = SearchConfig(beam=2, no_repeat_ngram_size=1, max_length_ratio=0.0, max_length_offset=9)
    (found,) = search(Toy(edit=never_ends, vocab_size=6), SOURCES[:1], chosen, max_length=20)
    assert (sorted(found[0].token_ids), found[0].finish_reason) == ([1, 4, 5], "stuck")
