"""Word vectors of every layout, what is refused in them, embeddings made of them, and what gensim can read."""

import gzip
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from heedful.errors import DataError, ShapeError
from heedful.text.vectors import (
    MAX_SIZE,
    WordVectors,
    embedding_rows,
    measure_coverage,
    read_vectors,
    write_vectors,
)

WORDS = ("the", "Häuser", "10", "我", "don't")
MATRIX = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)
Writer = Callable[[Sequence[str], NDArray[np.float32]], bytes]


def glove(words: Sequence[str], matrix: NDArray[np.float32]) -> bytes:
    lines = (f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, matrix, strict=True))
    return "".join(lines).encode()


def word2vec(words: Sequence[str], matrix: NDArray[np.float32]) -> bytes:
    return f"{len(words)} {matrix.shape[1]}\n".encode() + glove(words, matrix)


def fasttext(words: Sequence[str], matrix: NDArray[np.float32]) -> bytes:
    return word2vec(words, matrix).replace(b"\n", b" \n").replace(b" \n", b"\n", 1)


def binary(words: Sequence[str], matrix: NDArray[np.float32], end: bytes = b"\n") -> bytes:
    rows = (word.encode() + b" " + row.astype("<f4").tobytes() + end for word, row in zip(words, matrix, strict=True))
    return f"{len(words)} {matrix.shape[1]}\n".encode() + b"".join(rows)


def binary_without_line_ends(words: Sequence[str], matrix: NDArray[np.float32]) -> bytes:
    return binary(words, matrix, end=b"")


LAYOUTS: dict[Writer, str] = {
    glove: "GloVe text",
    word2vec: "word2vec text",
    fasttext: "word2vec text",
    binary: "word2vec binary",
    binary_without_line_ends: "word2vec binary",
}


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("writer", LAYOUTS)
def test_layouts_are_known_by_their_content(tmp_path: Path, writer: Writer, packed: bool):
    content = writer(WORDS, MATRIX)
    path = written(tmp_path / "v", gzip.compress(content, mtime=0) if packed else content)
    found = read_vectors(path, {"我", "Häuser", "absent", "10"})
    assert (found.words, found.layout, found.num_read, found.size) == (("Häuser", "10", "我"), LAYOUTS[writer], 5, 4)
    assert found.matrix.dtype == np.float32
    np.testing.assert_array_equal(found.matrix, MATRIX[[1, 2, 3]])
    assert found.folded == frozenset()


@pytest.mark.parametrize("writer", LAYOUTS)
def test_nothing_wanted_and_nothing_found(tmp_path: Path, writer: Writer):
    path = written(tmp_path / "v", writer(WORDS, MATRIX))
    for wanted in ((), ("absent",)):
        found = read_vectors(path, wanted)
        assert (found.words, found.matrix.shape, found.num_read) == ((), (0, 4), 5)


@pytest.mark.parametrize("writer", [glove, binary])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, writer: Writer):
    words = [*(f"w{number}" for number in range(6000)), "last"]
    matrix = np.ones((6001, 600), dtype=np.float32)
    path = written(tmp_path / "v", writer(words, matrix))
    assert path.stat().st_size > 14_000_000
    tracemalloc.start()
    try:
        found = read_vectors(path, ["last", "w5", "w5999"])
        assert tracemalloc.get_traced_memory()[1] < 6_000_000
    finally:
        tracemalloc.stop()
    assert found.words == ("w5", "w5999", "last")


def test_what_follows_the_last_word_is_not_kept(tmp_path: Path):
    path = written(tmp_path / "v", binary(("a",), MATRIX[:1]) + b"more " * 3_000_000)
    tracemalloc.start()
    try:
        assert "more than the 1 words" in refusal(path)
        assert tracemalloc.get_traced_memory()[1] < 6_000_000
    finally:
        tracemalloc.stop()


