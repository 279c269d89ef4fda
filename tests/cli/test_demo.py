"""`heedful demo`, with a training too short to learn anything."""

import sys
from pathlib import Path

import pytest

from heedful.cli import demo
from heedful.export.web_runtime import has_runtime
from heedful.synthetic.grammar import split_of
from heedful.training.lock import locked
from tests.cli.command import heedful
from tests.text.reading import read_date, read_number

FAST = (
    "text.source_units=characters",
    "text.target_units=characters",
    "model.kind=rnnsearch",
    "model.embedding_size=8",
    "model.hidden_size=8",
    "model.alignment_size=8",
    "model.maxout_size=8",
    "training.precision=float32",
    "training.max_steps=2",
    "training.export=false",
    "training.validate_every=2",
    "search.max_length_ratio=1.0",
    "search.max_length_offset=2",
)


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(demo, "NUM_PAIRS", 120)
    monkeypatch.setattr(demo, "NUM_VALIDATION", 10)
    monkeypatch.setattr(demo, "NUM_HELD_OUT", 20)
    monkeypatch.setattr(demo, "SETTINGS", FAST)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_small")
def test_the_demonstration(tmp_path: Path):
    pytest.importorskip("matplotlib")
    done = heedful("demo")
    assert done.code == 0, done.err
    assert "exact match 0.0 % on 20 held-out dates" in done.out
    for source in demo.SAMPLES:
        assert f"  {source}" in done.out
    assert "weight  ░ 0.05+" in done.out
    assert "next:  heedful translate dates.model '25th of December 2019'" in done.out
    assert Path("dates-attention.png").read_bytes().startswith(b"\x89PNG")
    assert Path("dates.html").exists() == has_runtime() == ("page:  dates.html: " in done.out)
    assert not has_runtime() or '"value": "0.0 %"' in Path("dates.html").read_text("utf-8")
    assert heedful("translate", "dates.model", "abc").code == 0
    before = {path: path.read_bytes() for path in Path("dates.model").rglob("*.*") if path.is_file()}
    other = heedful("demo", "--seed", "2")
    assert other.code == 2, other.err
    assert "holds a training on other pairs; choose another --out" in other.errors[0]
    assert {path: path.read_bytes() for path in Path("dates.model").rglob("*.*") if path.is_file()} == before
    again = heedful("demo")
    assert again.code == 0
    assert "already finished: 2 steps" in again.out
    assert again.out.split("\n\n")[1:] == done.out.split("\n\n")[1:]


@pytest.mark.usefixtures("_small")
def test_a_folder_with_other_files_is_left_alone(tmp_path: Path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_bytes(b"dear")
    done = heedful("demo", "--out", "mine")
    assert done.code == 2
    assert "choose another --out" in done.errors[0]
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]


@pytest.mark.usefixtures("_small")
def test_a_second_demonstration_is_refused_before_it_writes(tmp_path: Path):
    folder = tmp_path / "dates.model" / "run"
    folder.mkdir(parents=True)
    (folder / "dates.tsv").write_bytes(b"begun by another seed\n")
    with locked(folder):
        done = heedful("demo")
    assert done.code == 2
    assert "is training in it" in done.errors[0]
    assert (folder / "dates.tsv").read_bytes() == b"begun by another seed\n"


@pytest.mark.parametrize("source", demo.SAMPLES)
def test_samples_are_right_and_held_out(source: str):
    target = demo.SAMPLES[source]
    read = read_date if target.count("-") == 2 else read_number
    assert read(source) == target
    assert split_of(target) == "test"


def test_whoever_lacks_pytorch_learns_so_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "torch", None)
    done = heedful("demo")
    assert (done.code, done.out, len(done.errors)) == (6, "", 1)
    assert "this command needs PyTorch: " in done.errors[0]
    assert [*tmp_path.iterdir()] == []
