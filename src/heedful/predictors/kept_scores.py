"""Test scores of a model, stored in its folder so that they are computed only once."""

import json
from collections.abc import Callable, Sized
from typing import Final

from heedful.formats import TEST_SCORES_FORMAT
from heedful.predictors.interface import Predictor

TEST: Final = "run/test.json"
"""File of the scores and of the entry in `heedful.json` about the weights that they belong to."""


def kept_scores(predictor: Predictor, items: Sized, say: Callable[[str], None]) -> str:
    """Score a model on its test set, or read the scores that an earlier call stored in its folder.

    Args:
        predictor: the model.
        items: test items of its task, one or more.
        say: called with a message before items are predicted, which takes a while.

    Returns:
        A summary of the scores, in lines.
    """
    path, weights = predictor.folder.path / TEST, predictor.folder.facts["weights"]
    if path.is_file():
        before = TEST_SCORES_FORMAT.strip(path, json.loads(path.read_text(encoding="utf-8")))
        if before.get("weights") == weights:
            return str(before["text"])
    say(f"predicting {len(items):,} test items")
    measured = predictor.measure(items)
    facts = TEST_SCORES_FORMAT.stamp({"weights": weights, "text": measured.summary(), **measured.to_dict()})
    path.write_text(json.dumps(facts, ensure_ascii=False, indent=1), encoding="utf-8", newline="\n")
    return measured.summary()
