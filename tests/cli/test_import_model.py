import json
import os
from pathlib import Path

import pytest

from tests.cli.command import disk_quota, heedful
from tests.export.marian_folder import write_folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_folder(tmp_path / "opus")


def test_what_was_imported_translates_aligns_and_is_known(folder: Path):
    done = heedful("import", folder)
    assert (done.code, done.out) == (0, "")
    assert done.err == "opus.model: transformer; try: heedful translate opus.model\n"
    done = heedful("translate", "opus.model", "--beam", "1", "--quiet", stdin=b"a b\n\nab d\n")
    assert (done.code, done.err, done.out.count("\n")) == (0, "", 3)
    info = heedful("info", "opus.model")
    assert info.code == 0
    assert "13 pieces" in info.out
    pairs = folder.with_name("pairs.tsv")
    pairs.write_text("a b\tb a\n", encoding="utf-8")
    assert heedful("align", "opus.model", pairs).code == 0
    assert heedful("score", "opus.model", pairs).code == 0


def test_languages_are_said_by_the_folder_or_by_hand(folder: Path):
    assert heedful("import", folder, "--out", "one", "--quiet") == (0, "", "")
    assert '"de"' in Path("one/heedful.json").read_text(encoding="utf-8")
    assert '"origin": "Marian"' in Path("one/heedful.json").read_text(encoding="utf-8")
    assert heedful("import", folder, "--out", "two", "--languages", "fr:it", "--quiet").code == 0
    assert '"it"' in Path("two/heedful.json").read_text(encoding="utf-8")


def test_nothing_is_written_over(folder: Path):
    Path("opus.model").mkdir()
    Path("opus.model/mine").touch()
    done = heedful("import", folder)
    assert (done.code, len(done.errors)) == (2, 1)
    assert [path.name for path in Path("opus.model").iterdir()] == ["mine"]


def test_a_refused_folder_gives_one_line_and_leaves_nothing(folder: Path):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    done = heedful("import", folder)
    assert (done.code, done.out, done.err.count("\n"), len(done.errors)) == (3, "", 1, 1)
    assert "pickle" in done.err
    assert not Path("opus.model").exists()
    done = heedful("import", "nothing")
    assert (done.code, done.err.count("\n")) == (2, 1)


def test_half_a_character_in_the_vocabulary_is_refused_and_leaves_nothing(folder: Path):
    path = folder / "vocab.json"
    whole = json.loads(path.read_bytes())
    last = max(whole, key=lambda token: whole[token])
    path.write_text(json.dumps({("\ud800" if token == last else token): whole[token] for token in whole}))
    done = heedful("import", folder)
    assert (done.code, len(done.errors)) == (3, 1), done.err
    assert "vocab.json" in done.errors[0]
    assert [entry.name for entry in Path().iterdir()] == ["opus"]
    path.write_text(json.dumps(whole))
    assert heedful("import", folder).code == 0


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX limits")
def test_a_full_disk_leaves_nothing(folder: Path):
    codes: list[int] = []
    for num_bytes in (0, 10, 300, 1_000, 3_000, 10_000, 1_000_000):
        with disk_quota(num_bytes):
            done = heedful("import", folder)
        codes.append(done.code)
        if done.code:
            assert (done.code, len(done.errors)) == (5, 1), done.err
            assert [entry.name for entry in Path().iterdir()] == ["opus"]
    assert codes[0] == 5
    assert codes[-1] == 0


def test_the_licence_of_the_folder_goes_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    folder = write_folder(tmp_path / "opus")
    (folder / "README.md").write_text("---\nlanguage:\n- de\nlicense: apache-2.0\n---\n# OPUS\n", encoding="utf-8")
    assert heedful("import", folder).code == 0
    assert "apache-2.0" in heedful("info", "opus.model").out
    assert heedful("pack", "opus.model", "-o", "packed").code == 0
    card = Path("packed/README.md").read_text("utf-8")
    assert 'license: "apache-2.0"\n' in card
    assert "converted from Marian by heedful" in card
