"""Sets of digests behave as sets of texts, in 8 bytes each."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.digests import DigestSet, digest, digest_pair, fold

BLOCKS = st.lists(st.lists(st.integers(0, 40), max_size=12), max_size=12)


@given(BLOCKS)
def test_it_is_a_set(blocks: list[list[int]]):
    seen: set[int] = set()
    digests = DigestSet()
    for block in blocks:
        expected: list[bool] = []
        for number in block:
            expected.append(number not in seen)
            seen.add(number)
        assert digests.add(np.array(block, dtype=np.uint64)).tolist() == expected
        assert len(digests) == len(seen)
        probe = np.arange(42, dtype=np.uint64)
        assert digests.contains(probe).tolist() == [number in seen for number in range(42)]


def test_large_numbers_and_memory():
    digests = DigestSet()
    numbers = np.random.default_rng(3).integers(0, 1 << 64, 50_000, dtype=np.uint64)
    for block in np.array_split(numbers, 37):
        assert digests.add(block).all()
    assert digests.contains(numbers).all()
    assert not digests.contains(numbers + np.uint64(1)).any()
    runs = digests._runs  # pyright: ignore[reportPrivateUsage]
    assert sum(run.nbytes for run in runs) == 8 * len(numbers)
    assert len(runs) <= 16


def test_digests_are_the_same_everywhere():
    assert digest("Guten Tag") == 7460145015394183082
    assert digest_pair("ab", "c") != digest_pair("a", "bc")
    assert digest_pair("a", "b") != digest_pair("b", "a")
    assert digest("\ud800") != digest("\udc00")


def test_folding():
    assert fold("Ａ") == "ａ"
    assert fold("Stra\u00dfe\u2028 e\u0301 ") == fold("STRASSE \u00e9") == "strasse \u00e9"
