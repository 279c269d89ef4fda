from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import UsageError
from heedful.search.beam import search
from heedful.search.beam_allocation import interleave_banks, tokens_needed
from heedful.search.beam_state import BeamState, Candidates
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints, check_constraints, least_length, needs_gaps
from heedful.search.phrases import Phrases
from heedful.text.vocabulary import BOS, EOS, PAD, UNK
from tests.search.engines import Tokens, Toy, all_outputs, stands_in, still_needed

SOURCES: list[Tokens] = [(5, 6, EOS), (4, EOS), (6, 4, 5, 5, EOS)]
PHRASE = st.lists(st.integers(4, 7), min_size=1, max_size=3).map(tuple)


def arrays(sources: Sequence[Tokens]) -> list[np.ndarray]:
    return [np.array(source, dtype=np.int64) for source in sources]


def consistent(constraints_of: Constraints) -> bool:
    try:
        check_constraints([constraints_of], None, 1, SearchConfig(), 99)
    except UsageError:
        return False
    return True


def ended(one: Constraints, continuing: Tokens) -> Constraints:
    """The same constraints, with a word that ends after each required phrase."""
    return replace(one, whole=one.required, continuing=continuing)


def test_offers_are_dealt_from_each_bank_in_turn() -> None:
    log_probs = np.array([[-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -np.inf]])
    banks = np.array([[2, 2, 2, 0, 2, 0, 1]])
    ids = np.arange(7)[None]
    dealt = interleave_banks(Candidates(log_probs, log_probs, np.zeros_like(ids), ids), banks)
    assert dealt.ids.tolist() == [[3, 0, 5, 1, 2, 4, 6]]
    assert dealt.log_probs.tolist() == [[-4.0, -1.0, -6.0, -2.0, -3.0, -5.0, -np.inf]]


def test_one_bank_keeps_its_order() -> None:
    log_probs = np.array([[-1.0, -2.0, -3.0, -np.inf], [-1.0, -np.inf, -np.inf, -np.inf]])
    ids = np.arange(8).reshape(2, 4)
    dealt = interleave_banks(Candidates(log_probs, log_probs, np.zeros_like(ids), ids), np.zeros_like(ids))
    assert dealt.ids.tolist() == ids.tolist()


@given(st.lists(PHRASE, max_size=3), st.lists(PHRASE, max_size=3), st.lists(st.integers(4, 8), max_size=5))
def test_needed_tokens_are_counted_as_for_a_single_hypothesis(
    required: list[Tokens], banned: list[Tokens], tokens: list[int]
) -> None:
    constraints_of = Constraints((), required, banned)
    if not consistent(constraints_of):
        return
    checked = check_constraints([constraints_of], None, 1, SearchConfig(), 99)[0]
    beam_state = BeamState.start(1, SearchConfig(beam=1))
    held = np.array(tokens, dtype=np.int64).reshape(1, 1, -1)
    beam_state = BeamState(
        *(held if name == "token_ids" else getattr(beam_state, name) for name in BeamState.__slots__)
    )
    ids = np.array([[4, 5, 6, 7, 8]])
    candidates = Candidates(np.zeros((1, 5)), np.zeros((1, 5)), np.zeros_like(ids), ids)
    needed = tokens_needed(
        Phrases.of([checked.required]),
        Phrases.of([checked.banned]),
        np.array([needs_gaps(checked)]),
        beam_state,
        candidates,
    )
    assert needed.tolist() == [[still_needed((*tokens, token), constraints_of) for token in (4, 5, 6, 7, 8)]]


@given(
    asked=st.lists(
        st.builds(
            Constraints,
            st.lists(st.integers(4, 7), max_size=3),
            st.lists(PHRASE, max_size=3),
            st.lists(PHRASE, max_size=3),
        )
        .filter(consistent)
        .flatmap(lambda one: st.sampled_from([one, ended(one, ()), ended(one, (4, 5, 6, 7))])),
        min_size=3,
        max_size=3,
    ),
    beam=st.integers(1, 6),
    num_groups=st.sampled_from([1, 1, 1, 2]),
    nbest=st.integers(1, 6),
    offset=st.integers(0, 6),
    seed=st.integers(0, 10_000),
    repetition_penalty=st.sampled_from([1.0, 2.0]),
    min_length=st.sampled_from([0, 4]),
)
@settings(max_examples=100, deadline=None)
def test_what_is_required_stands_in_every_output_and_what_is_banned_in_none(
    asked: list[Constraints],
    beam: int,
    num_groups: int,
    nbest: int,
    offset: int,
    seed: int,
    repetition_penalty: float,
    min_length: int,
) -> None:
    config = SearchConfig(
        beam=beam * num_groups,
        nbest=min(nbest, beam * num_groups),
        num_groups=num_groups,
        diversity=0.5 if num_groups > 1 else 0.0,
        max_length_ratio=0.0,
        max_length_offset=offset,
        repetition_penalty=repetition_penalty,
        min_length=min_length,
    )
    # 8 and 9 are in no phrase; phrases may overlap, hold each other and stand in the way of each other.
    engine = Toy(seed=seed, vocab_size=10, sharpness=4.0)
    found = search(engine, arrays(SOURCES), config, max_length=99, constraints=asked)
    for constraints_of, hypotheses in zip(asked, found, strict=True):
        for one in hypotheses:
            assert one.finish_reason in ("eos", "length")
            assert one.token_ids[: len(constraints_of.prefix)] == tuple(constraints_of.prefix)
            assert all(stands_in(phrase, one.token_ids) for phrase in constraints_of.required)
            for phrase in constraints_of.banned:
                # A phrase may begin within the prefix, but not end after it.
                for end in range(max(len(constraints_of.prefix) + 1, len(phrase)), len(one.token_ids) + 1):
                    assert one.token_ids[end - len(phrase) : end] != phrase
            for phrase in constraints_of.whole:
                others = {token for ids in constraints_of.required if ids != phrase for token in ids}
                for end in range(max(len(constraints_of.prefix), len(phrase)), len(one.token_ids)):
                    follows = one.token_ids[end] in set(constraints_of.continuing) - others
                    assert not (follows and one.token_ids[end - len(phrase) : end] == phrase)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("required", [[(4,)], [(5, 4)], [(4,), (1, 5)]])
