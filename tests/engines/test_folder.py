import json
from pathlib import Path
from typing import Any

import pytest

from heedful.engines.folder import MANIFEST, commit, open_folder
from heedful.errors import FileRefused, NewerFormat, UsageError
from heedful.files.atomic_write import digest
from heedful.files.formats import MODEL_FORMAT
from tests.seal import write_sealed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "dates.model"
    path.mkdir()
    (path / "weights.bin").write_bytes(b"weights")
    (path / "词表.json").write_bytes(b"[]")
    commit(path, {"kind": "toy", "languages": ["en", "中文"], "weights": "weights.bin"}, ["weights.bin", "词表.json"])
    return path


def change(folder: Path, **values: Any) -> None:
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    write_sealed(folder / MANIFEST, manifest | values)


def refusal(folder: Path) -> FileRefused:
    with pytest.raises(FileRefused) as caught:
        open_folder(folder)
    assert caught.value.exit_code == 3
    assert "\n" not in str(caught.value)
    return caught.value


def test_what_was_committed_is_opened(folder: Path):
    opened = open_folder(folder)
    assert opened.path == folder
    assert opened.facts["kind"] == "toy"
    assert opened.facts["languages"] == ["en", "中文"]
    assert opened.facts["format"] == MODEL_FORMAT.version
    assert opened.file("weights") == folder / "weights.bin"
    assert [path.name for path in sorted(folder.iterdir())] == [MANIFEST, "weights.bin", "词表.json"]


@pytest.mark.parametrize("name", ["weights.bin", "词表.json"])
@pytest.mark.parametrize("content", [b"", b"weightt", b"weights\n", None])
def test_a_file_that_changed_is_refused_by_name(name: str, content: bytes | None, folder: Path):
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    assert str(folder / name) in str(refusal(folder))


def test_every_flipped_bit_is_seen(folder: Path):
    path = folder / "weights.bin"
    whole = path.read_bytes()
    for place in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        refusal(folder)


@pytest.mark.parametrize("name", ["../outside", "/etc/hosts", "..", ".", "", "run/x", "./weights.bin", "a\0b"])
def test_files_outside_the_folder_are_refused(name: str, folder: Path):
    outside = folder.parent / "outside"
    outside.write_bytes(b"x")
    change(folder, files={name: digest(outside)})
    refusal(folder)


@pytest.mark.parametrize("name", ["../outside", "/etc/hosts", "unlisted.bin", MANIFEST])
def test_a_role_must_be_one_of_the_files_that_were_verified(name: str, folder: Path):
    (folder.parent / "outside").write_bytes(b"x")
    (folder / "unlisted.bin").write_bytes(b"x")
    change(folder, weights=name)
    opened = open_folder(folder)
    with pytest.raises(FileRefused, match="is none of its files"):
        opened.file("weights")


@pytest.mark.parametrize("role", ["tokenizer", "languages"])
def test_a_role_that_is_not_there_is_named(role: str, folder: Path):
    with pytest.raises(FileRefused, match=f"names no {role}"):
        open_folder(folder).file(role)


@pytest.mark.parametrize("value", [0, "1", None, [1]])
def test_a_format_that_is_none_is_refused(value: object, folder: Path):
    change(folder, format=value)
    assert "is no version; copy the file again" in str(refusal(folder))


def test_a_model_of_a_newer_heedful_is_neither_read_nor_written_over(folder: Path):
    change(folder, format=MODEL_FORMAT.version + 1)
    before = (folder / MANIFEST).read_bytes()
    assert isinstance(refusal(folder), NewerFormat)
    with pytest.raises(NewerFormat, match="update heedful"):
        commit(folder, {"kind": "toy"}, ["weights.bin"])
    assert (folder / MANIFEST).read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"3", b"null", b'{"format": 1}', b'{"format": 1, "files": []}', b"\xff", b"[" * 100_000],
)
def test_a_manifest_of_another_form_is_refused(content: bytes, folder: Path):
    (folder / MANIFEST).write_bytes(content)
    assert MANIFEST in str(refusal(folder))


def test_what_is_no_model_says_what_to_do(folder: Path, tmp_path: Path):
    with pytest.raises(UsageError, match=r"nowhere: no such model; models beside it: dates\.model"):
        open_folder(tmp_path / "nowhere")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UsageError, match="file: not a folder"):
        open_folder(tmp_path / "file")
    (tmp_path / "fresh" / "run").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"it has no heedful\.json; its training has not validated yet"):
        open_folder(tmp_path / "fresh")
    with pytest.raises(UsageError, match="no such model; make one with: heedful train PAIRS"):
        open_folder(tmp_path / "fresh" / "deeper")


def test_a_commit_that_fails_leaves_the_old_model(folder: Path, monkeypatch: pytest.MonkeyPatch):
    before = (folder / MANIFEST).read_bytes()
    (folder / "new.bin").write_bytes(b"new")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    for name in ("json.dump", "os.fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(name, full)
            with pytest.raises(OSError, match="No space"):
                commit(folder, {"kind": "newer"}, ["new.bin"])
        assert (folder / MANIFEST).read_bytes() == before
        assert open_folder(folder).facts["kind"] == "toy"


def test_a_second_commit_takes_the_place_of_the_first(folder: Path):
    (folder / "new.bin").write_bytes(b"new")
    commit(folder, {"kind": "newer", "weights": "new.bin"}, ["new.bin"])
    (folder / "weights.bin").write_bytes(b"no longer of it")
    assert open_folder(folder).file("weights").read_bytes() == b"new"


def test_a_changed_manifest_is_refused(folder: Path):
    text = (folder / MANIFEST).read_text(encoding="utf-8")
    for changed in (text.replace("languages", "lancuages"), text.replace('"en"', '"eo"')):
        (folder / MANIFEST).write_text(changed, encoding="utf-8")
        assert "heedful.json: changed since it was written" in str(refusal(folder))


def test_a_manifest_without_a_checksum_is_that_of_an_older_version(folder: Path):
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    del manifest["sha256"]
    (folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    assert open_folder(folder).facts["kind"] == "toy"
