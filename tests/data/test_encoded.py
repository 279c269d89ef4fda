import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.encoded import EncodedCorpus, EncodedSide, write_encoded
from heedful.errors import FileRefused
from heedful.files.formats import ENCODED_FORMAT
from heedful.files.records import read_facts, write_facts

Pairs = list[tuple[list[int], list[int]]]
PAIRS: Pairs = [([5, 3], [6, 7, 3]), ([3], [3]), ([9, 9, 9, 3], [4, 3])]
pairs_of_ids = st.lists(st.tuples(*(st.lists(st.integers(0, 65535), max_size=5) for _ in range(2))), max_size=6)


def content(corpus: EncodedCorpus) -> Pairs:
    return [(corpus.source[i].tolist(), corpus.target[i].tolist()) for i in range(len(corpus))]


@given(pairs=pairs_of_ids)
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, pairs: Pairs):
    folder = tmp_path_factory.mktemp("encoded") / "below"
    assert write_encoded(folder, iter(pairs), 1 << 16) == len(pairs)
    corpus = EncodedCorpus.read(folder)
    assert content(corpus) == pairs
    assert corpus.source.lengths.tolist() == [len(source) for source, _ in pairs]


@pytest.mark.parametrize(("vocabulary_size", "size"), [(1 << 16, 2), ((1 << 16) + 1, 4)])
def test_ids_take_as_few_bytes_as_the_vocabulary_allows(vocabulary_size: int, size: int, tmp_path: Path):
    last = vocabulary_size - 1
    write_encoded(tmp_path, iter([([last, 3], [3])]), vocabulary_size)
    assert (tmp_path / "source.ids").stat().st_size == 2 * size
    assert EncodedCorpus.read(tmp_path).source[0].tolist() == [last, 3]


def test_nothing_is_read_before_it_is_used(tmp_path: Path):
    write_encoded(tmp_path, iter(PAIRS), 100)
    corpus = EncodedCorpus.read(tmp_path)
    path = tmp_path / "source.ids"
    changed = np.fromfile(path, "<u2")
    changed[0] = 77
    with path.open("r+b") as file:
        file.write(changed.tobytes())
    assert corpus.source[0][0] == 77
    with pytest.raises(ValueError, match="read-only"):
        corpus.source[0][0] = 1


def test_a_file_that_has_become_shorter_is_named(tmp_path: Path):
    write_encoded(tmp_path, iter(PAIRS), 100)
    corpus = EncodedCorpus.read(tmp_path)
    os.truncate(tmp_path / "source.ids", 0)
    with pytest.raises(FileRefused, match=r"source\.ids: truncated while in use"):
        _ = corpus.source[0]


def test_an_interrupted_writing_leaves_nothing_that_could_be_taken_for_whole(tmp_path: Path):
    write_encoded(tmp_path, iter(PAIRS), 100)

    def broken(num: int) -> Iterator[tuple[list[int], list[int]]]:
        yield from PAIRS[:num]
        raise KeyError

    # Of all pairs every file has the size it had before.
    for num in (1, len(PAIRS)):
        with pytest.raises(KeyError):
            write_encoded(tmp_path, broken(num), 100)
        with pytest.raises(FileRefused, match="encode the data again"):
            EncodedCorpus.read(tmp_path)


@pytest.mark.parametrize("name", ["source.ids", "source.offsets", "target.ids", "target.offsets"])
def test_a_file_of_another_size_is_refused(name: str, tmp_path: Path):
    write_encoded(tmp_path, iter(PAIRS), 100)
    path = tmp_path / name
    whole = path.read_bytes()
    for changed in (whole[:-1], whole + b"\0", b""):
        path.write_bytes(changed)
        with pytest.raises(FileRefused, match=name):
            EncodedCorpus.read(tmp_path)
    path.unlink()
    with pytest.raises(FileRefused, match="not an encoded corpus"):
        EncodedCorpus.read(tmp_path)


@pytest.mark.parametrize("facts", ["[]", "3", "{}", "rubbish", '{"dtype": "<u2"}'])
def test_facts_of_another_form_are_refused(facts: str, tmp_path: Path):
    write_encoded(tmp_path, iter(PAIRS), 100)
    (tmp_path / "encoded.json").write_text(facts, encoding="utf-8")
    with pytest.raises(FileRefused, match=r"encode the data again$"):
        EncodedCorpus.read(tmp_path)


