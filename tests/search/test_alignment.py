import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import DataError, ShapeError
from heedful.search.alignment import (
    GoldLinks,
    format_pharaoh,
    links_from_weights,
    merge_pieces,
    parse_gold,
    parse_pharaoh,
)

LINKS = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)))


def test_each_target_token_is_linked_to_what_it_attends_to_most() -> None:
    weights = np.array([[0.1, 0.7, 0.2], [0.6, 0.3, 0.1], [0.0, 0.4, 0.6]])
    assert links_from_weights(weights, 3, 3) == [(0, 1), (1, 0), (2, 2)]


def test_end_marks_and_filling_are_left_out_before_the_maximum() -> None:
    weights = np.array([[0.1, 0.2, 0.7], [0.2, 0.1, 0.7], [0.9, 0.1, 0.0]])
    assert links_from_weights(weights, 2, 2) == [(0, 1), (1, 0)]


def test_ties_go_left_and_no_attention_makes_no_link() -> None:
    assert links_from_weights(np.array([[0.5, 0.5], [0.0, 0.0]]), 2, 2) == [(0, 0)]


@pytest.mark.parametrize(("source_length", "target_length"), [(0, 2), (2, 0), (0, 0)])
def test_an_empty_side_has_no_links(source_length: int, target_length: int) -> None:
    assert links_from_weights(np.ones((3, 3)), source_length, target_length) == []


@pytest.mark.parametrize("shape", [(2, 2), (1, 3), (3,)])
def test_weights_too_small_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"at least \[2, 3\]"):
        links_from_weights(np.ones(shape), 3, 2)


def test_words_are_linked_if_any_of_their_pieces_are() -> None:
    links = [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert merge_pieces(links, [0, 0, 1, -1], [0, 1, 1, 2]) == [(0, 0), (0, 1), (1, 1)]


def test_pieces_of_no_word_drop_out_on_both_sides() -> None:
    assert merge_pieces([(0, 0), (1, 1), (0, 1)], [-1, 0], [0, -1]) == []


@pytest.mark.parametrize("link", [(2, 0), (0, 1), (-1, 0)])
def test_a_link_outside_the_pieces_is_refused(link: tuple[int, int]) -> None:
    with pytest.raises(ShapeError, match="outside 2 source and 1 target"):
        merge_pieces([link], [0, 1], [0])


@given(LINKS, st.booleans())
def test_pharaoh_round_trip(links: list[tuple[int, int]], one_based: bool) -> None:
    shift = int(one_based)
    line = format_pharaoh((source + shift, target + shift) for source, target in links)
    assert parse_pharaoh(line, one_based=one_based) == sorted(set(links))


def test_pharaoh_is_source_then_target_sorted_as_numbers() -> None:
    assert format_pharaoh([(10, 0), (9, 3), (9, 3), (0, 12)]) == "0-12 9-3 10-0"
    assert format_pharaoh([]) == ""
    assert parse_pharaoh(" 3-1\t0-0 \r\n") == [(0, 0), (3, 1)]


@pytest.mark.parametrize("line", ["0", "0-", "-1-2", "a-b", "0-1-2", "0\u20131", "0:1", "1-0.5", "²-1", "٣-1"])
def test_what_is_no_link_is_refused_with_its_place(line: str) -> None:
    with pytest.raises(DataError, match=r"gold.txt:7: '.*' is not a link"):
        parse_pharaoh(f"0-0 {line}", where="gold.txt:7")


def test_counted_from_1_there_is_no_position_0() -> None:
    assert parse_pharaoh("1-1 2-3", one_based=True) == [(0, 0), (1, 2)]
    with pytest.raises(DataError, match="'0-1' names position 0"):
        parse_pharaoh("0-1", one_based=True)


def test_gold_links_are_sure_or_possible_and_sure_ones_are_possible() -> None:
    assert parse_gold("1p2 0-0 1-1 1p1") == GoldLinks([(0, 0), (1, 1)], [(0, 0), (1, 1), (1, 2)])
    assert parse_gold("2p1", one_based=True) == GoldLinks([], [(1, 0)])
    with pytest.raises(DataError, match="possible links"):
        parse_pharaoh("0-0 1p2")


def test_a_number_too_long_to_read_is_refused() -> None:
    with pytest.raises(DataError, match="is not a link"):
        parse_pharaoh("1" * 5000 + "-1")
