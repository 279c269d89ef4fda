"""Snapshots of a model hub, whose files are links into a folder of blobs: they load and are imported as folders are."""

import shutil
from pathlib import Path

from heedful.files.atomic_write import digest
from heedful.predictors.table import load
from tests.cli.command import heedful
from tests.cli.conftest import Trained
from tests.export.marian_folder import write_folder
from tests.thorough import thorough


def snapshot_of(folder: Path, cache: Path) -> Path:
    """Store a folder as the client of the Hub does."""
    snapshot, blobs = cache / "snapshots" / "0a1b2c", cache / "blobs"
    blobs.mkdir(parents=True)
    for path in folder.rglob("*"):
        if path.is_file():
            place = path.relative_to(folder)
            (snapshot / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, blobs / digest(path))
            (snapshot / place).symlink_to(Path(*[".."] * (len(place.parts) + 1), "blobs", digest(path)))
    return snapshot


@thorough
def test_an_exported_model_translates_from_a_snapshot(trained: Trained, tmp_path: Path):
    copied = Path(shutil.copytree(trained.model, tmp_path / "words.model", ignore=shutil.ignore_patterns("run")))
    assert heedful("export", copied, "--to", "onnx").code == 0
    snapshot = snapshot_of(copied, tmp_path / "models--me--words")
    shutil.rmtree(copied)
    done = heedful("translate", snapshot, "--engine", "onnx", "fade")
    assert done.out == heedful("translate", trained.model, "fade").out
    assert "onnx" in heedful("info", snapshot).out


def test_a_marian_folder_is_imported_from_a_snapshot(tmp_path: Path):
    write_folder(tmp_path / "opus")
    snapshot = snapshot_of(tmp_path / "opus", tmp_path / "models--me--opus")
    for folder, out in ((tmp_path / "opus", "a.model"), (snapshot, "b.model")):
        assert heedful("import", folder, "--out", tmp_path / out).code == 0
    one, other = (load(tmp_path / name).predict(["a b", "dab c"]) for name in ("a.model", "b.model"))
    assert one == other
    assert all(path.is_symlink() for path in snapshot.iterdir())
