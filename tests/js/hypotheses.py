"""Searches in both languages, and how much their results differ."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from heedful.search.config import SearchConfig
from heedful.search.interface import Hypothesis

TIE: Final = 1e-4
"""Nats by which scores may differ, and weights of attention."""
SEARCHES: Final[dict[str, dict[str, Any]]] = {
    "greedy": {"beam": 1},
    "beam": {"beam": 5, "nbest": 5},
    "log probability": {"beam": 3, "nbest": 3, "alpha": 0.0},
    "gnmt": {"beam": 3, "nbest": 2, "length_penalty": "gnmt", "alpha": 0.6, "length_reward": 0.3},
    "power": {"beam": 4, "nbest": 4, "alpha": 0.7},
    "full": {"beam": 3, "nbest": 3, "stopping": "full"},
    "certain": {"beam": 3, "nbest": 2, "stopping": "certain", "max_length_ratio": 1.0, "max_length_offset": 3},
    "no repeats": {"beam": 3, "no_repeat_ngram_size": 2, "repetition_penalty": 1.5, "forbid_unknown": True},
    "least length": {"beam": 2, "nbest": 2, "min_length": 4},
    "coverage": {"beam": 3, "nbest": 3, "beta": 0.2},
}


def config_of(kind: str) -> SearchConfig:
    return SearchConfig.model_validate(SEARCHES[kind])


def differences(expected: Sequence[Sequence[Hypothesis]], answered: Sequence[Any]) -> list[str]:
    """Complaints about searches whose results differ by more than a tie."""
    complaints: list[str] = []
    for number, (ours, theirs) in enumerate(zip(expected, answered, strict=True)):
        assert "error" not in theirs, theirs
        scores = [one.score for one in ours], [one["score"] for one in theirs]
        outputs = [
            [(list(one.token_ids), one.finish_reason) for one in ours],
            [(one["ids"], one["reason"]) for one in theirs],
        ]
        if len(ours) != len(theirs) or not np.allclose(*scores, rtol=0, atol=TIE):
            complaints.append(f"{number}: scores {scores}")
        elif outputs[0] != outputs[1]:
            complaints.append(f"{number}: outputs {outputs}")
        elif not all(map(_is_alike, ours, theirs)):
            complaints.append(f"{number}: log probabilities or weights")
    return complaints


def _is_alike(one: Hypothesis, other: dict[str, Any]) -> bool:
    log_probs = [*one.token_log_probs, one.log_prob], [*other["tokenLogProbs"], other["logProb"]]
    if len(log_probs[0]) != len(log_probs[1]) or not np.allclose(*log_probs, rtol=0, atol=TIE):
        return False
    rows = np.array(other["weights"] or ())
    return one.weights is None or (rows.shape == one.weights.shape and np.allclose(rows, one.weights, rtol=0, atol=TIE))
