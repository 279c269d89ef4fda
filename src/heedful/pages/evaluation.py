"""Scores of a model on a test set, as the page shows them."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from heedful.errors import HeedfulError
from heedful.evaluation.metrics.table import score_name, score_unit
from heedful.pages.record import EVALUATION, TEST, read_scores
from heedful.pages.sentence import rounded


def evaluation(model: Path, weights: str) -> dict[str, Any]:
    """Read the scores of a model that are stored in its folder.

    Args:
        weights: entry of its `heedful.json` about its weights; scores of other weights are left out.

    Returns:
        Metrics with their scores by source length, and the worst outputs: of `heedful evaluate --record` if it stored
        any, else of training. Without a record all lists are empty; "command" is the one that makes a record.
    """
    scores = next((one for name in (EVALUATION, TEST) if (one := _scores(model, name, weights))), {})
    metrics = [
        {
            "key": result["metric"],
            "name": result["name"],
            "unit": result.get("unit", ""),
            "signature": result.get("signature", ""),
            "score": rounded(result["score"]),
            "low": rounded(result["low"]),
            "high": rounded(result["high"]),
            "byLength": [
                {
                    "shortest": bucket["shortest"],
                    "longest": bucket["longest"],
                    "numItems": bucket["num_items"],
                    "score": rounded(bucket["score"]),
                    "low": rounded(bucket["low"]),
                    "high": rounded(bucket["high"]),
                }
                for bucket in result.get("by_length", ())
            ],
        }
        for result in scores.get("results", ())
        if result.get("metric")
    ]
    worst = [
        {
            "source": one["source"],
            "reference": one["references"][0] if one["references"] else "",
            "output": one["output"],
            "score": rounded(one["score"]),
        }
        for one in scores.get("worst", ())
    ]
    return {
        "metrics": metrics,
        "numItems": scores.get("num_items", 0),
        "lengthUnit": scores.get("length_unit", ""),
        "worstBy": next((one["name"] for one in metrics if one["key"] == scores.get("worst_by")), ""),
        "worst": worst,
        "command": f"heedful evaluate {shlex.quote(model.name)} TEST.tsv --record",
    }


def stored_scores(model: Path, weights: str) -> tuple[list[dict[str, Any]], int]:
    """Read the scores of a model of any task that are stored in its folder.

    Args:
        weights: as in `evaluation`.

    Returns:
        Metrics with key, name, unit, signature, score, low and high, and the number of items.
    """
    facts = next((one for name in (EVALUATION, TEST) if (one := _scores(model, name, weights))), {})
    number = int(facts.get("num_items", 0))
    if metrics := evaluation(model, weights)["metrics"]:
        return [one for one in metrics if one["score"] is not None], number
    return [_plain(key, facts) for key in _PLAIN if isinstance(facts.get(key), float)], number


_PLAIN: Final = ("accuracy", "micro_f1", "macro_f1", "exact_match", "f1", "mean_error", "explained")
"""Scores of labels, numbers and answers, which stand alone in what is stored."""
_WITH_INTERVAL: Final = ("accuracy", "exact_match")
_BOUNDS: Final = ("low", "high")


def _plain(key: str, scores: Mapping[str, Any]) -> dict[str, Any]:
    bounds = {name: rounded(scores[name]) if key in _WITH_INTERVAL and name in scores else None for name in _BOUNDS}
    named = {"key": key, "name": score_name(key), "unit": score_unit(key), "signature": ""}
    return {**named, "score": rounded(scores[key]), **bounds}


def _scores(model: Path, name: str, weights: str) -> dict[str, Any]:
    try:
        scores = read_scores(model, name)
    except HeedfulError:
        return {}
    return scores if scores.get("weights") == weights else {}
