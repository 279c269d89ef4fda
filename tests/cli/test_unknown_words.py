"""From a corpus of words, some too rare for the vocabulary, to outputs without unknown words."""

import json
import random
from pathlib import Path

import pytest

from heedful.text.dictionary import Dictionary
from tests.cli.command import Done, heedful

SETTINGS = [
    "text.source_units=words",
    "text.target_units=words",
    "text.shared=false",
    "text.vocabulary_size=12",
    "model.kind=rnnsearch",
    "model.embedding_size=16",
    "model.hidden_size=16",
    "model.alignment_size=16",
    "model.maxout_size=16",
    "model.dropout=0.0",
    "training.max_steps=60",
    "training.export=false",
    "training.validate_every=30",
    "training.batch_tokens=512",
    "training.optimizer.learning_rate=0.02",
    "training.optimizer.schedule.warmup_steps=10",
    "search.beam=2",
    "search.max_length_ratio=1.0",
    "search.max_length_offset=4",
]
SET = [word for one in SETTINGS for word in ("--set", one)]


def write_pairs(path: Path) -> Path:
    """Eight frequent words, and 40 rare ones; each has one translation."""
    draw = random.Random(0)
    rows: list[str] = []
    for _ in range(400):
        words = [f"w{draw.randrange(8)}" if draw.random() < 0.8 else f"r{draw.randrange(40)}" for _ in range(4)]
        rows.append(" ".join(words) + "\t" + " ".join(word.upper() for word in words) + "\n")
    path.write_bytes("".join(rows).encode())
    return path


class Trained:
    def __init__(self, folder: Path) -> None:
        self.data = write_pairs(folder / "words.tsv")
        self.model = folder / "words.model"
        self.command = ("train", self.data, "--out", self.model, *SET)
        self.done: Done = heedful(*self.command)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        made = Trained(tmp_path_factory.mktemp("words"))
    assert made.done.code == 0, made.done.err
    return made


def test_the_dictionary_is_learned_and_stands_in_the_folder(trained: Trained):
    learned = Dictionary.load(trained.model / "dictionary.tsv")
    assert [learned.translate(f"w{place}") for place in range(8)] == [f"W{place}" for place in range(8)]
    assert sum(learned.translate(f"r{place}") == f"R{place}" for place in range(40)) >= 30
    manifest = json.loads((trained.model / "heedful.json").read_bytes())
    assert manifest["dictionary"] == "dictionary.tsv"
    assert "dictionary.tsv" in manifest["files"]
    assert f"dictionary  {len(learned)} words" in heedful("info", trained.model).out


def test_outputs_have_no_unknown_words_unless_asked(trained: Trained):
    text = "r1 r2 r3 r4"
    kept = heedful("translate", trained.model, "--keep-unknown", text).out
    assert "<unk>" in kept
    done = heedful("translate", trained.model, text)
    assert "<unk>" not in done.out
    assert done == heedful("translate", trained.model, "--replace-unknown", text)
    allowed = {f"R{place}" for place in (1, 2, 3, 4)} | {f"r{place}" for place in (1, 2, 3, 4)}
    for before, after in zip(kept.split(), done.out.split(), strict=True):
        assert after in allowed if before == "<unk>" else after == before
    (record,) = map(
        json.loads, heedful("translate", trained.model, "--format", "jsonl", "--nbest", 2, text).out.split("\n")[:-1]
    )
    assert record["text"] == record["alternatives"][0]["text"] == done.out.rstrip("\n")
    assert record["unreplaced"] == kept.rstrip("\n")
    assert all("<unk>" not in other["text"] for other in record["alternatives"])
    aligned = heedful("translate", trained.model, "--align", text).out
    assert aligned.partition("\t")[0] == done.out.rstrip("\n")


def test_a_word_that_no_dictionary_has_is_copied(trained: Trained):
    assert "brandnew" in heedful("translate", trained.model, "brandnew brandnew brandnew brandnew").out


def test_evaluate_shows_scores_before_and_after(trained: Trained):
    facts = json.loads(heedful("evaluate", trained.model, trained.data, "--limit", 60, "--format", "json").out)
    kept = json.loads(
        heedful(
            "evaluate",
            trained.model,
            trained.data,
            "--limit",
            60,
            "--keep-unknown",
            "--format",
            "json",
            "--metrics",
            "bleu,exact_match,token_error_rate",
        ).out
    )
    assert [result["metric"] for result in facts["results"]] == ["bleu", "exact_match", "token_error_rate"]
    assert facts["unreplaced"]["results"] == kept["results"]
    assert 0 < facts["num_replaced"] <= 60
    assert "unreplaced" not in kept
    assert facts["results"][0]["score"] > kept["results"][0]["score"]
    text = heedful("evaluate", trained.model, trained.data, "--limit", 60).out
    before, after = kept["results"][0]["score"], facts["results"][0]["score"]
    assert f"unknown words replaced in {facts['num_replaced']} outputs: BLEU {before:.2f} -> {after:.2f}" in text


def test_a_changed_dictionary_is_refused(trained: Trained, tmp_path: Path):
    import shutil

    copy = tmp_path / "copy.model"
    shutil.copytree(trained.model, copy)
    with (copy / "dictionary.tsv").open("ab") as stream:
        stream.write(b"x\ty\t1.0\t1\n")
    done = heedful("translate", copy, "w1")
    assert done.code == 3
    assert "dictionary.tsv: changed since it was written" in done.errors[0]


def test_the_same_command_keeps_the_dictionary(trained: Trained, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("heedful.data.prepared_dictionary.align_pairs", None)
    assert heedful(*trained.command).code == 0
