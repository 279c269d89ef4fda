"""Links from weights, of two directions and between words; every notation of alignments, and what is refused in it."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from heedful.errors import DataError, ShapeError, UsageError
from heedful.text.links import (
    GoldLinks,
    Links,
    combine_links,
    format_pharaoh,
    links_from_weights,
    merge_weights,
    parse_gold,
    parse_pharaoh,
    read_gold,
    read_numbered_gold,
)

LINKS = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)))


def test_each_target_token_is_linked_to_what_it_attends_to_most():
    weights = np.array([[0.1, 0.7, 0.2], [0.6, 0.3, 0.1], [0.0, 0.4, 0.6]])
    assert links_from_weights(weights, 3, 3) == [(0, 1), (1, 0), (2, 2)]


def test_end_marks_and_filling_are_left_out_before_the_maximum():
    weights = np.array([[0.1, 0.2, 0.7], [0.2, 0.1, 0.7], [0.9, 0.1, 0.0]])
    assert links_from_weights(weights, 2, 2) == [(0, 1), (1, 0)]


def test_ties_go_left_and_no_attention_makes_no_link():
    assert links_from_weights(np.array([[0.5, 0.5], [0.0, 0.0]]), 2, 2) == [(0, 0)]


@pytest.mark.parametrize(("source_length", "target_length"), [(0, 2), (2, 0), (0, 0)])
def test_an_empty_side_has_no_links(source_length: int, target_length: int):
    assert links_from_weights(np.ones((3, 3)), source_length, target_length) == []
    assert merge_weights(np.ones((3, 3)), [0] * source_length, [0] * target_length).size == 0


@pytest.mark.parametrize("shape", [(2, 2), (1, 3), (3,)])
def test_weights_too_small_are_refused(shape: tuple[int, ...]):
    weights = np.ones(shape)
    for refused in (
        lambda: links_from_weights(weights, 3, 2),
        lambda: merge_weights(weights, [0, 1, 2], [0, 1]),
    ):
        with pytest.raises(ShapeError, match=r"at least \[2, 3\]"):
            refused()


def test_words_receive_sums_and_give_means():
    #                    un   seen  one  </s>
    weights = np.array(
        [
            [0.10, 0.30, 0.20, 0.40],  # in
            [0.50, 0.10, 0.40, 0.00],  # visible
            [0.00, 0.20, 0.70, 0.10],  # man
            [0.10, 0.10, 0.10, 0.70],  # </s>
        ],
        dtype=np.float32,
    )
    expected = [[0.50, 0.30], [0.20, 0.70]]
    merged = merge_weights(weights, [0, 0, 1, -1], [0, 0, 1, -1])
    np.testing.assert_allclose(merged, expected, atol=1e-7)
    np.testing.assert_allclose(merge_weights(weights, [0, 0, 1], [0, 0, 1]), expected, atol=1e-7)
    assert merged.dtype == np.float64


def test_words_without_pieces_have_no_weight():
    merged = merge_weights(np.full((2, 2), 0.5), [0, 2], [1, -1])
    assert merged.tolist() == [[0, 0, 0], [0.5, 0, 0.5]]


@settings(max_examples=50)
@given(st.data(), st.integers(1, 6), st.integers(1, 6))
def test_rows_that_sum_to_1_still_do(data: st.DataObject, num_source: int, num_target: int):
    source_words = data.draw(st.lists(st.integers(0, 3), min_size=num_source, max_size=num_source))
    target_words = data.draw(st.lists(st.integers(-1, 3), min_size=num_target, max_size=num_target))
    weights = np.random.default_rng(num_source).dirichlet(np.ones(num_source), num_target)
    merged = merge_weights(weights, source_words, target_words)
    slow = np.zeros_like(merged)
    for word in set(target_words) - {-1}:
        pieces = [piece for piece, owner in enumerate(target_words) if owner == word]
        for piece in pieces:
            for position, owner in enumerate(source_words):
                slow[word, owner] += weights[piece, position] / len(pieces)
        assert merged[word].sum() == pytest.approx(1)
    np.testing.assert_allclose(merged, slow, atol=1e-12)


FORWARD = [(0, 0), (1, 1), (2, 1), (4, 4)]
BACKWARD = [(0, 0), (1, 1), (1, 2), (5, 5)]


def test_intersection_and_union():
    assert combine_links(FORWARD, BACKWARD, "intersection") == [(0, 0), (1, 1)]
    assert combine_links(FORWARD, BACKWARD, "union") == [(0, 0), (1, 1), (1, 2), (2, 1), (4, 4), (5, 5)]


def test_growing_adds_what_touches_and_brings_in_a_word():
    # (2, 1) and (1, 2) touch (1, 1); (4, 4) touches nothing.
    assert combine_links(FORWARD, BACKWARD) == [(0, 0), (1, 1), (1, 2), (2, 1)]
    # (0, 1) touches (0, 0) and (1, 1), but both its words have links.
    assert combine_links([(0, 0), (1, 1), (0, 1)], [(0, 0), (1, 1)]) == [(0, 0), (1, 1)]
    # What was added may be touched in turn.
    assert combine_links([(3, 3)], [(3, 3), (2, 2), (1, 1), (0, 0)]) == [(0, 0), (1, 1), (2, 2), (3, 3)]
    # Without a link to start from there is nothing to grow.
    assert combine_links([(0, 0)], [(0, 1)]) == []


def test_an_unknown_method_is_refused():
    with pytest.raises(UsageError, match="no method 'grow'; did you mean 'grow-diag'"):
        combine_links([], [], "grow")  # type: ignore[arg-type]


def slow_grow(forward: set[tuple[int, int]], backward: set[tuple[int, int]], size: int) -> Links:
    """The whole matrix again and again, as the paper's pseudo-code has it."""
    links = forward & backward
    neighbours = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]
    has_grown = True
    while has_grown:
        has_grown = False
        for target in range(size):
            for source in range(size):
                if (source, target) not in links:
                    continue
                for down, right in neighbours:
                    new = source + right, target + down
                    is_free = all(new[0] != one for one, _ in links) or all(new[1] != other for _, other in links)
                    if is_free and new in forward | backward and new not in links:
                        links = links | {new}
                        has_grown = True
    return sorted(links)


