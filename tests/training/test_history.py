import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.pages.record import damaged_parts
from heedful.training.history import HISTORY, History
from heedful.training.progress import Progress

REPORT = Progress(step=7, epoch=0.0, loss=0.0, tokens_per_second=0.0, learning_rate=0.0, seconds=0.0, done=0.0)


def events(folder: Path) -> list[Mapping[str, Any]]:
    path = folder / HISTORY
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]] if path.exists() else []


def test_a_beginning_is_noted_once_and_reports_are_passed_on(tmp_path: Path):
    heard: list[Progress] = []
    history = History(tmp_path, 0, {"device": "cpu"})
    watch = history.watched(lambda progress: heard.append(progress))
    watch(REPORT)
    watch(REPORT)
    history.end("finished", 9, "9 steps")
    assert [(line["event"], line["step"]) for line in events(tmp_path)] == [("began", 0), ("finished", 9)]
    assert events(tmp_path)[0]["device"] == "cpu"
    assert events(tmp_path)[1]["reason"] == "9 steps"
    assert heard == [REPORT, REPORT]


def test_going_on_is_noted_as_that(tmp_path: Path):
    History(tmp_path, 5, {}).end("stopped", 6, "")
    assert [line["event"] for line in events(tmp_path)] == ["resumed", "stopped"]


def test_what_had_finished_before_is_not_noted_again(tmp_path: Path):
    History(tmp_path, 9, {}).end("finished", 9, "9 steps")
    assert events(tmp_path) == []


def test_a_line_that_was_cut_off_swallows_no_other(tmp_path: Path):
    (tmp_path / HISTORY).write_bytes(b'{"event": "beg')
    History(tmp_path, 0, {}).end("failed", 0, "中")
    lines = (tmp_path / HISTORY).read_bytes().split(b"\n")
    assert [json.loads(line)["event"] for line in lines[1:-1]] == ["began", "failed"]


def test_a_folder_that_cannot_be_written_is_no_failure(tmp_path: Path):
    History(tmp_path / "none", 0, {}).end("failed", 0, "")


def test_names_that_are_no_utf8_are_noted(tmp_path: Path):
    History(tmp_path, 0, {"data": "odd\udcff.tsv"}).end("failed", 0, "")
    assert "odd?.tsv" in [line.get("data") for line in events(tmp_path)]


def test_a_bit_that_flips_is_told(tmp_path: Path):
    (tmp_path / "run").mkdir()
    History(tmp_path / "run", 5, {}).end("stopped", 6, "")
    path = tmp_path / "run" / HISTORY
    assert damaged_parts(tmp_path) == []
    path.write_bytes(path.read_bytes().replace(b'"step": 6', b'"step": 7'))
    assert damaged_parts(tmp_path) == [f"run/{HISTORY}"]
