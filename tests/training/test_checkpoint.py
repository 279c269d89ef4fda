import errno
import os
import random
import shutil
from hashlib import sha256
from pathlib import Path

import pytest
import torch

from heedful.errors import FileRefused, NewerFormat, ResourceError
from heedful.files.formats import Format
from heedful.training.checkpoint import Checkpoint, CheckpointFolder
from heedful.training.checkpoint_formats import manifest_bytes, read_manifest
from tests.prove.disk import Call, calls


def make(step: int) -> Checkpoint:
    tensors = {
        "model": {"weight": torch.full((2, 3), float(step)), "bias": torch.arange(3.0)},
        "average": {},
        "optimizer": {
            "weight.step": torch.tensor(float(step)),
            "weight.exp_avg": torch.ones(2, 3, dtype=torch.float64),
        },
    }
    return Checkpoint(step, tensors, {"step": step, "best": -float("inf"), "finished": "", "seconds": 0.1 + 0.2})


def same(one: Checkpoint, other: Checkpoint) -> bool:
    flat = [
        {(group, name): tensor for group, tensors in c.tensors.items() for name, tensor in tensors.items()}
        for c in (one, other)
    ]
    return (
        one.step == other.step
        and one.state == other.state
        and one.tensors.keys() == other.tensors.keys()
        and flat[0].keys() == flat[1].keys()
        and all(torch.equal(flat[0][key], flat[1][key]) and flat[0][key].dtype == flat[1][key].dtype for key in flat[0])
    )


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.fixture
def folder(tmp_path: Path, warnings: list[str]) -> CheckpointFolder:
    return CheckpointFolder(tmp_path / "run" / "checkpoints", warn=warnings.append)


def names(folder: CheckpointFolder) -> list[str]:
    return sorted(path.name for path in folder.path.iterdir())


def test_what_is_saved_comes_back(folder: CheckpointFolder, warnings: list[str]):
    assert folder.load_newest() is None
    folder.save(make(3))
    loaded = folder.load_newest()
    assert loaded is not None
    assert same(loaded, make(3))
    assert warnings == []


def test_views_and_expanded_tensors_are_saved_as_they_are_seen(folder: CheckpointFolder):
    odd = {"transposed": torch.arange(6.0).reshape(2, 3).T, "expanded": torch.ones(1, 3).expand(4, 3)}
    folder.save(Checkpoint(1, {"model": odd}, {}))
    loaded = folder.load_newest()
    assert loaded is not None
    assert all(torch.equal(loaded.tensors["model"][name], tensor) for name, tensor in odd.items())


@pytest.mark.parametrize(("num_kept", "kept"), [(1, [8, 13]), (2, [8, 13]), (3, [5, 8, 13])])
def test_the_newest_are_kept_and_never_fewer_than_two(num_kept: int, kept: list[int], tmp_path: Path):
    folder = CheckpointFolder(tmp_path, num_kept)
    for step in (1, 5, 8, 13):
        folder.save(make(step))
    assert names(folder) == [f"{step:06d}" for step in kept]


def test_order_is_by_number_not_by_time_or_text(folder: CheckpointFolder):
    for step in (999_999, 1_000_000):
        folder.save(make(step))
    for path in folder.path.iterdir():
        os.utime(path, (0, 0) if path.name == "1000000" else (2**31, 2**31))
    loaded = folder.load_newest()
    assert loaded is not None
    assert loaded.step == 1_000_000
    assert names(folder) == ["1000000", "999999"]


def test_a_step_may_be_saved_again(folder: CheckpointFolder):
    folder.save(make(1))
    folder.save(make(2))
    shutil.rmtree(folder.path / "000002")
    (folder.path / "000002").mkdir()  # a damaged one that was passed over
    folder.save(make(2))
    loaded = folder.load_newest()
    assert loaded is not None
    assert same(loaded, make(2))


FILES = ("manifest.json", "state.json", "model.safetensors", "average.safetensors", "optimizer.safetensors")


@pytest.mark.parametrize("file", FILES)
def test_any_flipped_bit_is_seen_and_the_one_before_is_taken(file: str, folder: CheckpointFolder, warnings: list[str]):
    folder.save(make(1))
    folder.save(make(2))
    path = folder.path / "000002" / file
    whole = path.read_bytes()
    generator = random.Random(file)
    for place in range(len(whole)):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << generator.randrange(8)
        path.write_bytes(flipped)
        warnings.clear()
        loaded = folder.load_newest()
        assert loaded is not None
        assert same(loaded, make(1)), f"byte {place}"
        assert len(warnings) == 1
        assert "000002" in warnings[0]
        assert "using the previous one" in warnings[0]


@pytest.mark.parametrize("file", FILES)
def test_a_truncated_or_missing_file_is_seen(file: str, folder: CheckpointFolder, warnings: list[str]):
    folder.save(make(1))
    folder.save(make(2))
    path = folder.path / "000002" / file
    whole = path.read_bytes()
    for length in (*range(0, len(whole), 7), len(whole) - 1, None):
        path.write_bytes(whole[:length] if length is not None else b"")
        if length is None:
            path.unlink()
        loaded = folder.load_newest()
        assert loaded is not None
        assert loaded.step == 1
    assert warnings


def test_a_file_grown_at_its_end_is_seen(folder: CheckpointFolder):
    folder.save(make(1))
    folder.save(make(2))
    path = folder.path / "000002" / "model.safetensors"
    path.write_bytes(path.read_bytes() + b"\0")
    loaded = folder.load_newest()
    assert loaded is not None
    assert loaded.step == 1


