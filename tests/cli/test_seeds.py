"""Several seeds, trained side by side in processes of their own, and their ensemble in one folder."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.cli.seeds import _command as seed_command  # pyright: ignore[reportPrivateUsage]
from heedful.cli.seeds import _tested as lines_of_test  # pyright: ignore[reportPrivateUsage]
from heedful.data.rows import Columns, RequestedColumns
from heedful.engines.folder import ModelFolder, commit, open_folder
from heedful.engines.members import members_of
from heedful.files.formats import KEY
from heedful.predictors.classifier import Classifier
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.tasks import classification
from heedful.tasks.advice import label_verdict
from tests.cli.command import heedful
from tests.requests import make_request
from tests.tasks.reviews import BAD, GOOD
from tests.thorough import thorough

SMALL = ("embedding_size=4", "hidden_size=6", "readout_size=5")


def write_words(path: Path) -> Path:
    words = ["ab", "ba", "abc", "cab", "bac", "a", "c", "cc", "bab", "aca", "acb", "bb"]
    path.write_text("".join(f"{word}\t{' '.join(word)}\n" for word in words), encoding="utf-8", newline="\n")
    return path


@thorough
def test_seeds_become_one_model(tmp_path: Path):
    data, out = write_words(tmp_path / "words.tsv"), tmp_path / "m"
    sizes = [f"--set=model.{size}" for size in SMALL]
    command = ("train", data, "--dev", data, "--seeds", "2", "--out", out, *sizes, "--set=training.max_steps=3")
    done = heedful(*command, "--set=training.export=false", "--threads", "1")
    assert (done.code, done.out.strip().split("\n")[-1]) == (0, f"model: {out}, an ensemble of 2")
    assert len(members_of(open_folder(out))) == 1
    joined = load(out, engine="torch", kind=Translator)
    members = Translator(open_folder(out), engine="torch"), load(out / "run/seeds/2", engine="torch", kind=Translator)
    pairs = [("abc", "a b c"), ("ca", "c a")]
    mean, *each = ([np.exp(one.token_log_probs) for one in model.score(pairs)] for model in (joined, *members))
    for mixed, one, other in zip(mean, *each, strict=True):
        assert not np.allclose(one, other, rtol=1e-3)
        np.testing.assert_allclose(mixed, (one + other) / 2, rtol=1e-5)


@thorough
def test_an_ensemble_chooses_its_own_share_and_is_tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lines = [f"the {noun} was {word}\t{label}\n" for label, words in (("good", GOOD), ("bad", BAD)) for word in words
             for noun in ("room", "food", "staff", "view")]  # fmt: skip
    (data := tmp_path / "reviews.tsv").write_text("".join(lines), encoding="utf-8", newline="\n")
    command = ("train", data, "--test", data, "--task", "classification", "--seeds", "2", "--threads", "1")
    command += ("--out", tmp_path / "m", "--set=training.export=false", "--set=training.max_steps=5")
    done = heedful(*command)
    assert done.code == 0, done.err
    facts = open_folder(tmp_path / "m").facts
    assert len(facts["members"]) == 1
    assert "ngram_share" in facts
    stored = json.loads((tmp_path / "m/run/test.json").read_text("utf-8"))
    assert stored["members"] == facts["members"]
    assert stored["text"] in done.out
    assert done.out.count("n-grams alone have ") == 1
    again = heedful(*command)
    assert (again.code, again.out, open_folder(tmp_path / "m").facts) == (0, done.out, facts)

    numbers: list[int] = []

    class Watched(Classifier):  # type: ignore[misc]
        def __init__(self, folder: ModelFolder, *options: Any) -> None:
            super().__init__(folder, *options)
            numbers.append(len(options[-1]))

    monkeypatch.setattr(classification, "Classifier", Watched)
    kept = {key: value for key, value in facts.items() if key not in (KEY, "files", "ngram_share")}
    commit(tmp_path / "m", kept, [*facts["files"]])
    single = [part for part in command if part not in ("--seeds", "2")]
    assert heedful(*single, "--seed", "1").code == 0
    assert numbers == [1]  # further members
    assert open_folder(tmp_path / "m").facts == facts


def test_simple_models_stand_once_beside_the_scores_of_an_ensemble():
    verdict = label_verdict(91.0, 23.2, 84.9, 400, 6)
    tested = ["test:  119 texts; 95 % interval", "       accuracy 85.00 %"]
    shown = lines_of_test(["finished: 8 epochs", *tested, verdict, "model: m"])
    simple = "       on validation, the most frequent label alone has 23.20 %, n-grams alone have 84.90 %"
    assert shown.split("\n") == [*tested, simple, ""]
    assert lines_of_test(["finished: 8 epochs", *tested, "model: m"]).split("\n") == [*tested, ""]
    worse = lines_of_test([*tested, label_verdict(23.0, 23.2, 84.9, 400, 6)])
    assert simple in worse


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [((1, 2), []), (RequestedColumns((1, 2)), ["--columns", "1,2"]), ((2, 1), ["--columns", "2,1"])],
)
def test_seeds_name_no_columns_that_nobody_has_named(columns: Columns, wanted: list[str], tmp_path: Path):
    request = make_request((tmp_path / "a.csv",), tmp_path / "m", columns=columns)
    words = seed_command(request, 1, tmp_path / "m", 1, True)
    place = words.index("--columns") if "--columns" in words else len(words)
    assert words[place : place + 2] == wanted


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--seeds", "100"), "--seeds"),
        (("--seeds", "2", "--profile"), "neither --monolingual nor --profile"),
        (("--seeds", "2", "--task", "captioning"), "no ensembles of captioning"),
    ],
)
def test_what_cannot_have_seeds_is_refused(options: tuple[str, ...], words: str, tmp_path: Path):
    done = heedful("train", write_words(tmp_path / "words.tsv"), "--out", tmp_path / "m", *options)
    assert done.code == 2
    assert words in done.err
    assert not (tmp_path / "m").exists()
