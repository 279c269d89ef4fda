"""File of suggestions."""

import json
import os
from pathlib import Path

import pytest

from heedful.errors import DamagedFile
from heedful.serving.suggestions import Suggestions


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