def test_a_binary_file_is_read_across_pieces(tmp_path: Path):
    # 2.4 MB in pieces of 1 MiB: records lie across their borders.
    words = [f"w{number}" for number in range(2000)]
    matrix = np.random.default_rng(0).normal(size=(2000, 300)).astype(np.float32)
    for end in (b"\n", b""):
        found = read_vectors(written(tmp_path / "v", binary(words, matrix, end)), words)
        assert found.words == tuple(words)
        np.testing.assert_array_equal(found.matrix, matrix)
    matrix[1999, 0] = np.nan
    content = binary(words, matrix)
    message = refusal(written(tmp_path / "v", content), words)
    assert f"at byte {content.index(b'w1999 '):,}: a number of 'w1999'" in message


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf2 2\na 1 2\nb 3 4\n",
        b"2 2\r\na 1 2\r\nb 3 4\r\n",
        b"2 2\na 1 2 \n  \nb 3 4 \n \n",
        b"2 2\na 1 2\nb 3 4",
        b"a\t1\t2\nb\t3\t4\n",
        b"a  1.0e0   2 \n\nb 3 +4.\n\n",
        b"\xef\xbb\xbfa 1 2\nb 3 4",
        b"a 1 2\n 0.5 0.25\n 0.5  0.25\nb 3 4\n",
        b"a 1 2\nbad\xff\xfe 3 4\nb 3 4\n",
        b"a 1 2\nunread nan x\nb 3 4\n",
    ],
)
def test_what_files_in_use_look_like(tmp_path: Path, content: bytes):
    found = read_vectors(written(tmp_path / "v", content), {"a", "b"})
    assert (found.words, found.matrix.tolist()) == (("a", "b"), [[1, 2], [3, 4]])


def test_words_with_blanks_are_counted_from_the_right(tmp_path: Path):
    path = written(tmp_path / "v", b". . . 1 2\nat name@domain.com 3 4\n1/2 5 6\n3 7 8\n\xc2\xa0 9 1\na b\tc 2 3\n")
    wanted = [". . .", "at name@domain.com", "at", "1/2", "3", "\xa0", "a b\tc"]
    found = read_vectors(path, wanted)
    assert found.words == (". . .", "at name@domain.com", "1/2", "3", "\xa0", "a b\tc")
    assert found.matrix.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8], [9, 1], [2, 3]]


def test_the_size_of_a_first_word_that_is_a_number(tmp_path: Path):
    found = read_vectors(written(tmp_path / "v", b"7 0.5 0.25\na 1 2\n"), ["7"])
    assert (found.words, found.matrix.tolist()) == (("7",), [[0.5, 0.25]])


TEXT_FAULTS = {
    b"a 1 2\nb 3\n": ":2: 1 number after the word; expected 2",
    b"a 1 2\nb\n": ":2: 0 numbers after the word; expected 2",
    b"a 1 2\nb 3 4 5\n": ":2: 3 numbers after the word; expected 2",
    b"a 1 2\nb 3 x\n": ":2: 'x' among the numbers of 'b'",
    b"a 1 2\nb 3 1_0\n": ":2: '1_0' among the numbers of 'b'",
    b"a 1 2\nb  3\n": ":2: 1 numbers after 'b'; expected 2",
    b"a 1 2\nb 3 nan\n": ":2: a number of 'b' is infinite, not a number or too large for float32",
    b"a 1 2\nb 3 -inf\n": ":2: a number of 'b' is infinite",
    b"a 1 2\nb 3 1e39\n": ":2: a number of 'b' is infinite",
    b"2 2\na 1 2\nb 3 4 5\n": ":3: 3 numbers after the word; expected 2",
    b"2 2\na 1 2\nb c 3 4\n": ":3: 3 numbers after the word; expected 2",
    b"a 1 2\nc 0 0\na 1 2\n": ":3: 'a' once more, first at {path}:1; remove one of the two",
    b"3 2\na 1 2\nb 3 4\n": ":1: says that 3 words follow, but there are 2; fetch it again",
    b"1 2\na 1 2\nb 3 4\n": ":1: says that 1 words follow, but there are 2; fetch it again",
    b"1 0\na\n": ":1: vectors of 0 numbers; expected 1 to 100,000",
    b"1 100001\na 1\n": ":1: vectors of 100001 numbers",
    b"": ":1: empty",
    b"\xef\xbb\xbf": ":1: empty",
    b"\na 1 2\n": ":1: empty",
    b"word\n": ":1: no word vectors; expected 'count size' or a word and its numbers",
    b"a line of words\n": ":1: no word vectors",
    b"PK\x03\x04......": ": a zip archive; unzip it",
    b"\xba\x16\x4f\x2f\x0c": ": a model of fastText; give the .vec file",
    b"\x80\x04\x95": ": a pickle, which is not read",
    gzip.compress(b"a 1 2\nb 3 4\n", mtime=0)[:-3]: ": damaged gzip data",
}


