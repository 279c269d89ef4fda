"""Test scores of a model, stored in its folder so that they are computed only once."""

import math
import time
from collections.abc import Callable
from typing import Final

from heedful.engines.folder import ModelFolder
from heedful.errors import ResourceError
from heedful.files.formats import TEST_SCORES_FORMAT
from heedful.files.records import write_facts
from heedful.pages.record import EVALUATION, TEST, read_scores
from heedful.predictors.interface import Items, Measured, Predictor, spaced

NUM_TRIED: Final = 50
"""Number of items that are predicted first where time is limited, to estimate how many can be; at least as many are
scored, so that even the shortest training ends with a test."""


def cached_test_scores(
    predictor: Predictor, items: Items, say: Callable[[str], None], seconds: float = math.inf
) -> str:
    """Score a model on its test set, or read the scores that an earlier call stored in its folder.

    Args:
        items: test items of its task, one or more.
        say: called with a message before items are predicted, which takes a while.
        seconds: limit of time; if it is too short for all items, evenly spaced ones are scored, but never fewer than
            `NUM_TRIED`.
    """
    path, facts = predictor.folder.path / TEST, predictor.folder.facts
    weights, members = facts["weights"], facts.get("members", [])
    before = read_scores(predictor.folder.path)
    is_enough = not before.get("num_left_out") or seconds < math.inf
    is_same = (before.get("weights"), before.get("members", [])) == (weights, members)
    if is_same and "text" in before and is_enough:
        return str(before["text"])
    tested = _fitting(predictor, items, seconds)
    say(f"predicting {len(tested):,} test items")
    measured = predictor.measure(tested)
    num_left_out, text = len(items) - len(tested), measured.summary()
    if num_left_out:
        text += f"       {num_left_out:,} of {len(items):,} left out, because the time was up; "
        text += "the same command scores all\n"
    stored = {"weights": weights, **({"members": members} if members else {}), "text": text}
    write_facts(path, TEST_SCORES_FORMAT, {**stored, "num_left_out": num_left_out, **measured.to_dict()})
    return text


def keep_evaluation(folder: ModelFolder, measured: Measured) -> None:
    """Store the scores of an evaluation in a model's folder, for the page; those of its training stay.

    Raises:
        ResourceError: the folder cannot be written to.
        FileRefused: a folder, a pipe or a device is in the place of the file.
    """
    path = folder.path / EVALUATION
    facts = {"weights": folder.facts["weights"], "text": measured.summary(), **measured.to_dict()}
    try:
        path.parent.mkdir(exist_ok=True)
        write_facts(path, TEST_SCORES_FORMAT, facts)
    except OSError as error:
        reason = error.strerror or error
        raise ResourceError(f"{path}: not written: {reason}; leave out --record, or make it writable") from None


def _fitting(predictor: Predictor, items: Items, seconds: float) -> Items:
    """Evenly spaced items, about as many as can be predicted in some seconds, and `NUM_TRIED` at least."""
    if seconds == math.inf or len(items) <= 2 * NUM_TRIED:
        return items
    tried = spaced(items, NUM_TRIED)
    if seconds <= 0.0:
        return tried
    started = time.monotonic()
    predictor.measure(tried)
    elapsed = max(1e-9, time.monotonic() - started)
    number = max(len(tried), len(tried) * (seconds - elapsed) / elapsed)
    return spaced(items, int(number))
