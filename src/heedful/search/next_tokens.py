"""Next tokens of each hypothesis: the most probable ones, those of required phrases, a sample, or the prefix's."""

from dataclasses import dataclass
from typing import final

import numpy as np

from heedful.errors import NonFiniteError
from heedful.search.array_scores import adjusted
from heedful.search.beam_state import BeamState, BoolArray
from heedful.search.forbidden_tokens import ForbiddenTokens, as_adjust, find_forbidden_tokens
from heedful.search.interface import Adjust, FloatArray, IntArray, StepScores
from heedful.search.penalties import repetition_charges
from heedful.search.phrases import FILLING
from heedful.search.random_numbers import uniforms
from heedful.search.sampling import draw
from heedful.search.search_state import SearchState
from heedful.text.vocabulary import PAD


@final
@dataclass(frozen=True, slots=True)
class NextTokens:
    """Possible next tokens of the hypotheses of each row; -inf marks one that is not allowed.

    Attributes:
        log_probs: [row, hypothesis, candidate] log probabilities from the model.
        ids: [row, hypothesis, candidate] the tokens; an allowed one occurs once.
        charges: [row, hypothesis, candidate] repetition charges; None for none.
    """

    log_probs: FloatArray
    ids: IntArray
    charges: FloatArray | None = None

    def select(self, rows: IntArray) -> "NextTokens":
        """Select rows.

        Args:
            rows: [picked] the rows.

        Returns:
            Their tokens.
        """
        charges = None if self.charges is None else self.charges[rows]
        return NextTokens(self.log_probs[rows], self.ids[rows], charges)


def next_tokens(scores: StepScores, beam_state: BeamState, search_state: SearchState, step: int) -> NextTokens:
    """Find the possible next tokens.

    Args:
        step: tokens generated so far.

    Returns:
        The tokens.

    Raises:
        NonFiniteError: a log probability of a live hypothesis is NaN.
    """
    forbidden = find_forbidden_tokens(beam_state, search_state)
    adjust = as_adjust(forbidden, search_state.adjust(step), beam_state, search_state.config.width)
    if search_state.config.method == "sampling":
        log_probs, ids = _drawn(scores, beam_state, search_state, adjust, step)
    else:
        log_probs, ids = _most_probable(scores, beam_state, search_state, adjust, step)
    if search_state.required_ids.size:
        log_probs, ids = _with_required(log_probs, ids, scores, beam_state, search_state, forbidden)
    forced = search_state.forced(beam_state, step)
    is_forced = forced >= 0
    if is_forced.any():
        log_probs, ids = _force(log_probs, ids, scores, beam_state, search_state, forced)
    is_broken: BoolArray = np.isnan(log_probs) & beam_state.exist[:, :, None]
    refuse_nan(is_broken.reshape(beam_state.sources.size, -1), beam_state.sources, step)
    if search_state.config.repetition_penalty == 1:
        return NextTokens(log_probs, ids)
    charges = repetition_charges(log_probs, ids, beam_state.token_ids, search_state.config.repetition_penalty)
    charges[is_forced] = 0.0
    return NextTokens(log_probs, ids, charges)


def _most_probable(
    scores: StepScores, beam_state: BeamState, search_state: SearchState, adjust: Adjust, step: int
) -> tuple[FloatArray, IntArray]:
    """The most probable tokens of each hypothesis, as many as can matter."""
    config = search_state.config
    size = config.row_size
    # No hypothesis can fill more than `size` slots and one EOS. In greedy search an EOS in first place ends the search.
    most = size + 1 if size > 1 else 1
    # Penalties may lower the rank of some tokens, so as many further candidates are needed: tokens that other groups of
    # the beam have taken, tokens that the hypothesis contains already, and tokens of phrases.
    most += (config.num_groups - 1) * size + search_state.num_phrase_ids
    if config.repetition_penalty > 1:
        most += step
    log_probs, ids = scores.top(most, adjust)
    shape = (*beam_state.log_probs.shape, log_probs.shape[2])
    return log_probs.reshape(shape), ids.reshape(shape)