MATRICES = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=14)


@settings(max_examples=150)
@given(MATRICES, MATRICES)
def test_growing_equals_the_slow_reference(forward: set[tuple[int, int]], backward: set[tuple[int, int]]):
    grown = combine_links(forward, backward, "grow-diag")
    assert grown == slow_grow(forward, backward, 6)
    assert forward & backward <= set(grown) <= forward | backward


def test_dense_alignments_grow_as_the_slow_reference_does():
    generator = np.random.default_rng(0)
    for _ in range(60):
        both: NDArray[np.bool_] = generator.random((2, 7, 7)) < 0.4
        forward, backward = ({(int(s), int(t)) for s, t in zip(*np.nonzero(one), strict=True)} for one in both)
        assert combine_links(forward, backward) == slow_grow(forward, backward, 7)


@settings(max_examples=50)
@given(LINKS, st.booleans())
def test_pharaoh_round_trip(links: Links, one_based: bool):
    shift = int(one_based)
    line = format_pharaoh((source + shift, target + shift) for source, target in links)
    assert parse_pharaoh(line, one_based=one_based) == sorted(set(links))


def test_pharaoh_is_source_then_target_sorted_as_numbers():
    assert format_pharaoh([(10, 0), (9, 3), (9, 3), (0, 12)]) == "0-12 9-3 10-0"
    assert format_pharaoh([]) == ""
    assert parse_pharaoh(" 3-1\t0-0 \r\n") == [(0, 0), (3, 1)]


@pytest.mark.parametrize(
    "line", ["0", "0-", "-1-2", "a-b", "0-1-2", "0\u20131", "0:1", "1-0.5", "²-1", "٣-1", "1" * 5000]
)
def test_what_is_no_link_is_refused_with_its_place(line: str):
    with pytest.raises(DataError, match=r"gold.txt:7: '.*' is not a link"):
        parse_pharaoh(f"0-0 {line}", where="gold.txt:7")


def test_counted_from_1_there_is_no_position_0():
    assert parse_pharaoh("1-1 2-3", one_based=True) == [(0, 0), (1, 2)]
    with pytest.raises(DataError, match="'0-1' names position 0"):
        parse_pharaoh("0-1", one_based=True)


def test_gold_links_are_sure_or_possible_and_sure_ones_are_possible():
    assert parse_gold("1p2 0-0 1-1 1p1 3?0") == GoldLinks([(0, 0), (1, 1)], [(0, 0), (1, 1), (1, 2), (3, 0)])
    assert parse_gold("2p1", one_based=True) == GoldLinks([], [(1, 0)])
    for possible in ("0-0 1p2", "0-0 1?2"):
        with pytest.raises(DataError, match="possible links"):
            parse_pharaoh(possible)


