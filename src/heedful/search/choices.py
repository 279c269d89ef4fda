"""Alternatives of single tokens: the most probable tokens at each step of a given output."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from heedful.search.inputs import Sources, as_inputs
from heedful.search.interface import Adjust, Engine, FloatArray, IntArray
from heedful.text.vocabulary import BOS, PAD


@final
@dataclass(frozen=True, slots=True, eq=False)
class TokenChoices:
    """Most probable tokens at each step of an output.

    Attributes:
        ids: [step, rank] tokens, best first.
        log_probs: [step, rank] their log probabilities given the tokens before, in nats.
    """

    ids: IntArray
    log_probs: FloatArray


def token_choices(engine: Engine, source: Sources, output: Sequence[int], most: int) -> TokenChoices:
    """Find the most probable tokens at each step of a given output.

    Args:
        source: one source, as for `heedful.search.beam.search`.
        output: token ids of the output, with EOS if its alternatives are wanted too.
        most: number of tokens per step, at least 1; a smaller vocabulary gives fewer.

    Returns:
        The tokens; PAD and BOS are never among them.

    Cost: one step of the engine per token.
    """
    state = engine.start(as_inputs(source), 1)
    adjust = Adjust(banned=np.array([PAD, BOS], dtype=np.int64))
    ids: list[IntArray] = []
    log_probs: list[FloatArray] = []
    for token in (BOS, *output[:-1]):
        scores, state = engine.step(state, np.array([[token]], dtype=np.int64), None, None)
        best, best_ids = scores.top(most, adjust)
        ids.append(best_ids[0, 0])
        log_probs.append(best[0, 0])
    return TokenChoices(np.array(ids), np.array(log_probs))