def _drawn(
    scores: StepScores, beam_state: BeamState, search_state: SearchState, adjust: Adjust, step: int
) -> tuple[FloatArray, IntArray]:
    """One random token for each hypothesis; a row has only one hypothesis.

    Raises:
        NonFiniteError: a log probability is NaN.
    """
    config = search_state.config
    num_rows, theta = beam_state.sources.size, config.repetition_penalty
    rows = np.flatnonzero(beam_state.exist[:, 0])
    history = beam_state.token_ids[rows, 0]
    most = 1 if config.temperature == 0 else config.top_k
    if most:
        log_probs, ids = scores.top(most + (step if theta > 1 else 0), adjust)
        log_probs, ids = log_probs.reshape(num_rows, -1)[rows], ids.reshape(num_rows, -1)[rows]
        order = np.argsort(ids, axis=1)
        log_probs, ids = np.take_along_axis(log_probs, order, axis=1), np.take_along_axis(ids, order, axis=1)
    else:
        log_probs = adjusted(scores.full(), adjust).reshape(num_rows, -1)[rows].astype(np.float64)
        ids = np.broadcast_to(np.arange(log_probs.shape[1]), log_probs.shape)
    is_broken = np.zeros((num_rows, 1), dtype=np.bool_)
    is_broken[rows, 0] = np.isnan(log_probs.max(axis=1))
    refuse_nan(is_broken, beam_state.sources, step)
    values = log_probs
    if theta > 1:
        is_held = (ids[:, :, None] == history[:, None, :]).any(axis=2) if most else _marked(history, ids.shape[1])
        values = np.where(is_held, theta * log_probs, log_probs)
    chosen = draw(
        values,
        uniforms(config.seed, search_state.indices[beam_state.sources[rows]], beam_state.groups[rows], step),
        config,
    )
    drawn, tokens = np.full((num_rows, 1, 1), -np.inf), np.full((num_rows, 1, 1), PAD, dtype=np.int64)
    drawn[rows, 0, 0] = np.take_along_axis(log_probs, chosen[:, None], axis=1)[:, 0]
    tokens[rows, 0, 0] = np.take_along_axis(ids, chosen[:, None], axis=1)[:, 0]
    return drawn, tokens


def _marked(ids: IntArray, vocab_size: int) -> BoolArray:
    """[row, token] whether the token is among the row's `ids`."""
    marked = np.zeros((ids.shape[0], vocab_size), dtype=np.bool_)
    np.put_along_axis(marked, ids, True, axis=1)
    return marked


def _with_required(
    log_probs: FloatArray,
    ids: IntArray,
    scores: StepScores,
    beam_state: BeamState,
    search_state: SearchState,
    forbidden: ForbiddenTokens,
) -> tuple[FloatArray, IntArray]:
    """Add the tokens of required phrases, however improbable, unless they are among the tokens already."""
    num_rows, size = beam_state.log_probs.shape
    added = search_state.required_ids[beam_state.sources]
    added_ids = np.broadcast_to(added[:, None, :], (num_rows, size, added.shape[1]))
    is_new = (added_ids != FILLING) & beam_state.exist[:, :, None]
    is_new &= ~(added_ids[:, :, :, None] == ids[:, :, None, :]).any(axis=3)
    is_new &= ~_are_banned(added_ids, forbidden)
    rows, hypotheses, columns = np.nonzero(is_new)
    added_log_probs = np.full(added_ids.shape, -np.inf)
    flat_indices = rows * size + hypotheses
    width = search_state.config.width
    added_log_probs[rows, hypotheses, columns] = scores.of(
        flat_indices // width, flat_indices % width, added[rows, columns]
    )
    # Slots without an added token get PAD, because the engine needs a token for empty slots too.
    added_ids = np.where(is_new, added_ids, PAD)
    return np.concatenate([log_probs, added_log_probs], axis=2), np.concatenate([ids, added_ids], axis=2)


def _are_banned(ids: IntArray, forbidden: ForbiddenTokens) -> BoolArray:
    """[row, hypothesis, candidate] whether a token is forbidden for its hypothesis."""
    num_rows, size, _ = ids.shape
    flat_indices = np.arange(num_rows * size).reshape(num_rows, size, 1)
    span = max(int(ids.max()), int(forbidden.ids.max(initial=0))) + 1
    return np.isin(flat_indices * span + ids, (forbidden.rows * size + forbidden.hypotheses) * span + forbidden.ids)


def _force(
    log_probs: FloatArray,
    ids: IntArray,
    scores: StepScores,
    beam_state: BeamState,
    search_state: SearchState,
    forced: IntArray,
) -> tuple[FloatArray, IntArray]:
    """Allow only the token of the prefix to hypothesis 0, the only live one within a prefix."""
    rows = np.flatnonzero(forced >= 0)
    flat_indices = rows * beam_state.log_probs.shape[1]
    width = search_state.config.width
    log_probs, ids = log_probs.copy(), ids.copy()
    log_probs[rows] = -np.inf
    log_probs[rows, 0, 0] = scores.of(flat_indices // width, flat_indices % width, forced[rows])
    ids[rows, 0, 0] = forced[rows]
    return log_probs, ids


def refuse_nan(is_broken: BoolArray, sources: IntArray, step: int) -> None:
    """Raise where a log probability is NaN.

    Args:
        is_broken: [row, any] whether it is.
        sources: [row] position of the row's source in the caller's list.
        step: tokens generated so far.

    Raises:
        NonFiniteError: a log probability is NaN.
    """
    if is_broken.any():
        source = sources[is_broken.any(axis=1).argmax()]
        raise NonFiniteError(
            f"source {source}, step {step}: a log probability is NaN; the model's weights are broken or its arithmetic "
            "overflowed"
        )
