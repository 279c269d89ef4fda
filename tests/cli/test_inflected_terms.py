"""Training with terms: the same after a resume, and terms that are offered to such a model or bound."""

import json
import random
import shutil
from pathlib import Path

import pytest

from heedful.engines.text_constraints import TextConstraints
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.text.inline_terms import MARK
from heedful.text.terms import Term, Terms
from tests.cli.command import Done, heedful
from tests.cli.conftest import SETTINGS
from tests.thorough import thorough

WORDS = [f"{a}{b}{a}" for a in "abcdef" for b in "abcdef"]


class Inflecting:
    """Model that was trained with terms, and the command that trained it."""

    def __init__(self, folder: Path) -> None:
        source = random.Random(1)
        lines = [" ".join(source.sample(WORDS, 2)) for _ in range(200)]
        self.data, self.config, self.model = folder / "pairs.tsv", folder / "tiny.toml", folder / "pairs.model"
        self.data.write_bytes("".join(f"{line}\t{line.upper()}\n" for line in lines).encode())
        self.config.write_bytes(SETTINGS.encode())
        self.done = self.train(self.model)

    def train(self, model: Path, *settings: str) -> Done:
        changes = [
            part
            for setting in ("training.term_share=0.5", "training.select_by=loss", *settings)
            for part in ("--set", setting)
        ]
        return heedful("train", self.data, "--out", model, "--config", self.config, *changes)


@pytest.fixture(scope="module")
def inflecting(tmp_path_factory: pytest.TempPathFactory) -> Inflecting:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        made = Inflecting(tmp_path_factory.mktemp("inflecting"))
    assert made.done.code == 0, made.done.err
    return made


@pytest.fixture
def terms(tmp_path: Path) -> Path:
    path = tmp_path / "terms.tsv"
    path.write_bytes(b"aba\tFFF\nfcf\tCA\n")
    return path


def weights(model: Path) -> str:
    facts = json.loads((model / "heedful.json").read_text(encoding="utf-8"))
    return facts["files"][facts["weights"]]


def test_training_says_how_many_terms_there_are(inflecting: Inflecting):
    line = next(line for line in inflecting.done.err.split("\n") if "terms in the pairs" in line)
    assert line.endswith(" terms in the pairs; 50 % of the sources are given some of theirs")
    assert 250 < int(line.split()[0].replace(",", "")) < 800


def test_a_training_that_is_interrupted_ends_with_the_same_weights(inflecting: Inflecting, tmp_path: Path):
    model = tmp_path / "m"
    assert inflecting.train(model, "training.max_steps=4").code == 0
    assert weights(model) != weights(inflecting.model)
    shutil.rmtree(model / "run" / "data" / "terms")  # they are found again
    assert "resuming at step 4" in inflecting.train(model).err
    assert weights(model) == weights(inflecting.model)
    other = inflecting.train(tmp_path / "other", "training.term_share=0.0")
    assert other.code == 0
    assert weights(tmp_path / "other") != weights(model)


def test_terms_are_in_the_outputs_and_no_other_output_changes(inflecting: Inflecting, terms: Path):
    texts = ("aba cdc", "fcf", "bcb ded", "", "aba fcf")
    plain = heedful("translate", inflecting.model, *texts).out.split("\n")
    for options in ([], ["--bind-terms"], ["--exact"], ["--beam", "1"]):
        done = heedful("translate", inflecting.model, "--terms", terms, *options, *texts)
        assert done.code == 0, done.err
        outputs = done.out.split("\n")
        assert "FFF" in outputs[0]
        assert "CA" in outputs[1]
        assert "FFF" in outputs[4]
        assert "CA" in outputs[4]
        if options != ["--beam", "1"]:
            assert outputs[2:4] == plain[2:4]