def refusal(path: Path, wanted: Sequence[str] = ("a", "b")) -> str:
    with pytest.raises(DataError) as caught:
        read_vectors(path, wanted)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("content", TEXT_FAULTS)
def test_faults_of_text_are_named_with_their_line(tmp_path: Path, content: bytes):
    path = written(tmp_path / "v", content)
    assert refusal(path).startswith(str(path) + TEXT_FAULTS[content].format(path=path))


def test_damaged_text_after_a_first_line_is_not_called_binary(tmp_path: Path):
    path = written(tmp_path / "v", b"20 3\n" + b"some words that are no numbers\n" * 20)
    assert refusal(path) == f"{path}:2: 5 numbers after the word; expected 3"


def test_files_that_are_not_there_are_refused(tmp_path: Path):
    assert refusal(tmp_path / "none") == f"{tmp_path / 'none'}: cannot be read: No such file or directory"
    assert refusal(tmp_path).startswith(f"{tmp_path}: a folder, not a file")


@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_binary_file_cut_off_anywhere_is_refused(tmp_path: Path, end: bytes):
    content = binary(WORDS, MATRIX, end)
    whole = len(content) - len(end)
    for length in range(4, whole):
        message = refusal(written(tmp_path / "v", content[:length]))
        assert ("ends early" in message and "at byte" in message) or "says that 5 words follow" in message
    assert read_vectors(written(tmp_path / "v", content[:whole]), WORDS).words == WORDS


def test_faults_of_binary_files_are_named_with_their_byte(tmp_path: Path):
    path = tmp_path / "v"
    content = binary(("x", "a"), MATRIX[:2])
    assert refusal(written(path, content + b"b ")) == (
        f"{path}: at byte 41: more than the 2 words that the first line says; is the file damaged?"
    )
    assert read_vectors(written(path, content + b"\n\n"), ["a"]).words == ("a",)
    wrong = np.array([[1, 2], [3, np.inf]], dtype=np.float32)
    assert refusal(written(path, binary(("x", "a"), wrong))).startswith(f"{path}: at byte 15: a number of 'a' is inf")
    assert read_vectors(path, ["x"]).words == ("x",)
    repeated = binary(("a", "x", "a"), MATRIX[:3])
    expected = f"{path}: at byte 42: 'a' once more, first at {path}: at byte 4; remove one of the two"
    assert refusal(written(path, repeated)) == expected
    no_blanks = b"9 2\n" + b"\0\xff" * (1 << 20)
    assert "at byte 4: no word and 2 numbers" in refusal(written(path, no_blanks))
    # More than a piece of the file after the last word.
    assert "more than the 2 words" in refusal(written(path, content + b"\n" * (2 << 20) + b"x"))


@pytest.mark.parametrize("writer", [glove, word2vec, binary])
def test_the_first_of_repeated_words_on_request(tmp_path: Path, writer: Writer):
    path = written(tmp_path / "v", writer(("a", "b", "a"), MATRIX[:3]))
    found = read_vectors(path, ["a", "b"], repeated="first")
    assert found.words == ("a", "b")
    np.testing.assert_array_equal(found.matrix, MATRIX[:2])
    assert read_vectors(path, ["b"]).words == ("b",)


@pytest.mark.parametrize("writer", [glove, binary])
def test_another_case_is_taken_only_for_want_of_the_word_itself(tmp_path: Path, writer: Writer):
    path = written(tmp_path / "v", writer(("HAUS", "haus", "Haus", "ÄRA", "x"), MATRIX))
    wanted = ["Haus", "hauS", "ära", "y"]
    assert read_vectors(path, wanted).words == ("Haus",)
    found = read_vectors(path, wanted, ignore_case=True)
    assert (found.words, found.folded) == (("Haus", "hauS", "ära"), {"hauS", "ära"})
    np.testing.assert_array_equal(found.matrix, MATRIX[[2, 0, 3]])


def test_wanted_words_that_no_file_can_hold(tmp_path: Path):
    found = read_vectors(written(tmp_path / "v", b"a 1 2\n"), ["\ud800", "", "a\nb", "a"], ignore_case=True)
    assert found.words == ("a",)


def test_word_vectors_are_checked():
    with pytest.raises(ShapeError, match=r"2 words have vectors of shape \[3, 2\]"):
        WordVectors(("a", "b"), np.zeros((3, 2), dtype=np.float32))
    with pytest.raises(ShapeError, match=r"shape \[2\]"):
        WordVectors(("a", "b"), np.zeros(2, dtype=np.float32))
    with pytest.raises(DataError, match="a word is repeated"):
        WordVectors(("a", "a"), np.zeros((2, 2), dtype=np.float32))
    with pytest.raises(DataError, match="infinite or not a number"):
        WordVectors(("a",), np.array([[np.nan]], dtype=np.float32))


