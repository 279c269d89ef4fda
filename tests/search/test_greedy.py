"""The loop of greedy search against the general one."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import NonFiniteError, UsageError
from heedful.search import beam
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints
from heedful.search.greedy import is_greedy
from heedful.search.interface import Hypothesis
from heedful.search.search_state import SearchState
from heedful.text.vocabulary import EOS
from tests.search.engines import Edit, Tokens, Toy, never_ends
from tests.search.test_beam import SOURCES, arrays, config

Cancel = Callable[[], bool]


def stuck_after_two(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
    """Make everything impossible after two tokens of some sources."""
    if len(prefix) == 2 and len(source) % 2:
        logits[:] = -np.inf


def both(
    engine: Callable[[], Toy], chosen: SearchConfig, cancelled: Callable[[], Cancel] | None = None, **keywords: object
) -> tuple[list[list[Hypothesis]], list[list[Hypothesis]]]:
    """Outputs of the loop, and of the general search."""
    found = []
    for general in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            if general:
                patch.setattr(beam, "is_greedy", lambda _: False)
            stop = cancelled() if cancelled else None
            found.append(
                beam.search(engine(), arrays(SOURCES), chosen, max_length=60, cancelled=stop, **keywords)  # type: ignore[arg-type]
            )
    return found[0], found[1]


def assert_equal(one: list[list[Hypothesis]], other: list[list[Hypothesis]]) -> None:
    assert one == other  # bit by bit
    for mine, its in zip(one, other, strict=True):
        for left, right in zip(mine, its, strict=True):
            if left.weights is None or right.weights is None:
                assert left.weights is right.weights
            else:
                assert np.array_equal(left.weights, right.weights)


@given(
    seed=st.integers(0, 10_000),
    edit=st.sampled_from([None, never_ends, stuck_after_two]),
    alpha=st.sampled_from([0.0, 0.6, 1.0]),
    beta=st.sampled_from([0.0, 0.3]),
    min_length=st.integers(0, 4),
    forbid_unknown=st.booleans(),
    need_alignment=st.booleans(),
    offset=st.sampled_from([0, 4, 50]),
    stopping=st.sampled_from(["likely", "full", "certain"]),
)
@settings(max_examples=150, deadline=None)
def test_outputs_equal_those_of_the_general_search(
    seed: int,
    edit: Edit | None,
    alpha: float,
    beta: float,
    min_length: int,
    forbid_unknown: bool,
    need_alignment: bool,
    offset: int,
    stopping: str,
) -> None:
    chosen = config(
        beam=1,
        alpha=alpha,
        beta=beta,
        min_length=min_length,
        forbid_unknown=forbid_unknown,
        max_length_offset=offset,
        length_reward=0.1,
        stopping=stopping,
    )
    assert_equal(*both(lambda: Toy(seed=seed, edit=edit), chosen, need_alignment=need_alignment))


@pytest.mark.parametrize("steps", range(6))
def test_a_search_that_is_cancelled_returns_what_it_has(steps: int) -> None:
    def cancelled() -> Cancel:
        left = iter([False] * steps)
        return lambda: next(left, True)

    one, other = both(lambda: Toy(seed=3, edit=never_ends), config(beam=1), cancelled)
    assert_equal(one, other)
    assert {each.finish_reason for hypotheses in one for each in hypotheses} >= {"cancelled"}


def test_banned_tokens_are_never_taken_and_must_be_in_the_vocabulary() -> None:
    banned = [Constraints(banned=((5,), (6,)))] * len(SOURCES)
    one, other = both(lambda: Toy(seed=5, vocab_size=8), config(beam=1), constraints=banned)
    assert_equal(one, other)
    assert not {5, 6} & {token for hypotheses in one for each in hypotheses for token in each.token_ids}
    with pytest.raises(UsageError, match="token 9 is not in the vocabulary of 7"):
        beam.search(Toy(), arrays(SOURCES[:1]), config(beam=1), max_length=9, constraints=[Constraints(banned=((9,),))])


def test_nan_is_refused() -> None:
    def broken(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
        logits[:] = np.nan if len(prefix) == 1 and len(source) == 4 else logits

    with pytest.raises(NonFiniteError):
        beam.search(Toy(edit=broken), arrays([(5, EOS), (5, 6, 4, EOS)]), config(beam=1), max_length=9)


@pytest.mark.parametrize(
    "changes",
    [{"beam": 2}, {"method": "sampling", "nbest": 2}, {"repetition_penalty": 1.5}, {"no_repeat_ngram_size": 2}],
)
def test_all_else_is_left_to_the_general_search(changes: dict[str, object]) -> None:
    def state(chosen: SearchConfig, constraints: Constraints) -> SearchState:
        return SearchState.of(arrays(SOURCES[:1]), chosen, 9, False, None, [constraints])

    assert is_greedy(state(config(beam=1), Constraints()))
    assert is_greedy(state(config(beam=1), Constraints(banned=((5,),))))
    assert not is_greedy(state(config(**{"beam": 1, **changes}), Constraints()))
    for bound in (Constraints(prefix=(5,)), Constraints(required=((5,),)), Constraints(banned=((5, 6),))):
        assert not is_greedy(state(config(beam=1), bound))
