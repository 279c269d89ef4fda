"""`heedful distil`: a student is trained on what its teacher writes, and killed runs go on to the same pairs."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from heedful.data.corpus import find_pairs
from heedful.data.prepare import EvaluationSet
from heedful.engines.folder import commit, open_folder
from heedful.engines.scored_pairs import ScoredPair
from heedful.predictors import distillation
from heedful.predictors.distillation import doubt, read_sources
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.text.tokenizer import TextConfig
from heedful.text.tokenizer_training import train_tokenizer
from tests.cli.command import Done, heedful
from tests.cli.conftest import Trained, write_pairs
from tests.cli.shards import killed_at_shard

WORDS = [f"{one}{two}xyz" for one in "abcd" for two in "abcd"]
LETTERS = [*WORDS, *(word.upper() for word in WORDS)]
LIMITS = ("--set", "training.max_steps=4", "--set", "training.validate_every=2", "--threads", "1")


@pytest.fixture
def teacher(trained: Trained, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained.model, tmp_path / "words.model"))


def distil(teacher: Path, *arguments: object, settings: Path) -> Done:
    return heedful("distil", teacher, *arguments, "--config", settings, *LIMITS)


def refusal(done: Done) -> str:
    assert (done.code, done.out) == (2, ""), done
    return done.errors[-1]


def test_the_student_learns_what_the_teacher_writes(teacher: Path, settings: Path, tmp_path: Path):
    data = write_pairs(tmp_path / "new.tsv", 100, seed=5)
    (tmp_path / "more.txt").write_bytes(b"feed\n\nabc\tdef\nfeed\n")
    done = distil(teacher, data, "--more", tmp_path / "more.txt", settings=settings)
    assert done.code == 0, done.err
    folder = tmp_path / "words-student.model.distilled"
    rows = [line.split("\t") for line in (folder / "pairs.tsv").read_text(encoding="utf-8").split("\n")[:-1]]
    sources = [line.split("\t")[0] for line in data.read_text(encoding="utf-8").split("\n")[:-1]]
    dev = [line.split("\t") for line in (folder / "dev.tsv").read_text(encoding="utf-8").split("\n")[:-1]]
    assert all(text.upper() == target for text, target in dev)  # real references, not outputs
    held_out = {text for text, _ in dev}
    assert 3 <= len(held_out) <= 6
    wanted = [*(text for text in dict.fromkeys(sources) if text not in held_out), "feed", "abc def"]
    outputs = load(teacher, engine="torch", kind=Translator).translate(wanted)
    assert rows == [[one.source, one.text] for one in outputs if one.text]
    student = load(tmp_path / "words-student.model", engine="torch", kind=Translator)
    assert student.translate(["abc"])[0].source == "abc"
    lines = done.out.split("\n")[-3:-1]
    assert [line.split()[0] for line in lines] == ["teacher", "student"]
    assert all("MB" in line and "sources a second" in line for line in lines)


def test_columns_hold_for_the_validation_set_too(teacher: Path, settings: Path, tmp_path: Path):
    swapped = []
    for name, number in (("new", 60), ("dev", 20)):
        rows = [
            line.split("\t")
            for line in write_pairs(tmp_path / name, number, seed=9).read_text(encoding="utf-8").splitlines()
        ]
        swapped.append(tmp_path / f"{name}.tsv")
        swapped[-1].write_text("".join(f"{target}\t{source}\n" for source, target in rows), encoding="utf-8")
    done = distil(teacher, swapped[0], "--dev", swapped[1], "--columns", "2,1", settings=settings)
    assert done.code == 0, done.err
    folder = tmp_path / "words-student.model.distilled"
    assert (folder / "dev.tsv").read_text(encoding="utf-8") == (tmp_path / "dev").read_text(encoding="utf-8")
    sources = [line.split("\t")[0] for line in (folder / "pairs.tsv").read_text(encoding="utf-8").splitlines()]
    assert sources[0] == (tmp_path / "new").read_text(encoding="utf-8").split("\t")[0]


class Capitalizing:
    """Teacher that knows how words are written in capitals, and nothing else."""

    folder = SimpleNamespace(path="capitals.model")
    source_tokenizer = target_tokenizer = train_tokenizer(LETTERS, "characters", 0, TextConfig())

    def score(self, pairs: list[tuple[str, str]]) -> list[ScoredPair]:
        return [
            ScoredPair(source, target, (-0.1,) * 4 if target == source.upper() else (-3.0,) * 4, (), ())
            for source, target in pairs
        ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([(word, word.upper()) for word in WORDS], ""),
        ([(word.upper(), word) for word in WORDS], "seems to translate in the other direction"),
        ([(word, word[::-1]) for word in WORDS], "does not seem to translate between the languages"),
        ([(word.upper(), word) for word in WORDS[:5]], ""),
        ([(f"天地{word[:2]}", word) for word in WORDS], "50 % of the source tokens are unknown to it"),
    ],
)
def test_a_teacher_of_other_languages_is_doubted(data: list[tuple[str, str]], message: str):
    items = EvaluationSet([source for source, _ in data], [[target] for _, target in data])
    line = doubt(cast(Translator, Capitalizing()), items)
    assert message in line
    assert bool(message) == bool(line)


def test_a_killed_run_goes_on_to_the_same_pairs(
    teacher: Path, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(distillation, "SHARD_LINES", 30)
    data = write_pairs(tmp_path / "new.tsv", 100, seed=6)
    whole = distil(teacher, data, "--out", tmp_path / "whole.model", settings=settings)
    assert whole.code == 0, whole.err
    with killed_at_shard(2):
        assert distil(teacher, data, "--out", tmp_path / "parts.model", settings=settings).code == 130
    assert not (tmp_path / "parts.model.distilled" / "pairs.tsv").exists()
    done = distil(teacher, data, "--out", tmp_path / "parts.model", settings=settings)
    assert done.code == 0, done.err
    parts, others = (tmp_path / f"{name}.model.distilled" / "pairs.tsv" for name in ("parts", "whole"))
    (line,) = [line for line in done.err.split("\n") if line.endswith("to translate")]
    assert 0 < int(line.split()[0]) < len(others.read_text(encoding="utf-8").split("\n")) - 50
    assert parts.read_bytes() == others.read_bytes()


def test_bad_use_is_refused(teacher: Path, settings: Path, tmp_path: Path):
    data = write_pairs(tmp_path / "new.tsv", 60, seed=7)
    assert "is the teacher" in refusal(distil(teacher, data, "--out", teacher, settings=settings))
    assert "/: not a model" in refusal(heedful("distil", "/", data))
    for out in (".", "/", ""):
        assert "names no folder of its own" in refusal(distil(teacher, data, "--out", out, settings=settings))
    folder = open_folder(teacher)
    facts = {key: value for key, value in folder.facts.items() if key not in ("files", "format")}
    commit(teacher, {**facts, "languages": ["de", "en"]}, [*folder.facts["files"]])
    for name in ("a.fr", "a.en"):
        (tmp_path / name).write_text("abc\n" * 20, encoding="utf-8")
    done = distil(teacher, tmp_path / "a.fr", tmp_path / "a.en", settings=settings)
    assert "translates de to en, but the data are fr and en" in refusal(done)
    (tmp_path / "a.de").write_text("abc\n" * 20, encoding="utf-8")
    done = distil(teacher, tmp_path / "a.de", tmp_path / "a.en", "--columns", "2,1", settings=settings)
    assert "translates de to en, but the data are en and de" in refusal(done)
    (tmp_path / "blank.tsv").write_text("\tx\n" * 20, encoding="utf-8")
    assert "no source to translate" in refusal(distil(teacher, tmp_path / "blank.tsv", settings=settings))
    assert distil(teacher, data, "--out", tmp_path / "s.model", settings=settings).code == 0
    other = write_pairs(tmp_path / "other.tsv", 60, seed=8)
    done = distil(teacher, other, "--out", tmp_path / "s.model", settings=settings)
    assert "begun with other sources" in refusal(done)
    assert "no such file" in refusal(distil(teacher, data, "--more", tmp_path / "none.txt", settings=settings))


def test_held_out_sources_are_left_out_however_they_are_spaced(tmp_path: Path):
    rows = "".join(f" {word} \t{word.upper()}\n" for word in WORDS)
    (tmp_path / "rows.tsv").write_text(rows, encoding="utf-8")
    sources = read_sources(find_pairs([tmp_path / "rows.tsv"], (1, 2)), [], None)
    held_out = {text.strip() for text in sources.dev.sources}
    assert held_out
    assert sources.texts == [word for word in WORDS if word not in held_out]