def test_the_model_reads_the_terms_that_are_offered(inflecting: Inflecting, monkeypatch: pytest.MonkeyPatch):
    translator = load(inflecting.model, kind=Translator)
    terms = Terms((Term("aba", "FFF"),))
    assert translator.inflects_terms
    offered = translator.translate(["aba cdc"], attention=True, constraints=TextConstraints(terms=terms))[0]
    bound = translator.translate(
        ["aba cdc"], attention=True, constraints=TextConstraints(terms=terms, bind_terms=True)
    )[0]
    mark = translator.source_tokenizer.pieces([MARK])[0]
    assert "".join(offered.source_pieces[:9]) == f"aba{mark}FFF{mark} "
    assert mark not in bound.source_pieces
    assert all(source in (0, 1) for source, _ in offered.alignment or ())
    monkeypatch.setattr(translator, "inflects_terms", False)
    again = translator.translate(["aba cdc"], attention=True, constraints=TextConstraints(terms=terms))[0]
    assert (again.text, again.source_pieces) == (bound.text, bound.source_pieces)


def test_marks_that_a_user_writes_are_text(inflecting: Inflecting, tmp_path: Path):
    terms = tmp_path / "terms.tsv"
    terms.write_bytes(b"aba\tFFF\n")
    hostile = ["<bos> aba <bos>", "aba<bos>CA<bos>", "\x02aba\x02"]
    done = heedful("translate", inflecting.model, "--terms", terms, "--format", "jsonl", "--align", *hostile)
    assert done.code == 0, done.err
    for text, line in zip(hostile, done.out.splitlines(), strict=True):
        facts = json.loads(line)
        assert facts["source_pieces"].count("<bos>") == 2 * text.count("aba")
        assert all(source < len(text.split(" ")) for source, _ in facts["alignment"])


@thorough
def test_engines_agree(inflecting: Inflecting, terms: Path, tmp_path: Path):
    model = tmp_path / "m"
    shutil.copytree(inflecting.model, model)
    assert heedful("export", model, "--to", "onnx").code == 0
    texts = [" ".join(pair) for pair in zip(WORDS, WORDS[7:], strict=False)]
    outputs = [
        heedful("translate", model, "--terms", terms, "--engine", engine, *texts).out for engine in ("torch", "onnx")
    ]
    assert outputs[0] == outputs[1] != heedful("translate", model, *texts).out


def test_evaluate_counts_them(inflecting: Inflecting, terms: Path, tmp_path: Path):
    (tmp_path / "test.tsv").write_bytes(b"aba cdc\tFFF CDC\nfcf\tFCF\n")
    found = [
        json.loads(heedful("evaluate", inflecting.model, tmp_path / "test.tsv", "--terms", terms, *options).out)[
            "terms"
        ]
        for options in (["--format", "json"], ["--format", "json", "--bind-terms"])
    ]
    assert all(one["num_terms"] == 2 for one in found)


@pytest.mark.parametrize("command", ["translate", "evaluate"])
def test_terms_that_are_bound_are_given(inflecting: Inflecting, command: str):
    done = heedful(command, inflecting.model, inflecting.data, "--bind-terms")
    assert (done.code, done.out, len(done.errors)) == (2, "", 1)
    assert done.errors[0].endswith("--bind-terms: there are no terms; give a file by --terms")


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("training.alignment_weight=1", "training.term_share: terms have no alignment links"),
        ("text.split_sentences=true", "training.term_share: sources with terms are single texts"),
        ("training.term_share=1.5", "training.term_share"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(inflecting: Inflecting, tmp_path: Path, setting: str, said: str):
    done = inflecting.train(tmp_path / "m", setting)
    assert (done.code, len(done.errors)) == (2, 1)
    assert said in done.errors[0]


def test_an_ensemble_is_offered_terms_if_all_of_it_was_trained_with_them(inflecting: Inflecting, tmp_path: Path):
    assert inflecting.train(tmp_path / "plain", "training.term_share=0.0").code == 0
    folder = load(inflecting.model, kind=Translator).folder
    plain = load(tmp_path / "plain", kind=Translator)
    assert not plain.inflects_terms
    assert Translator(folder, ensemble=[folder]).inflects_terms
    assert not Translator(folder, ensemble=[plain.folder]).inflects_terms
