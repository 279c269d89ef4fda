"""Greedy search: the rules of `heedful.search.beam` for a beam of 1 without constraints, in a tenth of the operations.

A row is a source here, and its only hypothesis the most probable token of each step, so nothing is ranked, reordered or
kept apart. The general search finds the same hypotheses, bit by bit; for one short word, such as one whose phones are
asked for, it spends most of its time on arrays of one element.
"""

from collections.abc import Callable
from itertools import count
from typing import Final, final

import numpy as np

from heedful.search.interface import Engine, FinishReason, FloatArray, IntArray
from heedful.search.next_tokens import refuse_nan
from heedful.search.search_state import SearchState
from heedful.text.vocabulary import BOS, EOS


def is_greedy(search_state: SearchState) -> bool:
    """Tell whether `search_greedily` finds what the general search would."""
    config = search_state.config
    return (
        config.method == "beam"
        and config.beam == 1
        and config.repetition_penalty == 1
        and config.no_repeat_ngram_size == 0
        and not (search_state.prefixes >= 0).any()
        and not any(
            phrases.lengths.shape[1] for phrases in (search_state.required, search_state.banned, search_state.whole)
        )
    )


def search_greedily(engine: Engine, search_state: SearchState, cancelled: Callable[[], bool] | None) -> None:
    """Run a search for which `is_greedy` is true.

    Args:
        engine: the model.
        search_state: the sources; their hypotheses are stored in it.
        cancelled: called before every step; True ends the search.

    Raises:
        NonFiniteError: the engine returned NaN.
    """
    outputs = _Outputs(search_state)
    state = engine.start(search_state.inputs, 1)
    sources, keep = np.arange(search_state.num_sources), None
    tokens = np.full((sources.size, 1), BOS, dtype=np.int64)
    adjust, shortest = search_state.adjust(0), int(search_state.max_lengths.min())
    for step in count():
        if cancelled is not None and cancelled():
            outputs.end(sources, np.arange(sources.size), ["cancelled"] * sources.size)
            return
        scores, state = engine.step(state, tokens, None, keep)
        keep = None
        if step == 0 and search_state.banned_ids.size:
            search_state.check_vocabulary(scores)
        search_state.remember_weights(scores)
        if step == search_state.config.min_length:  # EOS was banned until here
            adjust = search_state.adjust(step)
        log_probs, ids = scores.top(1, adjust)
        best, tokens = log_probs[:, 0, 0], ids[:, :, 0]
        is_possible = best > -np.inf
        if not is_possible.all():
            refuse_nan(np.isnan(best)[:, None], sources, step)
            rows = np.flatnonzero(~is_possible)
            outputs.end(sources, rows, ["stuck"] * rows.size)
        outputs.add(tokens[:, 0], best)
        is_end = tokens[:, 0] == EOS
        if step + 1 < shortest and is_possible.all() and not is_end.any():
            continue
        is_last = step + 1 >= search_state.max_lengths[sources]
        rows = np.flatnonzero(is_possible & (is_end | is_last))
        outputs.end(sources, rows, ["eos" if one else "length" for one in is_end[rows].tolist()])
        goes_on = is_possible & ~is_end & ~is_last
        if not goes_on.all():
            keep = np.flatnonzero(goes_on)
            if not keep.size:
                return
            sources, tokens = sources[keep], tokens[keep]
            outputs.keep(keep)


@final
class _Outputs:
    """Outputs so far, and their way into the state of a search."""

    def __init__(self, search_state: SearchState) -> None:
        self._search_state: Final = search_state
        # For each step an array [row]: a row of one array would be written at every step, and read only once.
        self._token_ids: list[IntArray] = []
        self._log_probs: list[FloatArray] = []
        self._origins: list[IntArray] = []

    def add(self, ids: IntArray, log_probs: FloatArray) -> None:
        """Add a token to the output of each row."""
        self._token_ids.append(ids)
        self._log_probs.append(log_probs)
        if self._search_state.weights_steps:
            self._origins.append(np.arange(ids.size))

    def keep(self, rows: IntArray) -> None:
        """Keep the outputs of some rows."""
        self._token_ids = [*np.stack(self._token_ids)[:, rows]]
        self._log_probs = [*np.stack(self._log_probs)[:, rows]]
        if self._origins:
            self._origins = [*np.stack(self._origins)[:, rows]]

    def end(self, sources: IntArray, rows: IntArray, reasons: list[FinishReason]) -> None:
        """End the outputs of some rows.

        Args:
            sources: [row] source of each row.
            rows: [ended] the rows.
            reasons: reason for each of these.
        """
        if not rows.size:
            return
        shape = len(self._token_ids), sources.size
        token_ids = np.array(self._token_ids, dtype=np.int64).reshape(shape)[:, rows].T
        log_probs = np.array(self._log_probs, dtype=np.float64).reshape(shape)[:, rows].T
        origins = np.array(self._origins, dtype=np.int64).reshape(-1, sources.size)[:, rows].T
        # From 0 and in the order of the tokens, as the general search adds them.
        totals = np.concatenate([np.zeros((rows.size, 1)), log_probs], axis=1).cumsum(axis=1)[:, -1]
        self._search_state.end(sources[rows], token_ids, log_probs, origins, totals, reasons)
