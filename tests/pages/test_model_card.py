"""Model cards: metadata that a hub reads, scores where they are stored, and no more than the folder says."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from heedful.data.encoded import write_encoded
from heedful.errors import FileRefused
from heedful.pages.card_use import Form
from heedful.pages.model_card import card_license, model_card, own_card
from heedful.pages.record import EVALUATION

FACTS: dict[str, Any] = {"task": "translation", "kind": "transformer", "languages": ["de", "en"], "heedful": "0.9.0"}


def metadata(card: str) -> dict[str, Any]:
    begin, head, _ = card.split("---\n", 2)
    assert begin == ""
    return {key: json.loads(value) for key, _, value in (line.partition(": ") for line in head.splitlines())}


def test_a_card_says_task_languages_and_kind(tmp_path: Path):
    card = model_card(tmp_path / "de-en.model", FACTS, "heedful", "de-en")
    expected = {"library_name": "heedful", "pipeline_tag": "translation", "language": ["de", "en"]}
    assert metadata(card) == {**expected, "tags": ["heedful", "transformer"]}
    assert "# de-en\n\nA model for translation, de to en (transformer), trained with heedful 0.9.0.\n" in card
    assert "## Scores" not in card


def test_unknown_languages_are_left_out_and_a_hostile_name_stays_text(tmp_path: Path):
    facts = {"task": "classification", "kind": 'x"\n---\n', "languages": ["source", "target"]}
    card = model_card(tmp_path / "m.model", facts, "heedful", "m")
    assert metadata(card)["tags"] == ["heedful", 'x"\n---\n']
    assert "language" not in metadata(card)
    assert metadata(card)["pipeline_tag"] == "text-classification"


def test_stored_scores_are_in_the_metadata_and_in_a_table(tmp_path: Path):
    result = {"metric": "bleu", "name": "BLEU", "unit": "", "score": 41.634, "low": 40.0, "high": 43.0, "by_length": []}
    result["signature"] = "case:lc|version:2"
    record = {"format": 1, "weights": "m.safetensors", "results": [result], "worst": [], "num_items": 9}
    (tmp_path / "run").mkdir()
    (tmp_path / EVALUATION).write_text(json.dumps(record), encoding="utf-8")
    card = model_card(tmp_path, FACTS | {"weights": "m.safetensors"}, "transformers", "m")
    (model,) = metadata(card)["model-index"]
    arguments = {"signature": "case:lc|version:2"}
    assert model["results"][0]["metrics"] == [{"type": "bleu", "name": "BLEU", "value": 41.634, "args": arguments}]
    assert model["results"][0]["dataset"]["name"] == "test set of its makers, 9 items"
    assert "| BLEU | 41.6 | 40.0 to 43.0 | `case:lc\\|version:2` |" in card
    assert limits(card)[-1] == (
        "- Its scores, such as BLEU 41.6, are those on one set of texts: the test set of its makers, 9 items."
    )
    assert "## Scores" not in model_card(tmp_path, FACTS | {"weights": "other"}, "transformers", "m")


def test_a_card_names_the_licence_that_is_given_or_that_of_the_model(tmp_path: Path):
    card = model_card(tmp_path, FACTS | {"license": "mit"}, "heedful", "m")
    assert (metadata(card)["license"], card_license(card)) == ("mit", "mit")
    assert card.endswith("## Licence\n\nmit\n")
    named = model_card(tmp_path, FACTS | {"license": "mit"}, "heedful", "m", "cc-by-4.0")
    assert card_license(named) == "cc-by-4.0"
    unnamed = model_card(tmp_path, FACTS, "heedful", "m")
    assert "license" not in metadata(unnamed)
    assert "ask them" in unnamed


FORMS: dict[Form, tuple[str, ...]] = {
    "heedful": ("python", "heedful export MODEL --to js", "In C++ and other languages"),
    "heedful.js": ("javascript", "For Python, ask its makers", "for C++"),
    "transformers": ("python", "--to transformers.js", "for C++"),
    "transformers.js": ("javascript", "For Python, `heedful export MODEL --to huggingface", "for C++"),
    "onnx": ("python", "In C++", "docs/engines.md", "`source.json` and `target.json`"),
    "ctranslate2": ("python", "```cpp", "#include <ctranslate2/translator.h>", "`source.json` and `target.json`"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_card_says_how_its_form_runs_in_each_language(form: Form, tmp_path: Path):
    tokenizers = {"source_tokenizer": "source.json", "target_tokenizer": "target.json"}
    card = model_card(tmp_path, FACTS | tokenizers, form, f'a"b/engines/{form}')
    use = card.split("## Use\n")[1].split("\n## ")[0]
    assert metadata(card)["library_name"] == form
    for words in FORMS[form]:
        assert words in use, words
    for language in re.findall("^```([a-z]+)$", use, re.MULTILINE):
        for block in re.findall(f"^```{language}\n(.*?)^```$", use, re.MULTILINE | re.DOTALL):
            if language == "python":
                compile(block, form, "exec")  # a name with a quotation mark stays a name


@pytest.mark.parametrize("task", ["classification", "captioning", "answering", "other"])
def test_a_card_calls_what_its_task_has(task: str, tmp_path: Path):
    calls = {"classification": "classify(", "captioning": "caption(", "answering": "answer("}
    for form in ("heedful", "heedful.js"):
        assert calls.get(task, "load(") in model_card(tmp_path, {"task": task}, form, "m")


def limits(card: str) -> list[str]:
    return card.split("## Limits\n\n")[1].split("\n\n")[0].split("\n")


def test_limits_are_what_the_folder_knows(tmp_path: Path):
    assert limits(model_card(tmp_path, FACTS, "heedful", "m")) == [
        "- It reads de and writes en; texts in other languages give nonsense.",
        "- Texts unlike its training data give worse outputs: try it on your own first.",
        "- No score on a test set is known.",
    ]
    (tmp_path / "run/data").mkdir(parents=True)
    (tmp_path / "config.toml").write_text('[text]\nsource_units = "pieces"\nmax_tokens = 77\n', encoding="utf-8")
    write_encoded(tmp_path / "run/data", iter([([4, 5, 6, 3], [4, 3]), ([4, 3], [5, 6, 7, 8, 3])]), 9)
    said = limits(model_card(tmp_path, FACTS, "heedful", "m"))
    assert "- The longest source in training had 3 tokens (pieces); longer ones give worse outputs." in said
    assert "- Of a text that it reads at once, what follows 77 tokens is left out." in said
    assert (
        "- It learned from 2 pairs; texts unlike its training data give worse outputs: try it on your own first."
        in said
    )


def test_an_imported_model_was_not_trained_here(tmp_path: Path):
    card = model_card(tmp_path, FACTS | {"origin": "Marian"}, "heedful", "m")
    assert "(transformer), converted from Marian by heedful 0.9.0.\n" in card
    assert "trained with" not in card


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("---\nlanguage: de\nlicense: apache-2.0\n---\n", "apache-2.0"),
        ("---\r\nlicense: 'mit'\r\n---\r\n", "mit"),
        ("---\nlicense: [a, b]\n---\n", ""),
        ("---\ntags: x\n---\nlicense: mit\n", ""),
        ("license: mit\n", ""),
        ("\n---\nlicense: mit\n---\n", ""),
        ("---\nlicense: <script>\n---\n", ""),
        ("", ""),
    ],
)
def test_the_licence_of_a_card_is_that_of_its_metadata(text: str, name: str):
    assert card_license(text) == name


def test_a_card_of_ones_own_is_text_of_its_size(tmp_path: Path):
    path = tmp_path / "README.md"
    assert own_card(path) == ""
    path.write_bytes(b"# M\xff")
    with pytest.raises(FileRefused, match="not UTF-8"):
        own_card(path)
    path.write_bytes(b"#" * (2 << 20))
    with pytest.raises(FileRefused, match="larger"):
        own_card(path)
