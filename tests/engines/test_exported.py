import json
from pathlib import Path

import pytest

from heedful.engines.exported import MANIFEST, Parity, commit_engine, find_exported, named_engine
from heedful.engines.folder import ModelFolder, commit, open_folder
from heedful.errors import FileRefused, UsageError

PARITY = Parity(max_difference=1e-5, num_compared=100, num_outputs=10, num_same=10)


def make_folder(path: Path, weights: bytes = b"weights") -> ModelFolder:
    path.mkdir(exist_ok=True)
    (path / "model.safetensors").write_bytes(weights)
    commit(path, {"weights": "model.safetensors"}, ["model.safetensors"])
    return open_folder(path)


def make_engine(folder: ModelFolder, name: str = "onnx", content: bytes = b"graph", max_length: int = 20) -> Path:
    made = folder.path / "engines" / ".made"
    made.mkdir(parents=True)
    (made / "encode.onnx").write_bytes(content)
    return commit_engine(folder, name, made, {"precision": "float32", "max_length": max_length}, PARITY)


def test_a_model_without_engines_has_none(tmp_path: Path):
    assert find_exported(make_folder(tmp_path / "m"), 20) == {}


def test_engines_come_fastest_first_and_say_what_was_measured(tmp_path: Path):
    folder = make_folder(tmp_path / "m")
    for name in ("onnx-int8", "onnx", "ctranslate2"):
        path = make_engine(folder, name)
        assert path == folder.path / "engines" / name
    found = find_exported(folder, 20)
    assert list(found) == ["ctranslate2", "onnx", "onnx-int8"]
    assert [each.fault for each in found.values()] == ["", "", ""]
    assert found["onnx"].parity == PARITY
    assert sorted(path.name for path in (folder.path / "engines").iterdir()) == ["ctranslate2", "onnx", "onnx-int8"]


def test_a_new_engine_takes_the_place_of_the_old(tmp_path: Path):
    folder = make_folder(tmp_path / "m")
    make_engine(folder, content=b"old")
    path = make_engine(folder, content=b"new")
    assert (path / "encode.onnx").read_bytes() == b"new"
    assert [each.name for each in path.parent.iterdir()] == ["onnx"]


def test_an_engine_of_other_weights_is_out_of_date(tmp_path: Path):
    make_engine(make_folder(tmp_path / "m"))
    (found,) = find_exported(make_folder(tmp_path / "m", b"trained on"), 20).values()
    assert "out of date" in found.fault
    with pytest.raises(FileRefused, match=r"out of date.*heedful export MODEL --to onnx$"):
        found.load(20)


def test_an_engine_for_shorter_texts_is_not_taken(tmp_path: Path):
    folder = make_folder(tmp_path / "m")
    make_engine(folder, "onnx-int8")
    assert find_exported(folder, 20)["onnx-int8"].fault == ""
    fault = find_exported(folder, 21)["onnx-int8"].fault
    assert "at most 20 tokens" in fault
    assert fault.endswith("--to onnx --int8")


@pytest.mark.parametrize(
    "change",
    [
        lambda path: (path / "encode.onnx").write_bytes(b"grap"),
        lambda path: (path / "encode.onnx").unlink(),
        lambda path: _edit(path, files={"../../model.safetensors": "0"}),
    ],
    ids=["changed", "missing", "outside"],
)
def test_files_that_are_not_what_was_written_are_refused(change, tmp_path: Path):
    folder = make_folder(tmp_path / "m")
    change(make_engine(folder))
    with pytest.raises(FileRefused, match="missing or changed since it was written"):
        find_exported(folder, 20)["onnx"].load(20)


@pytest.mark.parametrize(
    "change",
    [
        lambda path: (path / MANIFEST).unlink(),
        lambda path: (path / MANIFEST).write_bytes(b"{"),
        lambda path: (path / MANIFEST).write_bytes(b"[" * 100_000),
        lambda path: (path / MANIFEST).write_bytes(b"[]"),
        lambda path: _edit(path, parity={}),
        lambda path: _edit(path, format=2),
        lambda path: _edit(path, engine="ctranslate2"),
    ],
    ids=["missing", "cut", "deep", "list", "parity", "format", "kind"],
)
def test_a_manifest_that_says_nothing_is_a_fault(change, tmp_path: Path):
    folder = make_folder(tmp_path / "m")
    change(make_engine(folder))
    (found,) = find_exported(folder, 20).values()
    assert found.fault
    with pytest.raises(FileRefused):
        found.load(20)


def test_engines_are_found_by_name(tmp_path: Path):
    folder = make_folder(tmp_path / "m")
    make_engine(folder)
    found = find_exported(folder, 20)
    assert named_engine(found, "onnx", folder).name == "onnx"
    with pytest.raises(UsageError, match=r"has no engine ctranslate2-int8; make it .* --to ctranslate2 --int8$"):
        named_engine(found, "ctranslate2-int8", folder)
    with pytest.raises(UsageError, match="did you mean 'onnx'"):
        named_engine(found, "onx", folder)


def test_what_differs_by_more_than_rounding_is_not_exact():
    assert PARITY.is_exact
    assert not Parity(0.01, 100, 10, 10).is_exact


def _edit(path: Path, **changes: object) -> None:
    facts = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    (path / MANIFEST).write_text(json.dumps(facts | changes), encoding="utf-8", newline="\n")
