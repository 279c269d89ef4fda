"""Packing a model: all that is needed to use it, nothing else, the bytes its manifest says, whole or not at all."""

import errno
import json
import random
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from heedful.engines.folder import ModelFolder, open_folder
from heedful.engines.pack import pack, packed_name
from heedful.engines.packed_models import archive_suffix
from heedful.errors import FileRefused, ResourceError, UsageError
from heedful.files.atomic_write import digest
from tests.files.test_formats import NEWEST, SAMPLES
from tests.prove.disk import Call, calls

NAMES = {"heedful.json", "config.toml", "dictionary.tsv", "tokenizer.json"}


@pytest.fixture
def model(tmp_path: Path) -> ModelFolder:
    path = Path(shutil.copytree(SAMPLES / NEWEST, tmp_path / "model"))
    (path / "notes.txt").write_text("mine", encoding="utf-8")
    return open_folder(path)


def add_engine(model: ModelFolder, weights: str = "") -> Path:
    path = model.path / "engines" / "onnx"
    path.mkdir(parents=True)
    (path / "step.onnx").write_bytes(b"graph")
    about = {
        "format": 1,
        "engine": "onnx",
        "weights": weights or model.facts["files"][model.facts["weights"]],
        "max_length": 10_000,
        "parity": {"max_difference": 0.0, "num_compared": 1, "num_outputs": 1, "num_same": 1},
        "files": {"step.onnx": digest(path / "step.onnx")},
    }
    (path / "engine.json").write_text(json.dumps(about), encoding="utf-8")
    return path


