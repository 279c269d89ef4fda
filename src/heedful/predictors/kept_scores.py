"""Test scores of a model, stored in its folder so that they are computed only once."""

from collections.abc import Callable, Sized
from pathlib import Path
from typing import Any, Final

from heedful.errors import FileRefused, NewerFormat
from heedful.formats import TEST_SCORES_FORMAT
from heedful.predictors.interface import Predictor
from heedful.records import read_facts, write_facts

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
    before = read_scores(predictor.folder.path)
    if before.get("weights") == weights and "text" in before:
        return str(before["text"])
    say(f"predicting {len(items):,} test items")
    measured = predictor.measure(items)
    facts = {"weights": weights, "text": measured.summary(), **measured.to_dict()}
    write_facts(path, TEST_SCORES_FORMAT, facts)
    return measured.summary()


def read_scores(model: Path) -> dict[str, Any]:
    """Read the test scores stored in a model folder.

    Args:
        model: the folder.

    Returns:
        The scores; empty if there are none, or if they are damaged and so have to be computed again.

    Raises:
        NewerFormat: a newer heedful wrote them.
    """
    try:
        return read_facts(model / TEST, TEST_SCORES_FORMAT, "")
    except NewerFormat:
        raise
    except FileRefused:
        return {}
