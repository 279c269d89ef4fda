"""Test scores of a model, stored in its folder so that they are computed only once."""

from collections.abc import Callable, Sized

from heedful.formats import TEST_SCORES_FORMAT
from heedful.pages.record import TEST, read_scores
from heedful.predictors.interface import Predictor
from heedful.records import write_facts


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
