"""Forced decoding: log probabilities and attention weights of given outputs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from heedful.errors import NonFiniteError, ShapeError, UsageError
from heedful.search.inputs import Sources, as_inputs
from heedful.search.interface import Engine, FloatArray, IntArray, WeightsArray
from heedful.search.phrases import laid_out
from heedful.text.vocabulary import BOS


@final
@dataclass(frozen=True, slots=True, eq=False)
class ForcedDecoding:
    """Log probabilities and attention weights of one given output.

    Attributes:
        log_probs: [token] log probability of each token, given the source and the tokens before it.
        weights: [token, source position] attention, columns the source's real positions; None unless requested.
    """

    log_probs: FloatArray
    weights: WeightsArray | None = None


def score_outputs(
    engine: Engine,
    sources: Sources,
    outputs: Sequence[Sequence[int]],
    need_alignment: bool = False,
) -> list[ForcedDecoding]:
    """Score given outputs: feed their tokens to an engine, whatever it would have generated itself.

    Args:
        engine: the model; it must return attention weights if they are requested.
        sources: as for `heedful.search.beam.search`.
        outputs: the tokens of one output for each source, with EOS if it counts.
        need_alignment: whether to return attention weights.

    Returns:
        Log probabilities and weights of each output.

    Raises:
        ShapeError: the numbers of outputs and sources differ.
        UsageError: an output contains a token outside the vocabulary.
        NonFiniteError: the engine returned NaN.
    """
    inputs = as_inputs(sources)
    if len(outputs) != len(inputs):
        raise ShapeError(f"{len(outputs)} outputs were given for {len(inputs)} sources; give one each")
    widths = inputs.num_positions.tolist()
    decodings = [_unread(width, len(output), need_alignment) for width, output in zip(widths, outputs, strict=True)]
    lengths = np.array([len(output) for output in outputs], dtype=np.int64)
    rows = np.flatnonzero(lengths)
    if not rows.size:
        return decodings
    tokens = laid_out(outputs)
    state = engine.start(inputs.take(rows), 1)
    fed, keep = np.full((rows.size, 1), BOS, dtype=np.int64), None
    for step in range(int(lengths.max())):
        scores, state = engine.step(state, fed, None, keep)
        if step == 0:
            _check_vocabulary(outputs, scores.vocab_size)
        values = scores.of(np.arange(rows.size), np.zeros(rows.size, dtype=np.int64), tokens[rows, step])
        _check_numbers(values, rows, step)
        attended = scores.weights[:, 0] if need_alignment else None
        for position, row in enumerate(rows):
            decodings[row].log_probs[step] = values[position]
            if attended is not None and (weights := decodings[row].weights) is not None:
                weights[step] = attended[position, : widths[row]]
        stays = lengths[rows] > step + 1
        keep = None if stays.all() else np.flatnonzero(stays)
        rows = rows[stays]
        fed = tokens[rows, step, None]
    return decodings


def _unread(num_positions: int, output_length: int, need_alignment: bool) -> ForcedDecoding:
    weights = np.zeros((output_length, num_positions), dtype=np.float32) if need_alignment else None
    return ForcedDecoding(np.empty(output_length), weights)


def _check_numbers(values: FloatArray, rows: IntArray, step: int) -> None:
    """Raise where a log probability is NaN.

    Raises:
        NonFiniteError: a log probability is NaN.
    """
    if np.isnan(values).any():
        raise NonFiniteError(
            f"source {rows[np.isnan(values).argmax()]}, step {step}: a log probability is NaN; the model's weights "
            "are broken or its arithmetic overflowed"
        )


def _check_vocabulary(outputs: Sequence[Sequence[int]], vocab_size: int) -> None:
    """Refuse outputs with tokens outside the vocabulary.

    Raises:
        UsageError: an output contains such a token.
    """
    for position, output in enumerate(outputs):
        for token in output:
            if not 0 <= token < vocab_size:
                raise UsageError(
                    f"outputs: token {token} of source {position} is not in the vocabulary of {vocab_size}"
                )