def change_facts(folder: Path, **changes: object) -> None:
    """Have the record of a corpus say something else; a value of None removes a key."""
    facts = read_facts(folder / "encoded.json", ENCODED_FORMAT, "") | changes
    kept = {key: value for key, value in facts.items() if value is not None}
    write_facts(folder / "encoded.json", ENCODED_FORMAT, kept)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("dtype", "O"),
        ("dtype", "<i2"),
        ("dtype", "nonsense"),
        ("num_pairs", None),
        ("num_pairs", -5),
        ("num_source_ids", 1 << 62),
        ("files", ["source.ids"]),
    ],
)
def test_facts_that_lie_are_refused(key: str, value: object, tmp_path: Path):
    write_encoded(tmp_path, iter(PAIRS), 100)
    change_facts(tmp_path, **{key: value})
    with pytest.raises(FileRefused, match="not an encoded corpus"):
        EncodedCorpus.read(tmp_path)


def num_unnoticed(folder: Path) -> int:
    """Number of flipped bits, of all in the files of a corpus, that are read as something else."""
    whole = content(EncodedCorpus.read(folder, (100, 100)))
    number = 0
    for path in sorted(folder.iterdir()):
        before = path.read_bytes()
        for bit in range(0, 8 * len(before), 3):
            changed = bytearray(before)
            changed[bit // 8] ^= 1 << bit % 8
            path.write_bytes(changed)
            with suppress(FileRefused):
                number += content(EncodedCorpus.read(folder, (100, 100))) != whole
        path.write_bytes(before)
    return number


def test_every_flipped_bit_is_noticed(tmp_path: Path):
    write_encoded(tmp_path, iter(PAIRS), 100)
    assert num_unnoticed(tmp_path) == 0
    change_facts(tmp_path, files=None)
    assert num_unnoticed(tmp_path) > 0  # without checksums


@pytest.mark.parametrize("has_checksums", [True, False])
def test_ids_beyond_the_vocabulary_are_refused(has_checksums: bool, tmp_path: Path):
    write_encoded(tmp_path, iter(PAIRS), 100)
    if not has_checksums:
        change_facts(tmp_path, files=None)
    assert len(EncodedCorpus.read(tmp_path, (10, 8))) == len(PAIRS)
    for sizes, name in (((9, 8), "source"), ((10, 7), "target")):
        with pytest.raises(FileRefused, match=rf"{name}\.ids has the id \d, but there are \d tokens"):
            EncodedCorpus.read(tmp_path, sizes)


@pytest.mark.parametrize("offsets", [[0, 2, 1, 7], [1, 2, 3, 7], [0, 2, 3, 6], [0, 2, 90, 7], [0, -2, 3, 7]])
def test_offsets_without_checksums_are_positions_of_the_ids(offsets: list[int], tmp_path: Path):
    write_encoded(tmp_path, iter(PAIRS), 100)
    change_facts(tmp_path, files=None)
    np.array(offsets, "<i8").tofile(tmp_path / "source.offsets")
    with pytest.raises(FileRefused, match="the offsets of its sequences"):
        EncodedCorpus.read(tmp_path)


def test_a_training_pair_without_ids_is_refused(tmp_path: Path):
    write_encoded(tmp_path, iter([([3], [3]), ([], [3])]), 100)
    assert len(EncodedCorpus.read(tmp_path)) == 2
    with pytest.raises(FileRefused, match=r"source\.offsets has a sequence without ids"):
        EncodedCorpus.read(tmp_path, (9, 9))


def test_limits_are_those_of_each_sequence():
    side = EncodedSide.of([[5, 3], [], [6]])
    assert side.lie_below(np.array([6, 0, 7]))
    assert not side.lie_below(np.array([5, 0, 7]))
    assert not side.lie_below(np.array([6, 0, 6]))


def test_sequences_may_be_held_in_memory():
    side = EncodedSide.of([[5, 3], [], np.array([6])])
    assert [side[i].tolist() for i in range(3)] == [[5, 3], [], [6]]
    assert side.lengths.tolist() == [2, 0, 1]
    assert len(side) == 3
    assert len(EncodedSide.of([])) == 0
