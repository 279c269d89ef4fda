import pytest

from heedful.errors import UsageError
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints, check_constraints, holds, least_length, needs_gaps
from heedful.text.vocabulary import BOS, EOS, PAD, UNK


def check(constraints_of: Constraints, max_length: int = 10, **settings: object) -> Constraints:
    config = SearchConfig(**settings)  # type: ignore[arg-type]
    return check_constraints([constraints_of], None, 1, config, max_length)[0]


def test_nothing_asked_is_a_demand_for_each_source_with_its_place() -> None:
    free = check_constraints(None, None, 3, SearchConfig(), 5)
    assert [one.index for one in free] == [0, 1, 2]
    assert all(one.is_free for one in free)


def test_prefixes_are_short_for_demands() -> None:
    config = SearchConfig()
    assert check_constraints(None, [(4, 5), ()], 2, config, 5) == check_constraints(
        [Constraints(prefix=(4, 5)), Constraints()], None, 2, config, 5
    )


def test_an_index_that_is_given_stays() -> None:
    found = check_constraints([Constraints(index=7), Constraints(), Constraints(index=0)], None, 3, SearchConfig(), 5)
    assert [one.index for one in found] == [7, 1, 0]


def test_phrases_are_distinct_and_those_within_others_are_left_out() -> None:
    found = check(Constraints(required=[[4, 5], (5,), (4, 5), (5, 4), (6,)], banned=[[7], (7,), (7, 8)]))
    assert found.required == [(4, 5), (5, 4), (6,)]
    assert found.banned == [(7,), (7, 8)]
    assert not found.is_free


def test_least_length_is_all_one_after_the_other() -> None:
    assert least_length(Constraints()) == 1
    assert least_length(Constraints(prefix=(4,))) == 2
    assert least_length(Constraints(required=((4, 5), (6,)))) == 4
    assert least_length(Constraints(prefix=(6, 7), required=((4, 5), (6,)))) == 5
    assert least_length(Constraints(required=((4, 5), (6,)), banned=((7,),))) == 4
    apart = Constraints(required=((4, 5), (6,)), banned=((7, 8),))
    assert least_length(apart) == 6
    assert needs_gaps(apart)


def test_holds() -> None:
    assert holds((4, 5, 6), (4, 5, 6))
    assert holds([4, 4, 5], (4, 5))
    assert holds((), ())
    assert not holds((4, 5), (5, 4))
    assert not holds((4,), (4, 5))


@pytest.mark.parametrize(
    ("constraints_of", "settings", "message"),
    [
        (Constraints(prefix=(4, EOS)), {}, "prefixes: that of source 0 contains PAD, BOS, EOS"),
        (Constraints(prefix=(4,) * 10), {}, "prefixes: source 0 has 10 tokens, an output at most 10"),
        (Constraints(required=[()]), {}, "required phrases: one of source 0 is empty"),
        (Constraints(required=[(4, PAD)]), {}, "required phrases: one of source 0 contains PAD, BOS, EOS"),
        (Constraints(banned=[(BOS,)]), {}, "banned phrases: one of source 0 contains PAD, BOS, EOS"),
        (Constraints(banned=[(-4,)]), {}, "negative id"),
        (Constraints(banned=[[]]), {}, "banned phrases: one of source 0 is empty"),
        (Constraints(required=[(4,) * 10]), {}, "source 0 needs room for 11 tokens, an output has at most 10"),
        (Constraints(prefix=(5,) * 5, required=[(4,) * 5]), {}, "needs room for 11 tokens"),
        (Constraints(required=[(4, 5, 6)], banned=[(5, 6)]), {}, r"\[4, 5, 6\] contains \[5, 6\], which is banned"),
        (Constraints(required=[(4, UNK)]), {"forbid_unknown": True}, "forbid_unknown"),
        (
            Constraints(required=[(4,)]),
            {"no_repeat_ngram_size": 2},
            "no_repeat_ngram_size may make a phrase impossible",
        ),
        (Constraints(required=[(4,)]), {"method": "sampling", "beam": 1}, "sampling cannot guarantee a phrase"),
    ],
)
def test_what_cannot_be_had_is_refused(constraints_of: Constraints, settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check(constraints_of, **settings)


def test_what_fits_is_not_refused() -> None:
    assert check(Constraints(prefix=(4,) * 9)).prefix == (4,) * 9
    assert check(Constraints(required=[(4,) * 9])).required == [(4,) * 9]
    assert check(Constraints(prefix=(UNK,), required=[(UNK,)])).required == [(UNK,)]
    assert check(Constraints(prefix=(4, 5), banned=[(4, 5)]), method="sampling", beam=1, no_repeat_ngram_size=2)


def test_their_number_must_be_that_of_the_sources() -> None:
    config = SearchConfig()
    with pytest.raises(UsageError, match=r"constraints: 1 given for 2 sources"):
        check_constraints([Constraints()], None, 2, config, 5)
    with pytest.raises(UsageError, match="prefixes: 2 given for 1 sources"):
        check_constraints(None, [(), ()], 1, config, 5)
    with pytest.raises(UsageError, match="constraints are given as well"):
        check_constraints([Constraints()], [()], 1, config, 5)
