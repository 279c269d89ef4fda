"""Files that are no text are refused in a line; names, counts, drift and fingerprints."""

import gzip
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import DataError
from heedful.files.atomic_write import atomic_write
from heedful.text.lines import read_lines
from heedful.text.text_files import (
    begin_fingerprints,
    check_file,
    count_lines,
    drift_line,
    fingerprint_file,
    language_names,
    stem,
)


def refusal(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        check_file(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_missing_file_names_the_nearest(tmp_path: Path):
    (tmp_path / "pairs.tsv").write_bytes(b"a\tb\n")
    assert refusal(tmp_path / "pair.tsv") == f"{tmp_path}/pair.tsv: no such file; did you mean '{tmp_path}/pairs.tsv'?"
    assert refusal(tmp_path / "xyz").endswith(f"no such file; files in {tmp_path}: pairs.tsv")
    assert refusal(tmp_path / "no" / "x").endswith(f"no such file; the folder {tmp_path / 'no'} does not exist")
    for number in range(20):
        (tmp_path / f"{number:02}").touch()
    assert refusal(tmp_path / "xyz").endswith("00, 01, 02, 03, 04, 05, 06, 07, ...")


def test_a_folder_is_refused(tmp_path: Path):
    (tmp_path / "a.tsv").touch()
    assert refusal(tmp_path) == f"{tmp_path}: a folder; give a file in it, such as a.tsv"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_refused(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in refusal(tmp_path / "pipe")


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0)])
def test_an_empty_file_is_refused(tmp_path: Path, content: bytes):
    (tmp_path / "f").write_bytes(content)
    assert refusal(tmp_path / "f") == f"{tmp_path / 'f'}: empty"


def test_binary_files_are_refused(tmp_path: Path):
    path = tmp_path / "f"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("pairs.tsv", "a\tb\n")
    assert "f: a zip archive or an office document, not text; unzip it" in refusal(path)
    path.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    assert "zip archive" in refusal(path)
    path.write_bytes(np.arange(4000, dtype=np.int64).tobytes())
    assert refusal(path).endswith("f: a binary file, not text")
    path.write_bytes(gzip.compress(os.urandom(100), mtime=0)[:-9])
    assert "f: damaged gzip data" in refusal(path)


@pytest.mark.parametrize("text", ["x\n", "\0 one\n" + "words " * 9, "\x0b\x0c\x1c\u2028\n", "你好\n"])
def test_texts_pass(tmp_path: Path, text: str):
    (tmp_path / "f").write_bytes(text.encode())
    check_file(tmp_path / "f")


@given(st.binary(max_size=40).map(lambda data: data.replace(b"\0", b"\n")))
def test_lines_are_counted_as_they_are_read(tmp_path_factory: pytest.TempPathFactory, data: bytes):
    path = tmp_path_factory.getbasetemp() / "counted"
    path.write_bytes(gzip.compress(data, mtime=0))
    assert count_lines(path) == sum(1 for _ in read_lines(path, bad_bytes="replace")) if not _is_utf16(data) else True


def _is_utf16(data: bytes) -> bool:
    return data[:2] in (b"\xff\xfe", b"\xfe\xff")


def test_a_fingerprint_changes_with_the_content(tmp_path: Path):
    path = tmp_path / "f"
    prints: list[object] = []
    for content in (b"a\nb\n", b"b\na\n", b"a\nb", b"a\nb\nc\n", gzip.compress(b"a\nb\n", mtime=0)):
        path.write_bytes(content)
        prints.append(fingerprint_file(path))
    assert len({str(one) for one in prints}) == 5
    assert prints[0] == {
        "name": "f",
        "size": 4,
        "sha256": "911169ddaaf146aff539f58c26c489af3b892dff0fe283c1c264c65ae5aa59a2",
        "lines": 2,
    }