def test_a_beam_as_wide_as_all_prefixes_finds_the_best_output_that_holds_them(
    seed: int, required: list[Tokens]
) -> None:
    engine = Toy(seed=seed, vocab_size=6, sharpness=1.0)
    config = SearchConfig(beam=200, nbest=200, max_length_ratio=0.0, max_length_offset=4, alpha=0.7)
    constraints_of = Constraints(required=required)
    for source in SOURCES:
        (found,) = search(engine, arrays([source]), config, max_length=9, constraints=[constraints_of])
        expected = [
            one
            for one in all_outputs(engine, source, config, 4)
            if all(stands_in(phrase, one.tokens) for phrase in required)
        ]
        # Phrases without a token in common cannot be had in fewer steps than one after the other.
        assert [one.token_ids for one in found] == [one.tokens for one in expected]
        assert [one.score for one in found] == pytest.approx([one.score for one in expected], rel=1e-13)


def test_a_required_phrase_stands_where_the_model_finds_it_likely() -> None:
    def after_4(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
        logits[:] = -3.0
        if len(prefix) >= 4:
            logits[EOS] = 2.0
        elif prefix[-1:] == (4,):
            logits[7] = 0.0  # 7 is likely after 4, though something else is likelier
            logits[5] = 1.0
        else:
            logits[4 if len(prefix) == 1 else 6] = 1.0

    config = SearchConfig(beam=4, max_length_ratio=0.0, max_length_offset=9)
    free = search(Toy(edit=after_4, vocab_size=9), arrays([(4, EOS)]), config, max_length=20)[0][0]
    assert free.token_ids == (6, 4, 5, 6)
    (found,) = search(
        Toy(edit=after_4, vocab_size=9),
        arrays([(4, EOS)]),
        config,
        max_length=20,
        constraints=[Constraints(required=[(7,)])],
    )
    assert found[0].token_ids == (6, 4, 7, 6)


def test_the_cap_makes_room_for_what_is_required_and_the_engine_bounds_it() -> None:
    config = SearchConfig(beam=2, max_length_ratio=0.0, max_length_offset=1)
    constraints_of = Constraints(required=[(4, 5, 6), (7, 7)])
    (found,) = search(Toy(vocab_size=9), arrays(SOURCES[:1]), config, max_length=6, constraints=[constraints_of])
    assert least_length(constraints_of) == 6
    assert len(found[0].token_log_probs) <= 6
    assert stands_in((4, 5, 6), found[0].token_ids)
    assert stands_in((7, 7), found[0].token_ids)
    with pytest.raises(UsageError, match="needs room for 6 tokens, an output has at most 5"):
        search(Toy(vocab_size=9), arrays(SOURCES[:1]), config, max_length=5, constraints=[constraints_of])


def test_a_required_token_that_the_model_rules_out_leaves_the_search_stuck() -> None:
    def never_4(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
        logits[4] = -np.inf

    config = SearchConfig(beam=2, max_length_ratio=0.0, max_length_offset=5)
    (found,) = search(
        Toy(edit=never_4), arrays(SOURCES[:1]), config, max_length=9, constraints=[Constraints(required=[(4,)])]
    )
    assert found[0].finish_reason == "stuck"


def test_marks_are_not_generated_for_the_sake_of_a_phrase() -> None:
    engine = Toy(vocab_size=8)
    config = SearchConfig(beam=3, nbest=3, max_length_offset=3, forbid_unknown=True)
    for hypotheses in search(
        engine, arrays(SOURCES), config, max_length=9, constraints=[Constraints(required=[(4, 5)])] * 3
    ):
        for one in hypotheses:
            assert not {PAD, UNK, BOS, EOS} & set(one.token_ids)


def test_a_prefix_that_holds_many_phrases_at_once_is_not_too_late_for_them() -> None:
    config = SearchConfig(beam=2, max_length_ratio=0.0, max_length_offset=0)
    constraints_of = Constraints(prefix=(4, 5, 6, 7), required=[(4, 5), (5, 6), (6, 7)])
    (found,) = search(Toy(vocab_size=9), arrays(SOURCES[:1]), config, max_length=9, constraints=[constraints_of])
    assert found[0].finish_reason in ("eos", "length")
    assert found[0].token_ids[:4] == (4, 5, 6, 7)


def test_a_banned_phrase_that_begins_in_the_prefix_is_not_completed() -> None:
    def fond(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
        logits[4] += 9.0
        logits[EOS] = -np.inf

    config = SearchConfig(beam=2, nbest=2, max_length_ratio=0.0, max_length_offset=6)
    asked = [Constraints(prefix=(7, 5, 6), banned=[(5,), (5, 6, 4)])] * 2
    for found in search(Toy(edit=fond, vocab_size=9), arrays(SOURCES[:2]), config, max_length=9, constraints=asked):
        for one in found:
            assert one.token_ids[:3] == (7, 5, 6)
            assert one.token_ids[3:4] != (4,)
            assert 4 in one.token_ids
