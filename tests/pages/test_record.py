import json
from pathlib import Path

import pytest

from heedful.errors import UsageError
from heedful.pages.record import points, read_run


def test_a_folder_without_a_run_is_refused(tmp_path: Path):
    (tmp_path / "run").mkdir()
    with pytest.raises(UsageError, match="holds no training run"):
        read_run(tmp_path)


def test_damaged_lines_are_left_out(tmp_path: Path):
    run = tmp_path / "m.model" / "run"
    run.mkdir(parents=True)
    line = json.dumps(
        {"step": 4, "scores": {"loss": 1.0}, "is_best": True, "sample": ["a\u2028b", "c", "d"]}, ensure_ascii=False
    )
    (run / "metrics.jsonl").write_bytes(f'{line}\n[1]\n{{"step": 5}}\n{{"step": 8, "sco'.encode())
    (run / "test.json").write_bytes(b"{")
    for step in (999_999, 1_000_000):
        (run / "checkpoints" / f"{step:06d}").mkdir(parents=True)
        (run / "checkpoints" / f"{step:06d}" / "state.json").write_bytes(json.dumps({"state": {"step": step}}).encode())
    (run / "experiment.toml").write_bytes(b'[training]\nselect_by = "bleu"\n')
    found = read_run(tmp_path / "m.model")
    assert [line["step"] for line in found.validations] == [4]
    assert (found.best["step"], found.metric, found.name) == (4, "bleu", "m.model")
    assert found.checkpoint["step"] == 1_000_000
    assert found.tested == {}


def test_scores_of_other_weights_are_left_out(tmp_path: Path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "metrics.jsonl").write_bytes(b'{"step": 4, "scores": {"loss": 1.0}}\n')
    (tmp_path / "heedful.json").write_bytes(b'{"format": 1, "weights": "new"}')
    for weights in ("old", "new"):
        (tmp_path / "run" / "test.json").write_text(json.dumps({"weights": weights, "text": "t"}))
        assert bool(read_run(tmp_path).tested) == (weights == "new")


def test_what_is_no_number_is_a_gap():
    lines = [{"step": 1, "loss": 2.0, "scores": {"bleu": 5}}, {"step": 2, "loss": None, "scores": {}}]
    assert str(points(lines, "loss")) == "[(1.0, 2.0), (2.0, nan)]"
    assert str(points(lines, "scores", "bleu")) == "[(1.0, 5.0), (2.0, nan)]"
