import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.search.beam import search
from heedful.search.beam_state import BeamState
from heedful.search.config import SearchConfig
from heedful.search.stopping import is_certain
from heedful.text.vocabulary import EOS
from tests.search.engines import Tokens, Toy, all_outputs, slow_search

SOURCES: list[Tokens] = [(5, 6, EOS), (4, EOS), (6, 4, 5, 5, EOS)]
ARRAYS = [np.array(source) for source in SOURCES]
SCORES = st.fixed_dictionaries(
    {
        "length_penalty": st.sampled_from(["power", "gnmt"]),
        "alpha": st.sampled_from([0.0, 0.6, 1.0, 3.0]),
        "length_reward": st.sampled_from([0.0, 0.5, 3.0]),
    }
)


@given(
    scores=SCORES,
    beam=st.integers(1, 6),
    nbest=st.integers(1, 6),
    offset=st.integers(1, 8),
    seed=st.integers(0, 10_000),
    sharpness=st.sampled_from([0.3, 2.0, 6.0]),
)
@settings(max_examples=100, deadline=None)
def test_certain_is_as_good_as_never_stopping(
    scores: dict[str, object], beam: int, nbest: int, offset: int, seed: int, sharpness: float
) -> None:
    config = SearchConfig(
        beam=beam,
        nbest=min(beam, nbest),
        stopping="certain",
        max_length_ratio=1.0,
        max_length_offset=offset,
        **scores,  # type: ignore[arg-type]
    )
    engine = Toy(seed=seed, sharpness=sharpness, vocab_size=9)
    for source, found in zip(SOURCES, search(engine, ARRAYS, config, max_length=99), strict=True):
        expected = slow_search(engine, source, config, len(source) - 1 + offset)
        assert [one.token_ids for one in found] == [one.tokens for one in expected]
        assert [one.score for one in found] == pytest.approx([one.score for one in expected], rel=1e-13)


@given(scores=SCORES, nbest=st.integers(1, 13), seed=st.integers(0, 10_000), sharpness=st.sampled_from([0.5, 3.0]))
@settings(max_examples=40, deadline=None)
def test_with_a_beam_as_wide_as_all_prefixes_certain_finds_the_best_of_all_outputs(
    scores: dict[str, object], nbest: int, seed: int, sharpness: float
) -> None:
    engine = Toy(seed=seed, vocab_size=6, sharpness=sharpness)
    config = SearchConfig(
        beam=13,  # prefixes of fewer than 3 tokens out of 3
        nbest=nbest,
        stopping="certain",
        max_length_ratio=0.0,
        max_length_offset=3,
        **scores,  # type: ignore[arg-type]
    )
    for source in SOURCES:
        (found,) = search(engine, [np.array(source)], config, max_length=99)
        expected = all_outputs(engine, source, config, 3)[:nbest]
        assert [one.score for one in found] == pytest.approx([one.score for one in expected], rel=1e-13)
        assert {one.token_ids for one in found} == {one.tokens for one in expected}


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_coverage_only_lowers_scores_so_the_bound_holds(beta: float) -> None:
    def best(stopping: str, min_steps: int) -> list[float]:
        # A cap that is never reached early: nothing but the rule ends the search.
        config = SearchConfig(
            beam=3,
            nbest=3,
            beta=beta,
            stopping=stopping,
            max_length_ratio=0.0,
            max_length_offset=min_steps,  # type: ignore[arg-type]
        )
        engine = Toy(vocab_size=9, sharpness=3.0)
        return [one.score for found in search(engine, ARRAYS, config, max_length=99) for one in found]

    certain, likely = best("certain", 12), best("likely", 12)
    assert all(one >= other for one, other in zip(certain, likely, strict=True))


def test_the_likely_rule_may_stop_before_the_best_and_the_certain_one_does_not() -> None:
    def slow_start(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
        logits[:] = -np.inf
        if not prefix:
            logits[[EOS, 4]] = np.log(0.55), np.log(0.45)
        elif len(prefix) == 1:
            logits[[EOS, 4]] = np.log(0.4), np.log(0.6)
        else:
            logits[EOS if len(prefix) == 8 else 4] = 0.0

    def find(stopping: str) -> tuple[Tokens, int]:
        engine = Toy(edit=slow_start)
        config = SearchConfig(beam=2, stopping=stopping, max_length_ratio=0.0, max_length_offset=20)  # type: ignore[arg-type]
        (found,) = search(engine, [np.array((4, EOS))], config, max_length=99)
        return found[0].token_ids, len(engine.rows_fed)

    assert find("likely") == ((), 2)
    # log 0.27 / 9 is more than log 0.55.
    assert find("certain") == ((4,) * 8, 9)


def test_certain_stops_before_the_cap_once_nothing_can_come() -> None:
    def sure_of_the_end(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
        logits[:] = -12.0
        logits[EOS if len(prefix) == 2 else 4] = 0.0

    for alpha, most in ((0.0, 3), (0.6, 4), (1.0, 30)):
        engine = Toy(edit=sure_of_the_end)
        config = SearchConfig(beam=3, alpha=alpha, stopping="certain", max_length_ratio=0.0, max_length_offset=40)
        search(engine, ARRAYS, config, max_length=99)
        assert len(engine.rows_fed) <= most


def test_the_bound_is_the_score_at_the_cap() -> None:
    config = SearchConfig(beam=2, alpha=1.0, length_reward=0.1, stopping="certain")
    beam_state = BeamState.start(3, config)
    beam_state.log_probs[:] = [[-4.0, -9.0], [-4.0, -9.0], [-np.inf, -np.inf]]
    bound = -4.0 / 10 + 0.1 * 10
    found = np.array([bound, np.nextafter(bound, -9.0), -np.inf])
    assert is_certain(beam_state, found, np.array([10, 10, 10]), config).tolist() == [True, False, True]