def test_where_all_are_damaged_it_says_so(folder: CheckpointFolder):
    folder.save(make(1))
    folder.save(make(2))
    for step in ("000001", "000002"):
        (folder.path / step / "state.json").write_bytes(b"{}")
    with pytest.raises(FileRefused, match=r"all 2 checkpoints are damaged; delete the folder"):
        folder.load_newest()


def test_a_manifest_cannot_name_files_elsewhere(folder: CheckpointFolder):
    folder.save(make(1))
    folder.save(make(2))
    path = folder.path / "000002" / "manifest.json"
    _, hashes = read_manifest(path.parent)
    other = folder.path / "000001" / "model.safetensors"
    path.write_bytes(manifest_bytes({**hashes, "../000001/model.safetensors": sha256(other.read_bytes()).hexdigest()}))
    loaded = folder.load_newest()
    assert loaded is not None
    assert loaded.step == 1


@pytest.mark.parametrize("manifest", ["[]", "null", "3", "{}", '{"state.json": 5}', '{"a": {}}', ""])
def test_a_manifest_of_another_form_is_seen(manifest: str, folder: CheckpointFolder):
    folder.save(make(1))
    folder.save(make(2))
    (folder.path / "000002" / "manifest.json").write_text(manifest, encoding="utf-8")
    loaded = folder.load_newest()
    assert loaded is not None
    assert loaded.step == 1


def test_damaged_ones_that_were_passed_over_take_no_place(folder: CheckpointFolder, warnings: list[str]):
    """Else the newest kept would be damaged ones, and what was trained since would be deleted."""
    for step in (1, 2):
        folder.save(make(step))
    for step in (8, 9):  # as left by a run that was killed before it deleted
        shutil.copytree(folder.path / "000002", folder.path / f"{step:06d}")
        (folder.path / f"{step:06d}" / "state.json").write_bytes(b"{}")
    loaded = folder.load_newest()
    assert loaded is not None
    assert loaded.step == 2
    assert len(warnings) == 2
    folder.save(make(3))
    assert names(folder) == ["000002", "000003"]


def test_every_file_goes_through_to_the_disk_before_it_counts(folder: CheckpointFolder):
    """Written, synced, renamed, and the names above synced, in this order; nothing is deleted before."""
    for step in (1, 2):
        folder.save(make(step))
    journal: list[Call] = []
    with calls(journal.append):
        folder.save(make(3))
    done = [(call.name, call.path.name) for call in journal if call.name != "close"]
    place = next(i for i, call in enumerate(done) if call[0] == "rename")
    hidden = f".000003-{os.getpid()}"
    for file in FILES:
        assert max(i for i, call in enumerate(done) if call == ("write", file)) < done.index(("fsync", file)) < place
    assert done.index(("fsync", hidden)) > max(done.index(("fsync", file)) for file in FILES)
    assert done[place - 1] == ("fsync", hidden) or ("open", hidden) in done[:place]
    after = done[place:]
    assert after.index(("fsync", "checkpoints")) < after.index(("fsync", "run")) < after.index(("rename", "000001"))
    assert not any(call[0] in ("unlink", "rmdir") for call in done[: place + after.index(("rename", "000001"))])


def test_a_full_disk_is_a_resource_error_with_the_step(folder: CheckpointFolder):
    with calls(lambda call: call.fail(errno.ENOSPC) if call.name == "write" else None):
        with pytest.raises(ResourceError, match=r"checkpoint of step 7 not saved: .*No space left"):
            folder.save(make(7))
    assert names(folder) == []
    assert ResourceError.exit_code == 5


# ---------------------------------------------------------------------------------------------- of a newer heedful


def make_newer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a checkpoint the manifest that a newer heedful would have written."""
    _, hashes = read_manifest(path)
    with monkeypatch.context() as patch:
        patch.setattr("heedful.training.checkpoint_formats.CHECKPOINT_FORMAT", Format("checkpoint", 99))
        (path / "manifest.json").write_bytes(manifest_bytes(hashes))


def test_one_of_a_newer_heedful_is_refused_and_none_before_it_is_taken(
    folder: CheckpointFolder, warnings: list[str], monkeypatch: pytest.MonkeyPatch
):
    folder.save(make(1))
    folder.save(make(2))
    make_newer(folder.path / "000002", monkeypatch)
    with pytest.raises(NewerFormat, match=r"made by a newer heedful \(checkpoint format 99; this one reads up to 2\)"):
        folder.load_newest()
    assert warnings == []
    (folder.path / "000002" / "model.safetensors").write_bytes(b"")  # damage changes nothing: it is not ours to judge
    with pytest.raises(NewerFormat):
        folder.load_newest()


@pytest.mark.parametrize("newer", [1, 2, 9])
def test_saves_remove_none_of_a_newer_heedful(newer: int, folder: CheckpointFolder, monkeypatch: pytest.MonkeyPatch):
    folder.save(make(newer))
    make_newer(folder.path / f"{newer:06d}", monkeypatch)
    for step in (3, 4, 5, 6):
        folder.save(make(step))
    assert names(folder) == sorted(["000005", "000006", f"{newer:06d}"])


def test_no_save_takes_the_place_of_one_of_a_newer_heedful(folder: CheckpointFolder, monkeypatch: pytest.MonkeyPatch):
    folder.save(make(3))
    make_newer(folder.path / "000003", monkeypatch)
    before = {path.name: path.read_bytes() for path in (folder.path / "000003").iterdir()}
    with pytest.raises(NewerFormat):
        folder.save(make(3))
    assert names(folder) == ["000003"]
    assert {path.name: path.read_bytes() for path in (folder.path / "000003").iterdir()} == before
