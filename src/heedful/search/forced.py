"""Forced decoding: how probable an engine finds outputs that are given."""

from collections.abc import Sequence

import numpy as np

from heedful.errors import NonFiniteError, ShapeError, UsageError
from heedful.search.interface import Engine, FloatArray, IntArray
from heedful.search.phrases import laid_out
from heedful.search.task import padded_sources
from heedful.text.vocabulary import BOS


def forced_log_probs(
    engine: Engine, source_ids: Sequence[IntArray], outputs: Sequence[Sequence[int]]
) -> list[FloatArray]:
    """Read outputs with an engine.

    Args:
        engine: the model.
        source_ids: as for `heedful.search.beam.search`.
        outputs: the tokens of one output for each source, with EOS if it counts.

    Returns:
        For each output [token] the log probability of each token, given the source and the tokens before it.

    Raises:
        ShapeError: there are not as many outputs as sources.
        UsageError: an output holds what is not in the vocabulary.
        NonFiniteError: the engine gave NaN.
    """
    if len(outputs) != len(source_ids):
        raise ShapeError(f"{len(outputs)} outputs were given for {len(source_ids)} sources; give one each")
    lengths = np.array([len(output) for output in outputs], dtype=np.int64)
    rows = np.flatnonzero(lengths)
    found = [np.empty(length) for length in lengths]
    if not rows.size:
        return found
    source, source_lengths = padded_sources(source_ids)
    tokens = laid_out(outputs)
    state = engine.start(source[rows, : source_lengths[rows].max()], source_lengths[rows], 1)
    fed, keep = np.full((rows.size, 1), BOS, dtype=np.int64), None
    for step in range(int(lengths.max())):
        scores, state = engine.step(state, fed, None, keep)
        if step == 0:
            _check_vocabulary(outputs, scores.vocab_size)
        values = scores.of(np.arange(rows.size), np.zeros(rows.size, dtype=np.int64), tokens[rows, step])
        if np.isnan(values).any():
            raise NonFiniteError(
                f"source {rows[np.isnan(values).argmax()]}, step {step}: a log probability is NaN; the model's weights "
                "are broken or its arithmetic overflowed"
            )
        for row, value in zip(rows, values, strict=True):
            found[row][step] = value
        stays = lengths[rows] > step + 1
        keep = None if stays.all() else np.flatnonzero(stays)
        rows = rows[stays]
        fed = tokens[rows, step, None]
    return found


def _check_vocabulary(outputs: Sequence[Sequence[int]], vocab_size: int) -> None:
    """Refuse outputs that cannot be read.

    Raises:
        UsageError: one holds what is not in the vocabulary.
    """
    for place, output in enumerate(outputs):
        for token in output:
            if not 0 <= token < vocab_size:
                raise UsageError(f"outputs: token {token} of source {place} is not in the vocabulary of {vocab_size}")
