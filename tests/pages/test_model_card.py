"""Model cards: metadata that a hub reads, scores where they are stored, and no more than the folder says."""

import json
from pathlib import Path
from typing import Any

import pytest

from heedful.errors import FileRefused
from heedful.pages.model_card import card_license, model_card, own_card
from heedful.pages.record import EVALUATION

FACTS: dict[str, Any] = {"task": "translation", "kind": "transformer", "languages": ["de", "en"], "heedful": "0.9.0"}


def metadata(card: str) -> dict[str, Any]:
    begin, head, _ = card.split("---\n", 2)
    assert begin == ""
    return {key: json.loads(value) for key, _, value in (line.partition(": ") for line in head.splitlines())}


def test_a_card_says_task_languages_and_kind(tmp_path: Path):
    card = model_card(tmp_path / "de-en.model", FACTS, "heedful", "use()")
    expected = {"library_name": "heedful", "pipeline_tag": "translation", "language": ["de", "en"]}
    assert metadata(card) == {**expected, "tags": ["heedful", "transformer"]}
    assert "# de-en\n\nA model for translation, de to en (transformer), trained with heedful 0.9.0.\n" in card
    assert "```python\nuse()\n```" in card
    assert "## Scores" not in card


def test_unknown_languages_are_left_out_and_a_hostile_name_stays_text(tmp_path: Path):
    facts = {"task": "classification", "kind": 'x"\n---\n', "languages": ["source", "target"]}
    card = model_card(tmp_path / "m.model", facts, "heedful", "use()")
    assert metadata(card)["tags"] == ["heedful", 'x"\n---\n']
    assert "language" not in metadata(card)
    assert metadata(card)["pipeline_tag"] == "text-classification"


def test_stored_scores_are_in_the_metadata_and_in_a_table(tmp_path: Path):
    result = {"metric": "bleu", "name": "BLEU", "unit": "", "score": 41.634, "low": 40.0, "high": 43.0, "by_length": []}
    result["signature"] = "case:lc|version:2"
    record = {"format": 1, "weights": "m.safetensors", "results": [result], "worst": [], "num_items": 9}
    (tmp_path / "run").mkdir()
    (tmp_path / EVALUATION).write_text(json.dumps(record), encoding="utf-8")
    card = model_card(tmp_path, FACTS | {"weights": "m.safetensors"}, "transformers", "use()")
    (model,) = metadata(card)["model-index"]
    arguments = {"signature": "case:lc|version:2"}
    assert model["results"][0]["metrics"] == [{"type": "bleu", "name": "BLEU", "value": 41.634, "args": arguments}]
    assert model["results"][0]["dataset"]["name"] == "test set of its makers, 9 items"
    assert "| BLEU | 41.6 | 40.0 to 43.0 | `case:lc\\|version:2` |" in card
    assert "## Scores" not in model_card(tmp_path, FACTS | {"weights": "other"}, "transformers", "use()")


def test_a_card_names_the_licence_that_is_given_or_that_of_the_model(tmp_path: Path):
    card = model_card(tmp_path, FACTS | {"license": "mit"}, "heedful", "use()")
    assert (metadata(card)["license"], card_license(card)) == ("mit", "mit")
    assert card.endswith("## Licence\n\nmit\n")
    named = model_card(tmp_path, FACTS | {"license": "mit"}, "heedful", "use()", "cc-by-4.0")
    assert card_license(named) == "cc-by-4.0"
    unnamed = model_card(tmp_path, FACTS, "heedful", "use()")
    assert "license" not in metadata(unnamed)
    assert "ask them" in unnamed


def test_an_imported_model_was_not_trained_here(tmp_path: Path):
    card = model_card(tmp_path, FACTS | {"origin": "Marian"}, "heedful", "use()")
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
