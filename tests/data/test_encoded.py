import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.encoded import EncodedCorpus, EncodedSide, write_encoded
from heedful.errors import FileRefused

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
        with pytest.raises(FileRefused, match="delete the folder to encode again"):
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
    with pytest.raises(FileRefused, match="not an encoded corpus"):
        EncodedCorpus.read(tmp_path)


@pytest.mark.parametrize(
    ("key", "value"), [("dtype", "O"), ("dtype", "nonsense"), ("num_pairs", None), ("num_pairs", -5)]
)
def test_facts_that_lie_are_refused(key: str, value: object, tmp_path: Path):
    write_encoded(tmp_path, iter(PAIRS), 100)
    facts = json.loads((tmp_path / "encoded.json").read_text(encoding="utf-8"))
    (tmp_path / "encoded.json").write_text(json.dumps(facts | {key: value}), encoding="utf-8")
    with pytest.raises(FileRefused, match="not an encoded corpus"):
        EncodedCorpus.read(tmp_path)


def test_sequences_may_be_held_in_memory():
    side = EncodedSide.of([[5, 3], [], np.array([6])])
    assert [side[i].tolist() for i in range(3)] == [[5, 3], [], [6]]
    assert side.lengths.tolist() == [2, 0, 1]
    assert len(side) == 3
    assert len(EncodedSide.of([])) == 0
