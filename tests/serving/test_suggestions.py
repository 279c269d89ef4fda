"""File of suggestions."""

import errno
import json
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from heedful.data.corrections import CorrectionJournal
from heedful.errors import DamagedFile, HeedfulError, ResourceError, UsageError
from heedful.serving.suggestions import LinksFile, Suggestions


def test_suggestions_are_appended(tmp_path: Path):
    path = tmp_path / "suggestions.jsonl"
    for better in ("b", "c\n"):
        assert Suggestions(path).add("a", better, "de", "en")
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [(row["q"], row["s"]) for row in rows] == [("a", "b"), ("a", "c\n")]


def _suggest(path: Path, word: str) -> None:
    assert Suggestions(path).add("ä", word, "de", "en")


def _link(path: Path, word: str) -> None:
    assert LinksFile(path).add("ä", word, "0-0")


def _correct(path: Path, word: str) -> None:
    CorrectionJournal(path, str).add([(f"ä {word}", word)])


def _words(path: Path) -> list[str]:
    """What is found in lines that are whole."""
    found: list[str] = []
    for line in path.read_bytes().split(b"\n"):
        if line.startswith(b"{"):
            with suppress(ValueError):
                row = json.loads(line)
                found.append(row.get("s") or row["correction"])
        elif line.count(b"\t") == 2:
            found.append(line.split(b"\t")[1].decode())
    return found


KINDS = pytest.mark.parametrize("add", [_suggest, _link, _correct])


@KINDS
def test_a_disk_that_is_full_at_any_byte_loses_nothing(
    add: Callable[[Path, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "file"
    add(path, "first")
    before, write = path.read_bytes(), os.write
    for size in range(len(before) + 1):

        def full(descriptor: int, content: memoryview, written: list[int], size: int = size) -> int:
            if sum(written) == size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            written.append(write(descriptor, content[: size - sum(written)]))
            return written[-1]

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", partial(full, written=[]))
            with pytest.raises(ResourceError, match="file: not written: No space left on device"):
                add(path, "second, which is longer than the first one")
        assert path.read_bytes() == before
    add(path, "third")
    assert _words(path) == ["first", "third"]


@KINDS
def test_a_line_that_a_crash_cut_off_takes_no_other_with_it(add: Callable[[Path, str], None], tmp_path: Path):
    path = tmp_path / "file"
    add(path, "first")
    before = path.read_bytes()
    add(path, "second")
    whole = path.read_bytes()
    for size in range(len(before), len(whole) - 1):
        path.write_bytes(whole[:size])
        add(path, "third")
        words = _words(path)
        assert (words[0], words[-1]) == ("first", "third"), size


@KINDS
def test_what_was_answered_is_on_disk(
    add: Callable[[Path, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    synced: list[int] = []
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (synced.append(os.fstat(descriptor).st_size), sync(descriptor)))
    add(tmp_path / "file", "first")
    assert (tmp_path / "file").stat().st_size in synced


def test_a_full_file_takes_no_more(tmp_path: Path):
    path = tmp_path / "suggestions.jsonl"
    assert not Suggestions(path, most_bytes=10).add("a", "b", "de", "en")
    assert path.read_bytes() == b""


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DamagedFile):
        Suggestions(tmp_path / "pipe")


def test_links_are_appended_as_words_and_pharaoh_links(tmp_path: Path):
    path = tmp_path / "links.tsv"
    assert LinksFile(path).add("das  Haus", "the house", "1-1 0-0 0-0")
    assert LinksFile(path).add("ja", "yes\tindeed", "0-1")
    assert path.read_text("utf-8") == "das Haus\tthe house\t0-0 1-1\nja\tyes indeed\t0-1\n"
    assert not LinksFile(path, most_bytes=50).add("ja", "yes", "0-0")


@pytest.mark.parametrize("links", ["0-2", "2-0", "0", "0p0", "1-x"])
def test_links_outside_the_pair_or_of_another_format_are_refused(tmp_path: Path, links: str):
    with pytest.raises(HeedfulError, match="link"):
        LinksFile(tmp_path / "links.tsv").add("das Haus", "the house", links)
    assert (tmp_path / "links.tsv").read_bytes() == b""


def test_files_of_another_kind_are_not_appended_to(tmp_path: Path):
    suggestions, links = tmp_path / "suggestions.jsonl", tmp_path / "links.tsv"
    _suggest(suggestions, "first")
    _link(links, "first")
    letter = tmp_path / "letter.txt"
    for content in (b"Dear Ada,\n", b"[]\n", b"\xff\n", b"{" * 9999 + b"\n", b"a\tb\tc\n"):
        letter.write_bytes(content)
        for opened, path in ((Suggestions, letter), (LinksFile, letter)):
            with pytest.raises(UsageError, match="another kind"):
                opened(path)
        assert letter.read_bytes() == content
    for opened, path in ((Suggestions, links), (LinksFile, suggestions)):
        with pytest.raises(UsageError, match="another kind"):
            opened(path)
    letter.write_bytes(suggestions.read_bytes()[:9])  # all that a crash left
    Suggestions(letter)