def test_coverage_counts_words_and_running_words():
    vectors = WordVectors(("a", "b", "C", "other"), np.ones((4, 2), dtype=np.float32), folded=frozenset("C"))
    found = measure_coverage({"a": 5, "b": 1, "C": 3, "d": 2, "e": 9, "f": 2}, vectors)
    assert (found.num_types, found.num_found, found.num_folded) == (6, 2, 1)
    assert (found.num_running, found.num_running_found, found.num_running_folded) == (22, 6, 3)
    assert found.missing == ("e", "d", "f")
    assert str(found) == ("vectors for 2 of 6 words (33.3 %), 27.3 % of running words, 13.6 % more (1) by another case")
    assert str(measure_coverage({"a": 3}, vectors)) == "vectors for 1 of 1 words (100.0 %), 100.0 % of running words"
    assert "0 of 0 words (0.0 %)" in str(measure_coverage({}, vectors))
    assert len(measure_coverage({f"x{n}": n for n in range(30)}, vectors).missing) == 10


def test_known_words_keep_their_vectors_and_the_rest_look_like_them():
    generator = np.random.default_rng(5)
    known = (generator.normal(size=(200, 3)) * [0.1, 1, 10] + [5, -1, 0]).astype(np.float32)
    names = [f"k{number}" for number in range(200)]
    far = np.full((1, 3), 1e6, dtype=np.float32)  # of a word that the vocabulary does not have
    vectors = WordVectors((*names, "far"), np.concatenate([known, far]))
    words = ["<pad>", *names[::-1], *(f"u{number}" for number in range(20_000))]
    rows = embedding_rows(words, vectors, seed=3)
    assert (rows.shape, rows.dtype) == ((20_201, 3), np.float32)
    np.testing.assert_array_equal(rows[1:201], known[::-1])
    drawn = rows[201:].astype(np.float64)
    assert (abs(drawn.mean(axis=0) - known.mean(axis=0)) < 0.03 * known.std(axis=0)).all()
    np.testing.assert_allclose(drawn.std(axis=0), known.std(axis=0), rtol=0.03)
    # Normal: 68.3 % within one standard deviation, 95.4 % within two.
    scaled = abs((drawn - known.mean(axis=0)) / known.std(axis=0))
    assert (scaled < 1).mean() == pytest.approx(0.683, abs=0.01)
    assert (scaled < 2).mean() == pytest.approx(0.954, abs=0.01)


def test_draws_depend_on_the_seed_and_the_place():
    vectors = WordVectors(("a", "b", "c"), MATRIX[:3])
    rows = embedding_rows(["u", "a", "b", "v"], vectors, seed=1)
    np.testing.assert_array_equal(rows, embedding_rows(["u", "a", "b", "v"], vectors, seed=1))
    assert not np.array_equal(rows[0], embedding_rows(["u", "a", "b", "v"], vectors, seed=2)[0])
    assert not np.array_equal(rows[0], rows[3])
    np.testing.assert_array_equal(rows[[0, 3]], embedding_rows(["x", "b", "a", "y"], vectors, seed=1)[[0, 3]])


def test_an_embedding_of_no_known_word_is_refused():
    with pytest.raises(DataError, match="none of 2 words has a vector"):
        embedding_rows(["x", "y"], WordVectors(("a",), MATRIX[:1]), seed=1)


def test_what_is_written(tmp_path: Path):
    path = tmp_path / "v"
    write_vectors(path, ["a", "我"], np.array([[0.1, 1], [-2e-10, 1 / 3]]))
    assert path.read_bytes() == "2 2\na 0.1 1.0\n我 -2e-10 0.33333334\n".encode()
    assert [child.name for child in tmp_path.iterdir()] == ["v"]
    # The new file takes the place of the old one, which stays as it was under another name.
    (tmp_path / "old").hardlink_to(path)
    write_vectors(path, ["b"], np.ones((1, 1)))
    assert path.read_bytes() == b"1 1\nb 1.0\n"
    assert (tmp_path / "old").read_bytes().startswith(b"2 2\na 0.1")


