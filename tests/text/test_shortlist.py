"""Vocabulary shortlists learned from pairs."""

import pytest

from heedful.errors import DataError
from heedful.text import shortlist as module
from heedful.text.shortlist import Shortlist

PAIRS = [([4, 5], [14, 15]), ([4, 6], [14, 16]), ([7, 6], [17, 16]), ([4], [14])]


def test_a_source_has_the_common_tokens_and_its_translations(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "NUM_COMMON", 1)
    monkeypatch.setattr(module, "NUM_TRANSLATIONS", 1)
    shortlist = Shortlist.learn(PAIRS)
    assert shortlist.common == (14,)
    assert shortlist.candidates([7, 6]).tolist() == [14, 16, 17]
    assert shortlist.candidates([5]).tolist() == [14, 15]
    assert shortlist.candidates([]).tolist() == shortlist.candidates([99]).tolist() == [14]


def test_improbable_translations_are_left_out(monkeypatch: pytest.MonkeyPatch):
    every = Shortlist.learn(PAIRS).translations[6]
    monkeypatch.setattr(module, "LEAST_PROBABILITY", 0.5)
    assert set(Shortlist.learn(PAIRS).translations[6]) == {16} < set(every)


def test_equally_frequent_tokens_come_in_the_order_of_their_ids(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "NUM_COMMON", 2)
    assert Shortlist.learn([([4], [19]), ([5], [18]), ([6], [17])]).common == (17, 18)


@pytest.mark.parametrize("pairs", [[], [([], [])]])
def test_nothing_to_learn_from_is_refused(pairs: list[tuple[list[int], list[int]]]):
    with pytest.raises(DataError, match="shortlist: there are no pairs"):
        Shortlist.learn(pairs)
