"""Messages of `heedful.train`: they name arguments, settings and rows, not options and lines of files."""

from pathlib import Path
from typing import Any

import pytest

import heedful
from heedful.errors import DataError, UsageError
from heedful.runs.python_terms import in_python


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("m: not empty; choose another --out{way}", "m: not empty; choose another out{way}"),
        ("give validation pairs: --dev FILE", "give validation pairs: dev=..."),
        ("and others with --dev and --test", "and others with dev and test"),
        ("name both with --columns TEXT,LABEL; or 3", 'name both with columns=("TEXT", "LABEL"); or 3'),
        ("with --columns, such as 2,3 or --columns 2,1", "with columns, such as 2,3 or columns=(2, 1)"),
        (
            "to learn them: heedful train --task classification",
            'to learn them: heedful.train(..., task="classification")',
        ),
        ("--preset hug: no such preset", 'preset="hug": no such preset'),
        ("otherwise: --preset NAME; see: heedful list presets", "otherwise: preset=...; see: heedful list presets"),
        ("give --from MODEL, or train without --from", "give origin=..., or train without origin"),
        ("for numbers --set text.labels=number", 'for numbers settings={"text.labels": "number"}'),
        ("--set a.b=0.5 --set c=true", 'settings={"a.b": 0.5, "c": True}'),
        ("stopped; run the same command to continue", "stopped; make the same call to continue"),
        ("the same command with a larger limit continues", "the same call with a larger limit continues"),
        ("use --engine torch", "use --engine torch"),
        ("a larger --minutes continues", "a larger minutes continues"),
        ("a larger --minutes 20 continues", "a larger minutes=20 continues"),
        ("use --dev a.tsv, or --out /tmp/b.model: a folder", 'use dev="a.tsv", or out="/tmp/b.model": a folder'),
        ("or --from-scratch, --out-of-it, x--out and a/--dev", "or --from-scratch, --out-of-it, x--out and a/--dev"),
        ("set --set model.dropout=0.1.", 'set settings={"model.dropout": 0.1}.'),
        ("name --columns text,label.", 'name columns=("text", "label").'),
        (
            "'use --out now, the same command' -> \"don't --set a=b\"; --out",
            "'use --out now, the same command' -> \"don't --set a=b\"; out",
        ),
        (r"'it\'s \"--out\"', the users' --dev, 'b'", r"'it\'s \"--out\"', the users' dev, 'b'"),
    ],
)
def test_options_are_arguments(message: str, expected: str):
    assert in_python(message) == expected


def test_errors_of_a_training_speak_of_its_arguments():
    rows = [(f"number {number}", f"nombre {number}") for number in range(20)]
    with pytest.raises(UsageError, match=r"^task=\"translatoin\": "):
        heedful.train(rows, task="translatoin")
    with pytest.raises(DataError, match=r"^train: row 0: no key 'fr'; known: 'en', 'de'$|^train: row 0: no key 'fr'"):
        heedful.train([{"en": source, "de": target} for source, target in rows], columns=("en", "fr"), quiet=True)


def test_languages_are_two():
    rows: list[Any] = [("one", "un"), ("two", "deux"), ("three", "trois")]
    languages: Any
    for languages in (("x",), ("x", "y", "z"), "de", ()):
        with pytest.raises(UsageError, match=r"^train: languages .*: give those of source and target, such as [^\n]*$"):
            heedful.train(rows, languages=languages)


def test_texts_and_files_of_the_user_stay_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    rows = [{"de": f"see line {number} --out, the same command", "en": f"voir (line {number})"} for number in range(20)]
    dev = tmp_path / "dev.tsv"
    dev.write_text("de\ten\n" + "".join(f"use --dev line {number}\tb\n" for number in range(5)) + "\tx\n", "utf-8")
    settings = {"training.max_steps": 2, "training.export": False}
    columns = ("de", "en")
    model = heedful.train(
        rows, dev=dev, columns=columns, out=tmp_path / "m", preset="tiny", settings=settings, device="cpu"
    )
    said = capsys.readouterr().out
    history = model.folder.path.joinpath("run/history.jsonl").read_text("utf-8")
    for text in (said, history):
        assert "'see line 0 --out, the same command' -> 'voir (line 0)'" in text
        assert "row -1" not in text
    assert f"{dev}:7: " in said
    assert "  source     use --dev line " in said
