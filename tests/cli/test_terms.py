"""`--terms`: outputs contain the target forms of their terms, and no other output changes."""

import json
import shutil
from pathlib import Path

import pytest

from heedful.cli.messages import Messages
from heedful.cli.scoring import announce_engine
from heedful.engines.text_constraints import TextConstraints
from heedful.errors import UsageError
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.text.term_files import read_terms
from heedful.text.terms import Term, Terms
from tests.cli.command import heedful
from tests.cli.conftest import Trained
from tests.engines.test_engine import Spy
from tests.seal import write_sealed


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
    (tmp_path / "terms.tsv").write_bytes("# forms\nfed\tFED\nabc\t\u4f60\n".encode())
    done = heedful("translate", trained.model, "--terms", tmp_path / "terms.tsv", "abc")
    assert (done.code, done.out, len(done.errors)) == (2, "", 1)
    wanted = f"{tmp_path / 'terms.tsv'}:3: target form '\u4f60': the model's vocabulary has no token for part of it"
    assert wanted in done.err
    assert done.err.endswith("; write it in other words, or leave it out\n")


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
    constraints = TextConstraints(terms=read_terms(terms))
    assert "CAB" in translator.translate(["fed"], constraints=constraints)[0].text
    constraints = constraints.of_sources(translator.target_tokenizer)
    assert constraints.general.is_free
    assert len(constraints.strictest.required) == 2
    assert [len(constraints.of(text, 0).required) for text in ("abc fed", "abc", "bad")] == [2, 1, 0]


BASE = """<tbx><conceptEntry><langSec xml:lang="{}"><termSec><term>abc</term></termSec></langSec>
<langSec xml:lang="en"><termSec><term>FFF</term></termSec></langSec></conceptEntry></tbx>"""


def test_terms_of_a_base_need_its_languages(trained: Trained, tmp_path: Path):
    path = tmp_path / "terms.tbx"
    path.write_text(BASE.format("de"), encoding="utf-8")
    done = heedful("translate", trained.model, "--terms", path, "--term-languages", "de:en", "abc")
    assert (done.code, "FFF" in done.out) == (0, True), done.err
    done = heedful("translate", trained.model, "--terms", path, "abc")
    assert (done.code, done.out, len(done.errors)) == (2, "", 1)
    assert "add --term-languages, such as de:en" in done.err
    done = heedful("translate", trained.model, "--terms", path, "--term-languages", "de", "abc")
    assert "--term-languages 'de': expected two codes" in done.err
    done = heedful("translate", trained.model, "--term-languages", "de:en", "abc")
    assert "--term-languages is about a term base; give a .tbx file by --terms" in done.err


def test_languages_of_a_base_are_those_of_the_model(trained: Trained, tmp_path: Path):
    model = tmp_path / "named.model"
    shutil.copytree(trained.model, model)
    facts = json.loads((model / "heedful.json").read_text(encoding="utf-8"))
    write_sealed(model / "heedful.json", facts | {"languages": ["nl", "en"]})
    (tmp_path / "terms.tbx").write_text(BASE.format("nl-BE"), encoding="utf-8")
    done = heedful("translate", model, "--terms", tmp_path / "terms.tbx", "abc")
    assert (done.code, "FFF" in done.out) == (0, True), done.err


def test_terms_that_a_search_cannot_bind_are_refused_before_the_first_line(trained: Trained, terms: Path):
    done = heedful("translate", trained.model, "--terms", terms, "--sample", stdin=b"bad\nabc\n")
    assert (done.code, done.out, len(done.errors)) == (2, "", 1)
    assert "--terms, --require: sampling cannot guarantee a phrase" in done.err


def test_terms_that_an_engine_cannot_bind_are_refused_before_the_first_line(trained: Trained, tmp_path: Path):
    translator = load(trained.model, kind=Translator)
    vars(translator.backends)["searching"] = lambda *_: Spy()
    constraints = TextConstraints(terms=Terms((Term("abc", "FFF"),))).of_sources(translator.target_tokenizer)
    with pytest.raises(UsageError, match=r"--terms, .*: prefixes and phrases are not supported here, by spy"):
        announce_engine(translator, translator.search, False, Messages(True), constraints.strictest)
