"""`heedful correct`: corrections are in force at once, and change no other output."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from heedful.data.corrections import NAME
from heedful.engines.folder import commit, open_folder
from heedful.engines.text_constraints import TextConstraints
from heedful.engines.translation_memory import MemoryMatch
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.search.config import SearchConfig
from tests.architecture.package import SOURCE
from tests.cli.command import Done, heedful
from tests.cli.conftest import Trained, write_pairs

TEXTS = ("abc", "fed", "abcabc", "", "deadbeef")


@pytest.fixture
def model(trained: Trained, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained.model, tmp_path / "words.model"))


def refusal(done: Done, code: int = 2) -> str:
    assert (done.code, done.out, len(done.errors)) == (code, "", 1), done
    return done.errors[0]


def rows(model: Path, *options: object) -> list[dict[str, object]]:
    done = heedful("translate", model, "--format", "jsonl", *options, *TEXTS)
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.split("\n")[:-1]]


@pytest.mark.parametrize("options", [(), ("--align",), ("--nbest", 2), ("--exact",)], ids=str)
def test_a_correction_changes_its_own_output_and_no_bit_of_another(model: Path, options: tuple[object, ...]):
    before = rows(model, *options)
    assert heedful("correct", model, "fed", "fee, fi, fo, fum").err == "1 correction in force\n"
    after = rows(model, *options)
    assert [after[index] for index in (0, 2, 3, 4)] == [before[index] for index in (0, 2, 3, 4)]
    assert (after[1]["text"], after[1]["log_prob"], after[1]["was_cut"]) == ("fee, fi, fo, fum", 0.0, False)
    assert after[1]["memory"] == {
        "source": "fed",
        "correction": "fee, fi, fo, fum",
        "share": 1.0,
        "is_exact": True,
    }
    number = 2 if "--nbest" in options else 1
    assert [one["text"] for one in after[1]["alternatives"]] == ["fee, fi, fo, fum", before[1]["text"]][:number]  # type: ignore[attr-defined,index]
    assert heedful("correct", model, "--undo").code == 0
    assert rows(model, *options) == before


def test_a_memory_that_changes_another_output_would_be_noticed(model: Path, monkeypatch: pytest.MonkeyPatch):
    before = rows(model)
    heedful("correct", model, "fed", "x")

    def spread(translations, *rest):  # type: ignore[no-untyped-def]
        return (one if one.source != "abc" else type(one)(one.source, "x", 0.0, 0.0, ()) for one in translations)

    monkeypatch.setattr("heedful.predictors.translator.with_corrections", spread)
    assert rows(model)[0] != before[0]


def test_alignment_is_that_of_the_correction(model: Path):
    heedful("correct", model, "abc", "FED ABC")
    done = heedful("translate", model, "abc", "--align")
    text, _, links = done.out.strip().partition("\t")
    (pair,) = load(model, kind=Translator).align([("abc", "FED ABC")])
    assert (text, links) == ("FED ABC", pair.pharaoh())


def test_the_output_of_a_similar_source_follows_the_correction(model: Path):
    translator = load(model, kind=Translator)
    before = translator.translate(["abcdefabcde", "fed"])
    translator.correct("abcdefabcdef", "FFFFFF")
    after = translator.translate(["abcdefabcde", "fed"])
    assert after[1] == before[1]
    assert after[0].unbiased == before[0].text
    assert set(after[0].text) == {"F"} != set(before[0].text)
    assert after[0].alternatives[0].text == after[0].text
    assert after[0].memory is not None
    assert not after[0].memory.is_exact
    done = heedful("translate", model, "abcdefabcde", "--format", "jsonl")
    facts = json.loads(done.out)
    assert (facts["text"], facts["unbiased"]) == (after[0].text, before[0].text)
    assert done.err == "line 1: near match 87%: abcdefabcdef -> FFFFFF\n"
    assert heedful("translate", model, "abcdefabcde", "--quiet").err == ""
    many = heedful("translate", model, stdin=b"abcdefabcde\n" * 30 + b"abcdefabcdef\n" * 2)
    assert many.err.count("near match 87%") == 20
    assert many.err.endswith("... 2 lines corrected, 30 near matches in all\n")


def test_exact_outputs_of_similar_sources_have_the_same_bits_in_any_company(model: Path):
    translator = load(model, kind=Translator)
    sources = ["abcdefabcde", "fedcbafedcb", "abcdefabcd", "deadbeefdea"]
    for source, correction in (("abcdefabcdef", "FFFAB"), ("fedcbafedcba", "ABE"), ("deadbeefdead", "EDBAFFFAAD")):
        translator.correct(source, correction)
    together = translator.translate(sources, exact=True, attention=True)
    alone = [translator.translate([source], exact=True, attention=True)[0] for source in reversed(sources)]
    assert all(one.unbiased for one in together)
    for one, other in zip(together, reversed(alone), strict=True):
        assert (one.text, one.log_prob, one.score) == (other.text, other.log_prob, other.score)
        assert one.attention is not None
        assert other.attention is not None
        assert one.attention.tobytes() == other.attention.tobytes()


@pytest.mark.parametrize(
    "settings",
    [
        {"constraints": TextConstraints(prefix="A")},
        {"search": SearchConfig(method="sampling", beam=1)},
    ],
    ids=["constraints", "sampling"],
)
def test_a_near_match_is_only_named_where_outputs_are_constrained_or_drawn(model: Path, settings: dict[str, Any]):
    translator = load(model, kind=Translator)
    before = translator.translate(["abcdefabcde"], **settings)[0]
    translator.correct("abcdefabcdef", "FFFFFF")
    after = translator.translate(["abcdefabcde"], **settings)[0]
    assert (after.text, after.unbiased) == (before.text, "")
    assert after.memory is not None


def test_constraints_come_before_corrections(model: Path):
    heedful("correct", model, "fed", "x")
    (row,) = load(model, kind=Translator).translate(["fed"], constraints=TextConstraints(prefix="A"))
    assert row.text.startswith("A")
    assert row.memory is not None


def test_scores_are_those_of_the_model_without_its_corrections(model: Path, trained: Trained):
    before = heedful("evaluate", model, trained.data, "--format", "json")
    for line in trained.data.read_text(encoding="utf-8").split("\n")[:5]:
        heedful("correct", model, *line.split("\t"))
    after = heedful("evaluate", model, trained.data, "--format", "json")
    scores = [
        {key: value for key, value in json.loads(done.out).items() if "second" not in key} for done in (before, after)
    ]
    assert scores[0] == scores[1]


# -------------------------------------------------------------------------------------------- running processes


def test_a_correction_is_in_force_in_an_open_model(model: Path):
    translator = load(model, kind=Translator)
    before = translator.translate([*TEXTS])
    heedful("correct", model, "fed", "x")
    after = translator.translate([*TEXTS])
    assert [one.text for one in after] == [before[0].text, "x", *(one.text for one in before[2:])]
    translator.correct("abc", "y")
    assert translator.translate(["abc"])[0].text == "y"
    assert translator.translate(["abc"], corrected=False)[0].text == before[0].text
    assert next(translator.stream(["abc"], translator.search)).text == before[0].text


def test_a_correction_is_in_force_within_two_seconds_in_a_running_command(model: Path):
    words = [sys.executable, "-m", "heedful", "translate", str(model), "--batch-tokens", "1", "--threads", "1"]
    surroundings = os.environ | {"PYTHONPATH": str(SOURCE)}
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=surroundings) as running:
        assert running.stdin is not None
        assert running.stdout is not None

        def ask() -> tuple[bytes, float]:
            started = time.monotonic()
            running.stdin.write(b"fed\n")  # type: ignore[union-attr]
            running.stdin.flush()  # type: ignore[union-attr]
            return running.stdout.readline(), time.monotonic() - started  # type: ignore[union-attr]

        assert ask()[0] != b"x\n"
        load(model, kind=Translator).correct("fed", "x")
        answer, seconds = ask()
        assert answer == b"x\n"
        assert seconds < 2
        running.stdin.close()
        assert running.wait(30) == 0


# ------------------------------------------------------------------------------------------- list, import, export


def test_list_undo_and_one_source(model: Path):
    for source, correction in (("a", "1\t2"), ("b", "3"), ("a", "4")):
        assert heedful("correct", model, source, correction).code == 0
    listed = [line.split("\t") for line in heedful("correct", model, "--list").out.split("\n")[:-1]]
    assert [row[1:] for row in listed] == [["b", "3"], ["a", "4"]]
    done = heedful("correct", model, "a", "--undo")
    assert (done.code, done.err) == (0, "withdrawn: 'a' -> '4'\n2 corrections in force\n")
    assert heedful("correct", model, "--list", "--quiet").out.endswith("\tb\t3\n")
    assert "no correction of 'zzz' to undo" in refusal(heedful("correct", model, "zzz", "--undo"))


def test_what_clients_stored_never_steers_a_terminal(model: Path):
    steering = "a\x1b[2J\x07\x9b\u202eb"
    assert heedful("correct", model, steering, f"1{steering}").code == 0
    listed = heedful("correct", model, "--list").out
    assert listed.endswith("\ta\\x1b[2J\\x07\\x9b\\u202eb\t1a\\x1b[2J\\x07\\x9b\\u202eb\n")
    assert str(MemoryMatch(steering, "x", 1.0, is_exact=True)) == "corrected: a\\x1b[2J\\x07\\x9b\\u202eb -> x"


@pytest.mark.parametrize("suffix", ["tmx", "tsv"])
def test_what_is_exported_is_imported_again(model: Path, trained: Trained, tmp_path: Path, suffix: str):
    data = write_pairs(tmp_path / "pairs.tsv", 30)
    assert heedful("correct", model, "--import", data).err.startswith("30 corrections imported\n")
    path = tmp_path / f"out.{suffix}"
    assert heedful("correct", model, "--export", path).code == 0
    other = Path(shutil.copytree(trained.model, tmp_path / "other.model"))
    assert heedful("correct", other, "--import", path).code == 0
    exported = [heedful("correct", each, "--export", "-").out for each in (model, other)]
    assert exported[0] == exported[1]
    assert sorted(exported[0].split("\n")) == sorted({*data.read_text(encoding="utf-8").split("\n")})


def memory_of(path: Path, source: str, units: list[dict[str, str]]) -> Path:
    """A translation memory: text by language code of each unit."""
    body = "".join(
        "<tu>" + "".join(f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in unit.items()) + "</tu>\n"
        for unit in units
    )
    path.write_text(f'<tmx version="1.4"><header srclang="{source}"/><body>\n{body}</body></tmx>\n', encoding="utf-8")
    return path


def speak(model: Path, source: str, target: str) -> None:
    """Give a model languages."""
    facts = dict(open_folder(model).facts)
    names = [*facts.pop("files")]
    commit(model, {**facts, "languages": [source, target]}, names)


def corrections_of(model: Path) -> list[list[str]]:
    return [line.split("\t")[1:] for line in heedful("correct", model, "--list").out.split("\n")[:-1]]


@pytest.mark.parametrize("source", ["en", "de", "*all*"])
def test_a_translation_memory_is_read_in_the_languages_of_the_model(model: Path, tmp_path: Path, source: str):
    speak(model, "de", "en")
    units = [
        {"fr": "f", "en-GB": "one", "de-DE": "eins"},
        {"en": "two", "de": "zwei", "de-AT": "zwo"},
        {"en": "three"},
        {"en": "four", "de": " "},
        {"de": "f\u00fcnf", "en": "five"},
    ]
    path = memory_of(tmp_path / "memory.tmx", source, units)
    done = heedful("correct", model, "--import", path)
    assert done.code == 0, done.err
    assert done.err.startswith("3 corrections imported; 2 units without text in both languages left out\n")
    assert corrections_of(model) == [["eins", "one"], ["zwei", "two"], ["f\u00fcnf", "five"]]


def test_languages_of_a_translation_memory_that_are_not_those_of_the_model(model: Path, tmp_path: Path):
    speak(model, "de", "en")
    path = memory_of(tmp_path / "memory.tmx", "en", [{"en": "one", "fr": "un"}, {"en": "two", "de": ""}])
    error = refusal(heedful("correct", model, "--import", path))
    assert f"{path}: no unit has text in both de and en; languages of its units: en, fr" in error
    assert not (model / NAME).exists()
    assert heedful("correct", model, "--import", path, "--columns", "fr,en").code == 0
    assert corrections_of(model) == [["un", "one"]]


def test_a_translation_memory_of_unknown_languages_is_read_in_its_order(model: Path, tmp_path: Path):
    speak(model, "de", "en")
    path = memory_of(tmp_path / "memory.tmx", "source", [{"source": "eins", "target": "one"}])
    assert heedful("correct", model, "--import", path).code == 0
    assert corrections_of(model) == [["eins", "one"]]


def test_training_goes_on_from_exported_corrections(model: Path, tmp_path: Path):
    heedful("correct", model, "--import", write_pairs(tmp_path / "pairs.tsv", 30, seed=7))
    assert heedful("correct", model, "--export", tmp_path / "new.tsv").code == 0
    done = heedful(
        *("train", tmp_path / "new.tsv", "--from", model, "--out", tmp_path / "new.model"),
        *("--set", "training.max_steps=2", "--set", "training.validate_every=2", "--set", "training.export=false"),
    )
    assert done.code == 0, done.err


def test_the_first_pronunciation_of_a_lexicon_counts(model: Path, tmp_path: Path):
    lexicon = tmp_path / "words.dict"
    lexicon.write_text("abc  K AH0\nabc(2)  K EH1\ndef  D IY1\nabc(3)  K IY1\n", encoding="utf-8")
    done = heedful("correct", model, "--import", lexicon)
    assert "2 corrections imported" in done.out + done.err
    assert heedful("translate", model, "abc", "def").out.splitlines() == ["K AH0", "D IY1"]


def test_an_import_is_whole_or_not_at_all(model: Path, tmp_path: Path):
    (tmp_path / "pairs.tsv").write_bytes(b"a\tb\n\nc\t\n")
    assert f"{tmp_path / 'pairs.tsv'}:3: a side is blank" in refusal(
        heedful("correct", model, "--import", tmp_path / "pairs.tsv")
    )
    assert not (model / NAME).exists()
    done = heedful("correct", model, "--import", "-", stdin=b"a\tb\n\nc\td\n")
    assert done.err == "2 corrections imported\n2 corrections in force\n"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "expected a source and its correction, or one of"),
        (("a",), "expected a source and its correction, or one of"),
        (("a", "b", "c"), "expected a source and its correction, or one of"),
        (("a", "b", "--undo"), "expected no text or a source"),
        (("a", "--list"), "expected a source and its correction"),
        (("--list", "--columns", "2,1"), "give it by --import"),
        (("--list", "--undo"), "or one of"),
        (("", "b"), "source is blank"),
        (("a", " "), "correction is blank"),
        (("a\nb", "c"), "line feed"),
        (("--export", "x.csv"), "ends in .tmx or .tsv"),
        (("--export", "x.tmx"), "no correction is in force"),
        (("--import", "none.tmx"), "none.tmx"),
    ],
)
def test_what_is_no_correction_is_refused(model: Path, words: tuple[str, ...], complaint: str):
    assert complaint in refusal(heedful("correct", model, *words))
    assert not (model / NAME).exists()


def test_a_damaged_line_is_told_once_and_costs_nothing_else(model: Path):
    for source in ("a", "b"):
        heedful("correct", model, source, source * 3)
    content = (model / NAME).read_bytes()
    (model / NAME).write_bytes(content[:-9])
    done = heedful("translate", model, "a", "b", "--quiet")
    assert done.out.split("\n")[0] == "aaa"
    assert done.err.count("corrections.jsonl:2: damaged; left out") == 1
    assert heedful("correct", model, "b", "c").code == 0
    assert heedful("translate", model, "a", "b", "--quiet").out == "aaa\nc\n"


def test_a_folder_that_cannot_be_written_is_named(model: Path):
    (model / NAME).mkdir()
    assert "a folder, not a file" in refusal(heedful("correct", model, "a", "b"), 3)


def test_models_of_other_tasks_are_refused(tmp_path: Path):
    assert "no such model" in refusal(heedful("correct", tmp_path / "none", "a", "b"))