def written(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def test_hand_made_files_of_a_sentence_a_line(tmp_path: Path):
    path = written(tmp_path / "gold", "1-1 2p3\n\n2?1\n")
    assert read_gold(path, one_based=True) == [
        GoldLinks([(0, 0)], [(0, 0), (1, 2)]),
        GoldLinks([], []),
        GoldLinks([], [(1, 0)]),
    ]
    assert read_gold(path)[2] == GoldLinks([], [(2, 1)])


def test_naacl_lines(tmp_path: Path):
    text = "0001 1 1 S\n1 2 3 P\n0001 0 4 S\n\n3 2 2\n3 3 1 0.75\n3 1 1 P 0.5\n3 1 2 S 1\n3 4 4 .9 P\n4 0 1 P\n"
    assert read_numbered_gold(written(tmp_path / "gold", text)) == {
        1: GoldLinks([(0, 0)], [(0, 0), (1, 2)]),
        3: GoldLinks([(0, 1), (1, 1), (2, 0)], [(0, 0), (0, 1), (1, 1), (2, 0), (3, 3)]),
        4: GoldLinks([], []),
    }


def test_rwth_lines(tmp_path: Path):
    text = "SENT: 0\r\nS 0 0\r\nP 1 2\r\n\r\nSENT: 1\r\n\r\nSENT: 12\r\nS 3  4\r\n"
    assert read_numbered_gold(written(tmp_path / "gold", text)) == {
        0: GoldLinks([(0, 0)], [(0, 0), (1, 2)]),
        1: GoldLinks([], []),
        12: GoldLinks([(3, 4)], [(3, 4)]),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1 1 S\n1 1\n", "2: '1 1' is not a link; expected 'sentence source target S'"),
        ("1 1 1 X\n", "1: '1 1 1 X' is not a link"),
        ("1 -1 1 S\n", "1: '1 -1 1 S' is not a link"),
        ("1-1 2-2\n", "1: '1-1 2-2' is not a link"),
        ("S 1 1\n", "1: 'S 1 1' is not a link"),
        ("SENT: 1\n1 1 1 S\n", "2: '1 1 1 S' is not a link; expected 'S source target' or 'P source target'"),
        ("SENT: 1\nS 1\n", "2: 'S 1' is not a link"),
        ("1 1 " + "1" * 5000, "1: '1 1 1111"),
    ],
)
def test_other_lines_are_refused(tmp_path: Path, text: str, message: str):
    path = written(tmp_path / "gold", text)
    with pytest.raises(DataError) as caught:
        read_numbered_gold(path)
    assert str(caught.value).startswith(f"{path}:{message}")


def test_faults_of_files_are_named_with_their_line(tmp_path: Path):
    path = written(tmp_path / "gold", "0-0\n0p1\nx\n")
    with pytest.raises(DataError, match=r"gold:3: 'x' is not a link"):
        read_gold(path)
    with pytest.raises(DataError, match=r"gold:1: '0-0' names position 0"):
        read_gold(path, one_based=True)
    with pytest.raises(DataError, match="cannot be read"):
        read_gold(tmp_path / "none")


@settings(max_examples=100)
@given(
    st.one_of(
        st.binary(max_size=40),
        st.lists(st.sampled_from(["0", "1", "12", "-", "p", "?", " ", "\n", "S", "P", "SENT:", ".5"])).map(
            lambda parts: "".join(parts).encode()
        ),
    )
)
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes):
    path = tmp_path_factory.getbasetemp() / "fuzzed"
    path.write_bytes(content)
    for read in (read_gold, read_numbered_gold):
        try:
            read(path)
        except DataError as error:
            message = str(error)
        else:
            message = f"{path}:"
        assert message.startswith(f"{path}:")


def test_alignments_made_by_hand(corpora: Path):
    gold = read_gold(corpora / "zhen_alignment" / "zhen.gold", one_based=True)
    pairs = (corpora / "zhen_alignment" / "zhen.src-tgt").read_text("utf-8").split("\n")[:-1]
    assert len(gold) == len(pairs) == 450
    for links, pair in zip(gold, pairs, strict=True):
        source, target = (len(side.split()) for side in pair.split(" ||| "))
        assert all(0 <= one < source and 0 <= other < target for one, other in links.possible)