WORD = st.text(st.characters(exclude_categories=["Cs", "Zs", "Zl", "Zp", "Cc"]), min_size=1, max_size=5)
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@settings(max_examples=60)
@given(st.data(), st.lists(WORD, min_size=1, max_size=5, unique=True), st.integers(1, 4))
def test_numbers_come_back_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, words: list[str], size: int
):
    rows = data.draw(st.lists(st.lists(FLOATS, min_size=size, max_size=size), min_size=len(words), max_size=len(words)))
    matrix = np.array(rows, dtype=np.float32)
    path = tmp_path_factory.getbasetemp() / "vectors"
    write_vectors(path, words, matrix)
    text = read_vectors(path, set(words))
    packed = read_vectors(written(path, binary(words, matrix)), set(words))
    for found in (text, packed):
        assert found.words == tuple(words)
        assert found.matrix.tobytes() == matrix.tobytes()


@pytest.mark.parametrize("word", ["", "a b", "a\tb", "a\n", "\r", "\0", "\ud800", "\x0c"])
def test_words_that_the_layout_cannot_hold_are_refused(tmp_path: Path, word: str):
    with pytest.raises(DataError, match="cannot hold"):
        write_vectors(tmp_path / "v", ["x", word], MATRIX[:2])
    assert list(tmp_path.iterdir()) == []


def test_matrices_that_cannot_be_written(tmp_path: Path):
    with pytest.raises(ShapeError, match=r"2 words have vectors of shape \[5, 4\]"):
        write_vectors(tmp_path / "v", ["a", "b"], MATRIX)
    with pytest.raises(ShapeError, match="vectors of no numbers"):
        write_vectors(tmp_path / "v", ["a"], np.zeros((1, 0)))
    with pytest.raises(DataError, match="repeated"):
        write_vectors(tmp_path / "v", ["a", "a"], MATRIX[:2])
    for number in (np.nan, 1e39):
        with pytest.raises(DataError, match="infinite"):
            write_vectors(tmp_path / "v", ["a"], np.array([[number]]))


FUZZED = st.one_of(
    st.binary(max_size=80),
    st.lists(st.sampled_from([b"a", b" ", b"\n", b"1", b"2", b".5", b"-", b"e", b"\t", b"nan", b"\xff", b"\0"])).map(
        b"".join
    ),
    st.builds(lambda data: b"2 2\n" + data, st.binary(max_size=40)),
    st.builds(
        lambda content, place, byte, cut: (content[:place] + bytes([byte]) + content[place + 1 :])[:cut],
        st.sampled_from([writer(WORDS, MATRIX) for writer in LAYOUTS]),
        st.integers(0, 150),
        st.integers(0, 255),
        st.integers(0, 400),
    ),
)


@settings(max_examples=300)
@given(FUZZED, st.booleans(), st.booleans())
@example(b"1 1\n", False, True)
@example(b"999999999999 100000\na 1\n", False, True)
@example(b"99999999999999 9999999999\n", False, False)
@example(b"a " + b"9" * 5000 + b"\n", False, False)
@example(b"\x1f\x8b", False, False)
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, packed: bool, ignore_case: bool
):
    path = written(tmp_path_factory.getbasetemp() / "fuzzed", gzip.compress(content, mtime=0) if packed else content)
    try:
        found = read_vectors(path, {"a", "A", "the", "10", "我", "Häuser"}, ignore_case=ignore_case)
    except DataError as error:
        message = str(error)
    else:
        message = f"{path}: "
        assert np.isfinite(found.matrix).all()
        assert found.matrix.shape == (len(found.words), found.size)
        assert 1 <= found.size <= MAX_SIZE
    assert message.startswith(f"{path}:")
    assert "\n" not in message


def test_published_vectors(corpora: Path):
    folder = corpora / "word_vectors"
    for size in (100, 300):
        found = read_vectors(folder / f"glove.6B.{size}d.sample.txt", {"the", ",", "NATO", "of"}, ignore_case=True)
        assert (found.layout, found.num_read, found.size) == ("GloVe text", 100, size)
        assert found.words == ("the", ",", "of")
    found = read_vectors(folder / "pang_lee_polarity_fasttext.vec", {".", "the"})
    assert (found.layout, found.num_read, found.size, found.words) == ("word2vec text", 1694, 100, (".", "the"))
    np.testing.assert_array_equal(found.matrix[0, :2], np.array([-0.0073677, 0.0085351], dtype=np.float32))
