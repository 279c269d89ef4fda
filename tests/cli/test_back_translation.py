"""`heedful train --monolingual`: texts are translated back, tagged, and learned behind the real pairs."""

from pathlib import Path
from typing import Any

import pytest

from heedful.config.base import read_toml
from heedful.predictors import distillation
from heedful.predictors.back_translation import TAG
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.text.tokenizer import TextConfig
from heedful.text.tokenizer_training import train_tokenizer
from tests.cli.command import Done, heedful
from tests.cli.conftest import write_pairs
from tests.cli.shards import killed_at_shard
from tests.thorough import thorough

LIMITS = ("--set", "training.max_steps=4", "--set", "training.validate_every=2", "--threads", "1")


def rows(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def train(folder: Path, *arguments: object, settings: Path) -> Done:
    return heedful("train", folder / "words.tsv", "--out", folder / "m", *arguments, "--config", settings, *LIMITS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Pairs of words and their capitals, a validation set, and words in capitals alone."""
    write_pairs(tmp_path / "words.tsv", 120)
    (tmp_path / "dev.tsv").write_text("fed\tFED\ncafe\tCAFE\n", encoding="utf-8")
    (tmp_path / "more.txt").write_bytes(b"BEAD\n\nFED\nAB\tCD\nBEAD\nDEAF\n")
    return tmp_path


def test_texts_are_translated_back_and_learned_behind_the_pairs(folder: Path, settings: Path):
    options = ("--dev", folder / "dev.tsv", "--monolingual", folder / "more.txt")
    done = train(folder, *options, settings=settings)
    assert done.code == 0, done.err
    work = folder / "m.back-translated"
    assert rows(work / "dev.tsv") == [["fed", "FED"], ["cafe", "CAFE"]]
    mixed, real = rows(work / "train.tsv"), rows(folder / "words.tsv")
    assert mixed[: len(real)] == real
    reverse = load(work / "reverse.model", engine="torch", kind=Translator)
    texts = ["BEAD", "AB CD", "DEAF"]  # FED is a reference
    outputs = reverse.translate(texts)
    assert mixed[len(real) :] == [[f"{TAG} {one.text}", one.source] for one in outputs if one.text]
    model = load(folder / "m", engine="torch", kind=Translator)
    assert model.folder.facts["languages"] == reverse.folder.facts["languages"][::-1]
    assert not any(TAG in one.text for one in model.translate(["abc", "fed"]))

    again = train(folder, *options, settings=settings)
    assert again.code == 0, again.err
    assert "to translate" not in again.err
    assert "already finished" in again.out
    assert rows(work / "train.tsv") == mixed


def test_settings_of_the_sides_change_places_for_the_other_direction(folder: Path, settings: Path):
    words = settings.read_text(encoding="utf-8").replace('source_units = "characters"', 'source_units = "words"')
    settings.write_text(words, encoding="utf-8")
    word = rows(folder / "words.tsv")[0][0]
    (folder / "source.vec").write_text(f"1 16\n{word} {' '.join(['0.5'] * 16)}\n", encoding="utf-8")
    (folder / "links.tsv").write_text(f"{word}\t{word.upper()}\t0-0\n", encoding="utf-8")
    done = train(
        folder,
        *("--dev", folder / "dev.tsv", "--monolingual", folder / "more.txt"),
        *("--set", f"text.source_vectors={folder / 'source.vec'}", "--set", "training.alignment_weight=0.5"),
        *("--links", folder / "links.tsv", "--set", "text.shared=false"),
        settings=settings,
    )
    assert done.code == 0, done.err
    ahead, back = (load(path).text for path in (folder / "m", folder / "m.back-translated" / "reverse.model"))
    assert (ahead.source_units, ahead.target_units) == ("words", "characters")
    assert (back.source_units, back.target_units) == ("characters", "words")
    assert (Path(ahead.source_vectors).name, ahead.target_vectors) == ("source.vec", "")
    assert (back.source_vectors, Path(back.target_vectors).name) == ("", "source.vec")
    links = [
        read_toml(path / "run/experiment.toml")["training"].get("links")
        for path in (folder / "m", folder / "m.back-translated" / "reverse.model")
    ]
    assert (Path(links[0]).name, links[1] or "") == ("links.tsv", "")


def test_validation_is_held_out_of_the_real_pairs(folder: Path, settings: Path):
    done = train(folder, "--monolingual", folder / "more.txt", settings=settings)
    assert done.code == 0, done.err
    work = folder / "m.back-translated"
    held_out, real = rows(work / "dev.tsv"), rows(work / "pairs.tsv")
    assert held_out
    assert not {source for source, _ in held_out} & {source for source, _ in rows(work / "train.tsv")}
    assert sorted(map(tuple, [*held_out, *real])) == sorted(map(tuple, rows(folder / "words.tsv")))


def test_a_killed_run_goes_on_to_the_same_pairs(folder: Path, settings: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(distillation, "SHARD_LINES", 5)
    (folder / "more.txt").write_text("".join(f"{source.upper()}\n" for source, _ in rows(folder / "words.tsv")[:20]))
    options = ("--dev", folder / "dev.tsv", "--monolingual", folder / "more.txt")
    with killed_at_shard(3):
        assert train(folder, *options, settings=settings).code == 130
    first = folder / "m.back-translated" / "sources"
    done = train(folder, *options, settings=settings)
    assert done.code == 0, done.err
    (line,) = [line for line in done.err.split("\n") if line.endswith("to translate")]
    assert line.split()[0] in ("5", "10")  # the others were done
    assert (first / "sources.txt").is_file()
    resumed = rows(folder / "m.back-translated" / "train.tsv")
    reverse = load(folder / "m.back-translated" / "reverse.model", engine="torch", kind=Translator)
    texts = [row[1] for row in resumed[120:]]
    assert [row[0] for row in resumed[120:]] == [f"{TAG} {one.text}" for one in reverse.translate(texts)]


@thorough
def test_more_minutes_train_on_from_the_same_sources(folder: Path, settings: Path):
    options = ("--dev", folder / "dev.tsv", "--monolingual", folder / "more.txt", "--set", "training.term_share=0.5")
    work = folder / "m.back-translated"
    assert train(folder, *options, "--set", "training.max_minutes=8", settings=settings).code == 0
    mixed, config = (work / "train.tsv").read_bytes(), (work / "reverse.model" / "config.toml").read_bytes()
    assert read_toml(work / "reverse.model" / "config.toml")["training"]["max_minutes"] == 2
    assert read_toml(work / "reverse.model" / "config.toml")["training"]["term_share"] == 0
    assert read_toml(folder / "m" / "config.toml")["training"]["max_minutes"] == 6
    done = train(folder, *options, "--minutes", "16", settings=settings)
    assert done.code == 0, done.err
    assert "for 2 of 16 minutes" in done.err
    assert ((work / "train.tsv").read_bytes(), (work / "reverse.model" / "config.toml").read_bytes()) == (mixed, config)
    # Nor does the model of the other direction train on where the limit is left out.
    done = train(folder, *options, settings=settings)
    assert done.code == 0, done.err
    assert ((work / "train.tsv").read_bytes(), (work / "reverse.model" / "config.toml").read_bytes()) == (mixed, config)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--task", "classification"), "--monolingual: for translation, not for classification"),
        (("--from", "elsewhere.model"), "--monolingual: trains from fresh weights; leave out --from"),
        (("--mix", "older.tsv"), "--monolingual: takes no older pairs by --mix; put them into the data, or go on"),
    ],
)
def test_other_uses_are_refused(folder: Path, settings: Path, options: tuple[str, ...], message: str):
    done = train(folder, "--monolingual", folder / "more.txt", *options, settings=settings)
    assert (done.code, done.out) == (2, "")
    assert message in done.errors[-1]
    assert not (folder / "m.back-translated").exists()


@pytest.mark.parametrize(("content", "message"), [(b"\n \n", "it has no text"), (b"FED\nCAFE\n", "is a reference")])
def test_files_without_text_are_refused(folder: Path, settings: Path, content: bytes, message: str):
    (folder / "more.txt").write_bytes(content)
    options = ("--dev", folder / "dev.tsv", "--monolingual", folder / "more.txt")
    done = train(folder, *options, settings=settings)
    assert (done.code, done.out) == (2, "")
    assert message in done.errors[-1]


@pytest.mark.parametrize("units", ["pieces", "characters", "words"])
def test_the_tag_is_one_token(units: Any):
    words = ["dog", "cat", "house", "tree", "green", "small", "runs", "sleeps"]
    plain = [f"the {one} {other} here" for one in words for other in words]
    tokenizer = train_tokenizer([*plain, *(f"{TAG} {line}" for line in plain)], units, 400, TextConfig())
    pieces = tokenizer.pieces(tokenizer.encode(f"{TAG} the dog"))
    (tag,) = [piece for piece in pieces if TAG in piece]
    assert tag.strip("\u2581") == TAG
    assert pieces.index(tag) < 2  # behind a space at most
