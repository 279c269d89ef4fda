"""A training goes on with its own data, or not at all."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful.data.corpus import find_pairs
from heedful.data.same_data import EXPERIMENT, FINGERPRINTS, DataWatch, claim_data
from heedful.errors import DataError, FileRefused, UsageError

PRINTS = {"train": {"sha256": "a"}, "dev": {"sha256": "b"}}


def begin(folder: Path) -> None:
    (folder / "run").mkdir(exist_ok=True)
    (folder / EXPERIMENT).touch()


def test_data_is_noted_and_other_data_is_refused(tmp_path: Path):
    (tmp_path / "run" / "data").mkdir(parents=True)
    claim_data(tmp_path, PRINTS)
    assert not (tmp_path / "run" / "data").exists()
    claim_data(tmp_path, {"train": {"sha256": "c"}})  # nothing has begun
    claim_data(tmp_path, PRINTS)
    begin(tmp_path)
    claim_data(tmp_path, PRINTS)
    with pytest.raises(DataError, match=r"other data \(dev, train changed\)"):
        claim_data(tmp_path, {"train": {"sha256": "c"}})


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"format": 1, "sha256": "0"}'])
def test_a_damaged_record_is_refused(content: str | None, tmp_path: Path):
    begin(tmp_path)
    if content is not None:
        (tmp_path / FINGERPRINTS).write_text(content, encoding="utf-8")
    with pytest.raises(FileRefused, match=r"data\.json: .*; choose another --out"):
        claim_data(tmp_path, PRINTS)


@pytest.mark.parametrize("made", ["heedful.json", "run/checkpoints"])
def test_what_a_training_made_is_not_taken_for_remains(made: str, tmp_path: Path):
    (tmp_path / "run" / "data").mkdir(parents=True)
    (tmp_path / made).mkdir()
    with pytest.raises(UsageError, match=f"has {made}, but no {EXPERIMENT}"):
        claim_data(tmp_path, PRINTS)
    assert (tmp_path / "run" / "data").is_dir()
    assert not (tmp_path / FINGERPRINTS).exists()


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more\tlines\n")


def edit_behind_the_clock(path: Path) -> None:
    status = path.stat()
    path.write_bytes(path.read_bytes().replace(b"b", b"c"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(b"x\ty\n")
    other.replace(path)


@pytest.mark.parametrize("change", [append, edit_behind_the_clock, replace])
@pytest.mark.parametrize("part", ["train", "test"])
def test_data_that_change_while_they_are_read_are_noticed(change: Callable[[Path], None], part: str, tmp_path: Path):
    paths = {name: tmp_path / f"{name}.tsv" for name in ("train", "test")}
    for path in paths.values():
        path.write_bytes(b"a\tb\n")
    watch = DataWatch({name: find_pairs([path]) for name, path in paths.items()})
    watch.check()
    for path in paths.values():
        path.touch()  # the same content
    watch.check()
    change(paths[part])
    with pytest.raises(DataError, match=f"the {part} data changed while they were read"):
        watch.check()
