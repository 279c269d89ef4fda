"""`heedful reproduce`: a training by a receipt, beside recorded and published scores."""

import json
import tarfile
from pathlib import Path

import pytest

from heedful.runs.receipt import comparison, read_receipt
from tests.architecture.package import ROOT
from tests.cli.command import heedful

WORDS = [first + second + third for first in "bdfg" for second in "aei" for third in "lmnr"]
RECEIPT = """
title = "Words to capitals"
address = "https://example.org/words"
license = "cc0-1.0"
outputs = ["pack", "graph", "lexicon"]

[train]
files = ["words.tsv"]
dev = ["words.tsv"]
test = ["words.tsv"]
preset = "rnnsearch-tiny"
settings = { "model.embedding_size" = 8, "model.hidden_size" = 8, "training.max_steps" = 2 }

[[published]]
by = "another program"
metric = "exact_match"
score = 12.5
source = "Table 1"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("receipt")
    (folder / "words.tsv").write_text("".join(f"{word}\t{word.upper()}\n" for word in WORDS), encoding="utf-8")
    (folder / "capitals.toml").write_text(RECEIPT, encoding="utf-8")
    return folder


def reproduce(folder: Path, receipt: Path, *options: str):
    return heedful("reproduce", receipt, "--data", folder, "--out", folder / "out", "--threads", "1", *options)


def test_a_receipt_is_completed_and_reproduced(folder: Path):
    receipt = folder / "capitals.toml"
    done = reproduce(folder, receipt)
    assert done.code == 0, done.err
    assert done.out.startswith("Words to capitals; 48 test items\nexact match\n")
    assert "another program  12.50 %   Table 1\n" in done.out
    assert "reproduced" not in done.out
    out = folder / "out"
    with tarfile.open(out / "capitals.tar.xz") as archive:
        archive.extractall(out / "unpacked", filter="data")
    card = (out / "unpacked" / "capitals" / "README.md").read_text("utf-8")
    assert "cc0-1.0" in card
    assert (out / "capitals.onnx").stat().st_size > 1000
    listed = [line.split(" ")[0] for line in (out / "capitals.lexicon.txt").read_text("utf-8").splitlines()]
    assert listed
    assert {*listed} <= {*WORDS}

    _, lines = done.out.split(f"# lines for {receipt}\n")
    full = folder / "full" / "capitals.toml"
    full.parent.mkdir()
    full.write_text(RECEIPT + lines, encoding="utf-8")
    assert len(read_receipt(full).sha256["words.tsv"]) == 64
    again = reproduce(folder, full, "--format", "json")
    assert again.code == 0, again.err
    facts = json.loads(again.out)
    assert (facts["reproduced"], facts["items"], len(facts["files"])) == (True, 48, 4)


def test_scores_are_compared_with_recorded_and_published_ones(folder: Path, tmp_path: Path):
    path = tmp_path / "capitals.toml"
    path.write_text(RECEIPT + "[recorded]\nexact_match = { score = 90.0, low = 85.0, high = 95.0 }\n", encoding="utf-8")
    receipt = read_receipt(path)
    one = {"key": "exact_match", "name": "exact match", "unit": "%", "low": 80.0, "high": 90.0}
    assert [comparison(receipt, [one | {"score": score}])[1] for score in (84.9, 85.0, 95.0, 95.1)] == [
        False,
        True,
        True,
        False,
    ]
    lines, _ = comparison(receipt, [one | {"score": 88.0}])
    assert lines == [
        "exact match",
        "  here             88.00 % [80.00, 90.00]",
        "  recorded         90.00 % [85.00, 95.00]",
        "  another program  12.50 %   Table 1",
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('files = ["words.tsv"]', 'files = ["../words.tsv"]'), "../words.tsv: name a file in the folder of the data"),
        (('files = ["words.tsv"]', 'files = ["/etc/passwd"]'), "/etc/passwd: name a file in the folder"),
        (('files = ["words.tsv"]', 'files = ["left.tsv"]'), "no such file; fetch it from https://example.org/words"),
        (("title", "[sha256]\n'words.tsv' = 'ab'\n[x]\ntitle"), "title"),
        (("[[published]]", "[sha256]\n'words.tsv' = 'ab'\n[[published]]"), "the receipt's is ab"),
        (('"training.max_steps"', '"training.max_stops"'), "did you mean"),
        (('outputs = ["pack"', 'outputs = ["tarball"'), "outputs"),
    ],
)
def test_what_is_wrong_is_refused(folder: Path, tmp_path: Path, change: tuple[str, str], words: str):
    receipt = tmp_path / "capitals.toml"
    receipt.write_text(RECEIPT.replace(*change), encoding="utf-8")
    done = heedful("reproduce", receipt, "--data", folder, "--out", tmp_path / "out")
    assert done.code == 2
    assert words in done.err


def test_receipts_of_the_project_are_read():
    receipts = sorted((ROOT / "examples/packs").glob("**/*.toml"))
    assert len(receipts) >= 10
    for path in receipts:
        receipt = read_receipt(path)
        assert {*receipt.files} == {*receipt.sha256}, path
        assert receipt.published, path
