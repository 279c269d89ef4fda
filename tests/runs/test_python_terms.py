"""Messages of `heedful.train`: they name arguments, settings and rows, not options and lines of files."""

import pytest

import heedful
from heedful.errors import DataError, UsageError
from heedful.runs.python_terms import in_python


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("m: not empty; choose another --out{way}", "m: not empty; choose another out={way}"),
        ("give validation pairs: --dev FILE", "give validation pairs: dev=..."),
        ("and others with --dev and --test", "and others with dev= and test="),
        ("name both with --columns TEXT,LABEL; or 3", 'name both with columns=("TEXT", "LABEL"); or 3'),
        ("with --columns, such as 2,3 or --columns 2,1", "with columns=, such as 2,3 or columns=(2, 1)"),
        (
            "to learn them: heedful train --task classification",
            'to learn them: heedful.train(..., task="classification")',
        ),
        ("--preset hug: no such preset", 'preset="hug": no such preset'),
        ("otherwise: --preset NAME; see: heedful list presets", "otherwise: preset=...; see: heedful list presets"),
        ("give --from MODEL, or train without --from", "give origin=..., or train without origin="),
        ("for numbers --set text.labels=number", 'for numbers settings={"text.labels": "number"}'),
        ("--set a.b=0.5 --set c=true", 'settings={"a.b": 0.5, "c": True}'),
        ("stopped; run the same command to continue", "stopped; make the same call to continue"),
        ("the same command with a larger limit continues", "the same call with a larger limit continues"),
        ("use --engine torch", "use --engine torch"),
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
