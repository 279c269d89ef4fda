"""File of suggestions."""

import json
import os
from pathlib import Path

import pytest

from heedful.errors import DamagedFile, HeedfulError, UsageError
from heedful.serving.suggestions import LinksFile, Suggestions


def test_suggestions_are_appended(tmp_path: Path):
    path = tmp_path / "suggestions.jsonl"
    for better in ("b", "c\n"):
        assert Suggestions(path).add("a", better, "de", "en")
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [(row["q"], row["s"]) for row in rows] == [("a", "b"), ("a", "c\n")]


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
    assert Suggestions(suggestions).add("a", "b", "de", "en")
    assert LinksFile(links).add("a", "b", "0-0")
    letter = tmp_path / "letter.txt"
    for content in (
        b"Dear Ada,\n",
        b"[]\n",
        b"\xff\n",
        b"{" * 9999 + b"\n",
        b"a\tb\tc\n",
        b'{"a":1}',
        b"ssh-rsa AAAA",
        b"\x89PNG\r\0\t",
    ):
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
