"""`--terms`: outputs contain the target forms of their terms, and no other output changes."""

import json
from pathlib import Path

import pytest

from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.runtime.text_constraints import TextConstraints
from heedful.text.terms import Terms
from tests.cli.command import heedful
from tests.cli.conftest import Trained


@pytest.fixture
def terms(tmp_path: Path) -> Path:
    path = tmp_path / "terms.tsv"
    path.write_bytes(b"abc\tFFF\nfed\tCAB\n")
    return path


def test_each_output_contains_the_forms_of_its_own_terms(trained: Trained, terms: Path):
    texts = ("ABC", "fed", "deadbeef", "", "bade")
    plain = heedful("translate", trained.model, *texts).out.split("\n")
    bound = heedful("translate", trained.model, "--terms", terms, *texts)
    assert bound.code == 0, bound.err
    outputs = bound.out.split("\n")
    assert "FFF" in outputs[0]
    assert "CAB" in outputs[1]
    assert "CAB" not in outputs[0]
    assert outputs[2:] == plain[2:]


def test_other_constraints_hold_beside_them(trained: Trained, terms: Path):
    done = heedful("translate", trained.model, "--terms", terms, "--prefix", "D", "fed")
    assert done.out.startswith("D")
    assert "CAB" in done.out
    done = heedful("translate", trained.model, "--terms", terms, "--ban", "CA", "fed")
    assert (done.code, len(done.errors)) == (2, 1)
    assert "'CAB' contains 'CA', which is banned" in done.err


def test_a_form_that_the_vocabulary_lacks_is_refused(trained: Trained, tmp_path: Path):
    (tmp_path / "terms.tsv").write_bytes("abc\t\u4f60\n".encode())
    done = heedful("translate", trained.model, "--terms", tmp_path / "terms.tsv", "abc")
    assert (done.code, done.out, len(done.errors)) == (2, "", 1)
    assert "target form of a term '\u4f60': the model's vocabulary has no token" in done.err


def test_evaluate_counts_the_terms_that_are_used(trained: Trained, terms: Path, tmp_path: Path):
    (tmp_path / "test.tsv").write_bytes(b"abc\tABC\nfed\tFED\nbad\tBAD\n")
    plain = heedful("evaluate", trained.model, tmp_path / "test.tsv", "--format", "json")
    assert "terms" not in json.loads(plain.out)
    done = heedful("evaluate", trained.model, tmp_path / "test.tsv", "--terms", terms, "--format", "json")
    assert json.loads(done.out)["terms"]["num_terms"] == 2
    text = heedful("evaluate", trained.model, tmp_path / "test.tsv", "--terms", terms)
    assert "\nterms: 2 in the sources, " in text.out
    done = heedful("evaluate", trained.model, tmp_path / "test.tsv", "--terms", terms, "--record")
    assert "leave out --ensemble and --terms" in done.err


def test_terms_are_constraints_of_their_sources_alone(trained: Trained, terms: Path):
    translator = load(trained.model, kind=Translator)
    wording = TextConstraints(terms=Terms.read(terms))
    assert "CAB" in translator.translate(["fed"], wording=wording)[0].text
    constraints = wording.of_sources(translator.target_tokenizer)
    assert constraints.general.is_free
    assert len(constraints.strictest.required) == 2
    assert [len(constraints.of(text, 0).required) for text in ("abc fed", "abc", "bad")] == [2, 1, 0]
