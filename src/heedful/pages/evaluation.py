"""Scores of a model on a test set, as the page shows them."""

import shlex
from pathlib import Path
from typing import Any

from heedful.errors import HeedfulError
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


def _scores(model: Path, name: str, weights: str) -> dict[str, Any]:
    try:
        scores = read_scores(model, name)
    except HeedfulError:
        return {}
    return scores if scores.get("weights") == weights else {}
