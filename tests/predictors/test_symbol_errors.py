"""Errors of models that write single words, by symbols."""

import json
from collections import Counter
from pathlib import Path

import pytest

from heedful.data.prepare import EvaluationSet
from heedful.evaluation.symbol_alignment import symbol_division
from heedful.pages.symbol_errors import MOST_PAIRS, MOST_SYMBOLS, SymbolErrorPage
from heedful.predictors.symbol_errors import MOST_WRONG, symbol_errors
from tests.cli.command import heedful

REFERENCES = [["k a t s"], ["d ɔ ɡ", "d o ɡ z"], ["<b> i"], ["s i"], ["f ɪ ʃ"]]
OUTPUTS = ["k a d s", "d o ɡ", "<b> i <i>", "", "f ɪ ʃ"]


def page(outputs: list[str] = OUTPUTS) -> SymbolErrorPage:
    items = EvaluationSet(["cats", "dog", "<bee>", "sea", "fish"], REFERENCES)
    divide = symbol_division([text for texts in REFERENCES for text in texts])
    assert divide is not None
    return symbol_errors("m", items, outputs, [0.9, 0.8, 0.7, 0.6, 0.5], divide)


def test_errors_are_counted_beside_the_closest_reference():
    found = page()
    assert (found.num_words, found.num_right) == (5, 1)
    # Of references with equally many errors the shorter one counts, as in the error rates.
    assert found.errors == Counter({("t", "d"): 1, ("ɔ", "o"): 1, ("", "<i>"): 1, ("s", ""): 1, ("i", ""): 1})
    assert found.symbols.total() == 4 + 3 + 2 + 2 + 3
    assert [one.source for one in found.confident] == ["cats", "dog", "<bee>", "sea"]
    assert [(one.source, one.num_wrong) for one in found.worst] == [("sea", 2)]
    assert (found.confident[1].side(0), found.confident[1].side(1)) == ("d ɔ ɡ", "d o ɡ")
    assert sum(one.num_texts for one in found.by_length) == 5


def test_the_page_shows_both_sides_and_is_safe():
    html = page().to_html()
    assert "1 of 5 words are right: 20.00 %" in html
    assert "Of 14 symbols of the references 2 are replaced and 2 missing, and 1 are too many: 35.71 % errors" in html
    assert "<title>t → d: 1</title>" in html
    assert "k a <b><u>d</u></b> s" in html
    assert "<b><u>∅</u></b> <b><u>∅</u></b>" in html  # nothing was written
    assert "&lt;b&gt; i <b><u>&lt;i&gt;</u></b>" in html
    assert "<bee>" not in html


def test_the_facts_are_those_of_the_page():
    facts = page().to_dict()
    counts = {"num_words": 5, "num_right": 1, "num_symbols": 14, "num_replaced": 2, "num_missing": 2, "num_added": 1}
    assert counts.items() <= facts.items()
    by_pair = {(one["reference"], one["output"]): one for one in facts["confusions"]}
    assert by_pair["ɔ", "o"] == {"reference": "ɔ", "output": "o", "count": 1, "share": 1.0, "words": ["dog"]}
    assert by_pair["i", ""]["share"] == 1 / 2
    assert by_pair["", "<i>"]["share"] is None
    json.dumps(facts)


def test_a_perfect_model_has_no_errors_and_many_errors_are_cut():
    assert "Confused" not in page([texts[0] for texts in REFERENCES]).to_html()
    letters = [chr(0x3B1 + number) for number in range(24)]
    references = [f"{one} {other}" for one in letters for other in letters if one != other]
    items = EvaluationSet([f"w{number}" for number in range(len(references))], [[text] for text in references])
    outputs = [" ".join(reversed(text.split())) for text in references]
    found = symbol_errors("m", items, outputs, [0.5] * len(outputs), str.split)
    assert (len(found.confident), len(found.worst)) == (MOST_WRONG, MOST_WRONG)
    html = found.to_html()
    assert f"These are the {MOST_SYMBOLS} symbols with most errors" in html
    assert html.count('class="name"') == 2 * (MOST_SYMBOLS + 1)
    assert html.count("</td></tr>") <= MOST_PAIRS + 2 * MOST_WRONG + len(found.by_length)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Model from words to their letters apart, hardly trained, and its data."""
    folder = tmp_path_factory.mktemp("letters")
    data, out = folder / "pairs.tsv", folder / "m"
    words = [a + b + c for a in "abcd" for b in "eiou" for c in "klmn"]
    data.write_text("".join(f"{word}\t{' '.join(word.upper())}\n" for word in words), encoding="utf-8")
    sizes = "--set", "model.hidden_size=8", "--set", "model.embedding_size=8", "--set", "training.export=false"
    done = heedful("train", data, "--preset", "rnnsearch", "--out", out, "--set", "training.max_steps=3", *sizes)
    assert done.code == 0, done.err
    return out, data


def test_the_command_writes_the_page_and_the_facts(model: tuple[Path, Path], tmp_path: Path):
    out, data = model
    html = tmp_path / "errors.html"
    done = heedful("evaluate", out, data, "--limit", "20", "--html", html, "--format", "json")
    assert done.code == 0, done.err
    facts = json.loads(done.out)["symbols"]
    assert (facts["num_words"], facts["num_symbols"]) == (20, 60)
    assert f"{facts['num_right']} of 20 words are right" in html.read_text(encoding="utf-8")
    refused = heedful("evaluate", out, data, "--html", tmp_path)
    assert (refused.code, len(refused.errors)) == (2, 1)


def test_sentences_are_refused_before_they_are_translated(model: tuple[Path, Path], tmp_path: Path):
    data = tmp_path / "sentences.tsv"
    data.write_text("abc\tthis reference is a whole sentence\n", encoding="utf-8")
    done = heedful("evaluate", model[0], data, "--html", tmp_path / "errors.html")
    assert (done.code, len(done.errors)) == (2, 1)
    assert "the references are no single words" in done.err
    assert not (tmp_path / "errors.html").exists()
    done = heedful("evaluate", model[0], data, "--format", "json")
    assert "symbols" not in json.loads(done.out)