def listed(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_holds_what_the_manifest_names_and_is_a_model(model: ModelFolder, tmp_path: Path):
    packed = pack(model, tmp_path / "new" / "shipped")
    assert listed(packed.path) == NAMES | {model.facts["weights"]}
    assert packed.num_files == 5
    assert packed.num_bytes == sum(path.stat().st_size for path in packed.path.iterdir())
    assert open_folder(packed.path).facts == model.facts
    for name in listed(packed.path):
        assert (packed.path / name).read_bytes() == (model.path / name).read_bytes()
    assert [path.name for path in packed.path.parent.iterdir()] == ["shipped"]


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tar.xz"])
def test_an_archive_holds_the_same_folder_and_the_same_bytes_each_time(suffix: str, model: ModelFolder, tmp_path: Path):
    add_engine(model)
    packed, again = (pack(model, tmp_path / name / f"shipped{suffix}") for name in ("one", "two"))
    assert packed.path.read_bytes() == again.path.read_bytes()
    assert packed.num_bytes == packed.path.stat().st_size
    if suffix == ".zip":
        zipfile.ZipFile(packed.path).extractall(tmp_path / "out")
    else:
        with tarfile.open(packed.path) as archive:
            archive.extractall(tmp_path / "out", filter="data")
    plain = pack(model, tmp_path / "plain")
    assert listed(tmp_path / "out" / "shipped") == listed(plain.path)
    assert open_folder(tmp_path / "out" / "shipped").facts == model.facts


def test_engines_that_may_be_used_go_with_it_and_others_are_named(model: ModelFolder, tmp_path: Path):
    path = add_engine(model)
    packed = pack(model, tmp_path / "one")
    assert packed.engines == ("onnx",)
    assert {"engines/onnx/engine.json", "engines/onnx/step.onnx"} <= listed(packed.path)
    shutil.rmtree(path)
    add_engine(model, weights="0" * 64)
    packed = pack(model, tmp_path / "two")
    assert packed.engines == ()
    assert "out of date" in packed.left_out["onnx"]
    assert not (packed.path / "engines").exists()


@pytest.mark.parametrize("name", ["config.toml", "engines/onnx/step.onnx"])
@pytest.mark.parametrize("out", ["shipped", "shipped.zip", "shipped.tar", "shipped.tar.xz"])
def test_a_file_that_changed_since_is_not_shipped(name: str, out: str, model: ModelFolder, tmp_path: Path):
    add_engine(model)
    with (model.path / name).open("ab") as file:
        file.write(b"\n")
    before = listed(tmp_path)
    with pytest.raises(FileRefused, match=Path(name).name):
        pack(model, tmp_path / out)
    assert listed(tmp_path) == before
    assert not (tmp_path / out).exists()


@pytest.mark.parametrize("out", ["model/inside", "model/run/inside.zip", "model", "taken.zip"])
def test_it_writes_over_nothing_and_not_into_the_model(out: str, model: ModelFolder, tmp_path: Path):
    (tmp_path / "taken.zip").write_bytes(b"mine")
    before = {name: (tmp_path / name).read_bytes() for name in listed(tmp_path)}
    with pytest.raises(UsageError, match=r"exists|lies in the model"):
        pack(model, tmp_path / out)
    assert {name: (tmp_path / name).read_bytes() for name in listed(tmp_path)} == before


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _size(path: Path) -> int:
    return sum(each.stat().st_size for each in (path.rglob("*") if path.is_dir() else [path]) if each.is_file())


@pytest.mark.parametrize("out", ["shipped", "shipped.zip", "shipped.tar", "shipped.tar.xz"])
def test_a_disk_that_refuses_leaves_nothing(out: str, model: ModelFolder, tmp_path: Path):
    before = listed(tmp_path)
    failures = 0
    for number in range(100):
        seen = 0

        def see(call: Call, number: int = number) -> None:
            nonlocal seen
            seen += 1
            if seen - 1 == number:
                call.fail(errno.ENOSPC)

        try:
            with calls(see):
                pack(model, tmp_path / out)
        except ResourceError:
            failures += 1
            if (tmp_path / out).exists():  # only the names above it were not synced
                assert pack(model, tmp_path / "again" / out).num_bytes == _size(tmp_path / out)
                _delete(tmp_path / out)
                _delete(tmp_path / "again" / out)
            assert listed(tmp_path) == before
        else:  # to make a folder that is there may fail
            assert listed(tmp_path / out) == NAMES | {model.facts["weights"]} or "." in out
            if seen <= number:
                break
            _delete(tmp_path / out)
    assert failures >= (1 if "." in out else 5)
    assert (tmp_path / out).exists()


@pytest.mark.parametrize("name", ["model.ZIP", "model.Tar", "model.tar.XZ"])
def test_a_suffix_in_capitals_names_an_archive(name: str, model: ModelFolder, tmp_path: Path):
    packed = pack(model, tmp_path / name).path
    assert zipfile.is_zipfile(packed) if name.endswith("ZIP") else tarfile.is_tarfile(packed)
    assert packed_name(packed) == "model"


def test_names_of_archives():
    names = {
        "a.zip": ".zip",
        "a.tar.xz": ".tar.xz",
        "a.b.TAR": ".tar",
        "a.xz": "",
        ".zip": "",
        "a": "",
        "a.zip.model": "",
    }
    assert {name: archive_suffix(Path(name)) for name in names} == names
    assert [packed_name(Path(name)) for name in ("x/ron.tar.xz", "x/ron.v1.zip", "x/ron.v1")] == [
        "ron",
        "ron.v1",
        "ron.v1",
    ]


def test_other_archives_are_refused(model: ModelFolder, tmp_path: Path):
    for name in ("a.xz", "a.tar.gz", "a.7z"):
        with pytest.raises(UsageError, match=r"archives are \.zip, \.tar, \.tar\.xz"):
            pack(model, tmp_path / name)


def test_what_two_files_have_is_compressed_once(model: ModelFolder, tmp_path: Path):
    """The weights of a model and of its engine, which random numbers stand in for here."""
    path, content = add_engine(model), random.Random(0).randbytes(500_000)
    about = json.loads((path / "engine.json").read_text("utf-8"))
    for name in ("encode.onnx", "step.onnx"):
        (path / name).write_bytes(content)
        about["files"][name] = digest(path / name)
    (path / "engine.json").write_text(json.dumps(about), encoding="utf-8")
    sizes = {suffix: pack(model, tmp_path / f"a{suffix}").num_bytes for suffix in (".tar", ".tar.xz", ".zip")}
    assert sizes[".tar.xz"] < 0.7 * sizes[".zip"] < 0.75 * sizes[".tar"]


def test_a_python_without_the_compression_says_so(model: ModelFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    packed = pack(model, tmp_path / "a.tar.xz").path
    monkeypatch.setitem(sys.modules, "lzma", None)
    before = listed(tmp_path)
    with pytest.raises(UsageError, match=r"without lzma; choose \.zip or \.tar"):
        pack(model, tmp_path / "b.tar.xz")
    assert listed(tmp_path) == before
    with pytest.raises(UsageError, match="not a folder"):
        open_folder(packed)