def test_a_fingerprint_begun_early_is_the_same(tmp_path: Path):
    paths = [tmp_path / name for name in ("a", "b")]
    for path in paths:
        path.write_bytes(path.name.encode() * 3_000_000)
    wanted = [fingerprint_file(path) for path in paths]
    begin_fingerprints([paths[0], tmp_path / "none", paths[1]])
    assert [fingerprint_file(path) for path in paths] == wanted
    # Each is used once; what changed after it was begun is read again.
    begin_fingerprints(paths)
    paths[0].write_bytes(b"other")
    assert fingerprint_file(paths[0])["size"] == 5
    assert fingerprint_file(paths[1]) == wanted[1]
    with pytest.raises(DataError, match="none: cannot be read"):
        fingerprint_file(tmp_path / "none")


def test_the_same_file_twice_is_read_for_both(tmp_path: Path):
    path = tmp_path / "f"
    path.write_text("a\n")
    begin_fingerprints([path, path])
    assert fingerprint_file(path) == fingerprint_file(path)


def aligned_lengths(num_lines: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(7)
    source = generator.integers(10, 200, num_lines)
    return source, np.rint(source * generator.normal(1.2, 0.1, num_lines)).astype(np.int64)


@pytest.mark.parametrize("lost", [1, 7, 300])
@pytest.mark.parametrize("start", [0, 1, 250, 690])
def test_lost_lines_are_found(start: int, lost: int):
    source, target = aligned_lengths(1000)
    for first, second in (
        (source, np.delete(target, slice(start, start + lost))),
        (np.delete(source, slice(start, start + lost)), target),
    ):
        assert abs(drift_line(first, second) - (start + 1)) <= 3


def test_a_file_that_just_ends_does_not_drift():
    source, target = aligned_lengths(1000)
    assert drift_line(source, target[:-5]) == 996


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["train.de", "train.en"], ("de", "en")),
        (["train.zh-CN.gz", "train.en.txt"], ("zh-CN", "en")),
        (["de-en.tok.pt_BR", "x.eng"], ("pt_BR", "eng")),
        (["train.src", "train.tgt"], ("source", "target")),
        (["a.en", "b.en"], ("source", "target")),
        (["a.en", "b.txt"], ("source", "target")),
        (["en", "de"], ("source", "target")),
        (["pairs.tsv"], ("source", "target")),
    ],
)
def test_languages_are_guessed_from_names(names: list[str], expected: tuple[str, str]):
    paths = [Path("folder.fr") / name for name in names]
    assert language_names(paths) == expected
    assert language_names(paths, (2, 1)) == (expected if expected == ("source", "target") else expected[::-1])


@pytest.mark.parametrize(
    ("name", "expected"), [("a.b.tsv.gz", "a.b"), ("train.de", "train"), ("x", "x"), (".gz", "pairs")]
)
def test_stems(name: str, expected: str):
    assert stem(Path("d") / name) == expected


def test_an_old_file_stays_whole_until_the_new_one_is(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"old\n")
    with pytest.raises(ZeroDivisionError), atomic_write(path) as stream:  # noqa: PT012
        stream.write("half")
        stream.flush()
        assert path.read_bytes() == b"old\n"
        raise ZeroDivisionError
    assert path.read_bytes() == b"old\n"
    assert [child.name for child in tmp_path.iterdir()] == ["file"]
    with atomic_write(path) as stream:
        stream.write("é\n")
        assert path.read_bytes() == b"old\n"
    assert path.read_bytes() == "é\n".encode()
    assert [child.name for child in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("place", range(10, 20))
def test_gzip_damaged_after_its_header_is_refused(place: int, tmp_path: Path):
    content = bytearray(gzip.compress(b"a\tb\n" * 30, mtime=0))
    content[place] ^= 0xFF
    path = tmp_path / "pairs.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match="damaged gzip data"):
        _check_and_read(path)


def _check_and_read(path: Path) -> None:
    check_file(path)
    list(read_lines(path))


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_a_pipe_has_no_fingerprint(tmp_path: Path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    begin_fingerprints([path])
    with pytest.raises(DataError, match="a pipe, not a file"):
        fingerprint_file(path)
