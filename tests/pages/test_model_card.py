"""Model cards: metadata that a hub reads, scores where they are stored, and no more than the folder says."""

import json
from pathlib import Path
from typing import Any

from heedful.pages.model_card import model_card
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
    record = {"format": 1, "weights": "m.safetensors", "results": [result], "worst": [], "num_items": 9}
    (tmp_path / "run").mkdir()
    (tmp_path / EVALUATION).write_text(json.dumps(record), encoding="utf-8")
    card = model_card(tmp_path, FACTS | {"weights": "m.safetensors"}, "transformers", "use()")
    (model,) = metadata(card)["model-index"]
    assert model["results"][0]["metrics"] == [{"type": "bleu", "name": "BLEU", "value": 41.634}]
    assert "| BLEU | 41.6 |" in card
    assert "## Scores" not in model_card(tmp_path, FACTS | {"weights": "other"}, "transformers", "use()")
