"""A Marian folder of others in JavaScript: imported, exported, and its outputs those of Python."""

from pathlib import Path

import pytest

from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from tests.cli.command import heedful
from tests.export.marian_folder import write_folder
from tests.js.node import Run, answers, needs_node
from tests.thorough import thorough

pytestmark = needs_node
TEXTS = ["a b", "ab d c", "", ">>x<< b c", "B\u3000a", "a \u2168 b", "dabcab"]


@thorough
def test_an_imported_folder_translates_in_javascript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    write_folder(tmp_path / "opus")
    assert heedful("import", "opus").code == 0
    done = heedful("export", "opus.model", "--to", "js", "--weights", "float32")
    assert done.code == 0, done.err
    translator = load(tmp_path / "opus.model", kind=Translator)
    paragraphs = ["a b 12, {x} c. B\n- ab https://example.org/d", "A B <b>C</b> \U0001f436", "AB", *TEXTS]
    found = answers(Run(tmp_path / "opus.tgz", [["text", text, {"beam": 4}] for text in paragraphs]))
    expected = translator.translate(paragraphs, corrected=False, beam=4)
    assert [one["text"] for one in found] == [one.text for one in expected]
    for beam in (1, 4):
        expected = translator.translate(TEXTS, segments=None, corrected=False, beam=beam, nbest=beam)
        (found,) = answers(Run(tmp_path / "opus.tgz", [["translate", TEXTS, {"beam": beam, "nbest": beam}]]))
        assert [[one["text"] for one in each["alternatives"]] for each in found] == [
            [one.text for one in each.alternatives] for each in expected
        ]
