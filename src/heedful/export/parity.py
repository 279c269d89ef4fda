"""Parity of an engine with PyTorch: differences of log probabilities, and number of equal greedy outputs."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heedful.engines.engine import Backend
from heedful.engines.exported import MOST_DIFFERENCE, Parity
from heedful.search.config import SearchConfig
from heedful.search.inputs import InputArrays, InputDraw, Sources
from heedful.text.vocabulary import EOS

_NUM_SOURCES: Final = 48
_MOST_ROUNDING: Final = MOST_DIFFERENCE / 20
"""Largest rounding error of the reference, in nats, of a token that is compared."""
_LEAST_COMPARED: Final = 0.25
"""Least share of the tokens that are compared."""


def draw_sources(draw: InputDraw, most: int, seed: int = 1) -> InputArrays:
    """Draw random sources of all lengths up to a maximum, most of them short.

    Args:
        draw: function that draws random sources of the kind that the model reads.
        most: maximum number of positions.
    """
    generator = np.random.default_rng(seed)
    lengths = np.geomspace(2, max(2, most), _NUM_SOURCES).astype(np.int64)
    return draw(lengths, generator)


def measure(
    reference: Backend,
    other: Backend,
    sources: Sources,
    max_length: int,
    exact: Callable[[], Backend] | None = None,
) -> Parity:
    """Compare an engine with a reference engine.

    Args:
        sources: inputs of the kind that the model reads, or the [position] ids of each source.
        max_length: maximum number of tokens of an output.
        exact: function that opens the reference in 64 bits; it is called if the engines differ. A recurrent model with
            large weights may amplify rounding errors until two correct engines disagree about the end of a long output.
            Tokens from the first one on which the reference disagrees with itself in 64 bits are not compared, unless
            too few would be left. None = all tokens are compared.

    Returns:
        Largest difference of a token's log probability in outputs made from the reference's tokens, and the number of
        equal greedy outputs.
    """
    greedy = SearchConfig(beam=1, max_length_ratio=1.5, max_length_offset=5)
    wanted = [hypotheses[0].token_ids for hypotheses in reference.decode(sources, greedy)]
    got = [hypotheses[0].token_ids for hypotheses in other.decode(sources, greedy)]
    # The scored outputs end with the tokens in reverse order, so that unlikely tokens are compared too.
    outputs = [[*ids[: max_length // 2], *ids[::-1][: max_length // 2 - 1], EOS][-max_length:] for ids in wanted]

    def log_probs(backend: Backend) -> list[NDArray[np.float64]]:
        return [np.asarray(scored.log_probs, np.float64) for scored in backend.score(sources, outputs)]

    right = log_probs(reference)
    apart = [abs(one - two) for one, two in zip(right, log_probs(other), strict=True)]
    if exact is not None and not _largest(apart) <= MOST_DIFFERENCE:
        sizes = [_num_sure(abs(one - two)) for one, two in zip(right, log_probs(exact()), strict=True)]
        if sum(sizes) >= _LEAST_COMPARED * sum(map(len, apart)):
            apart = [each[:size] for each, size in zip(apart, sizes, strict=True)]
    same = sum(one == two for one, two in zip(wanted, got, strict=True))
    return Parity(_largest(apart), sum(map(len, apart)), len(outputs), same)


def _largest(differences: Sequence[NDArray[np.float64]]) -> float:
    return float(np.concatenate(differences).max(initial=0.0))


def _num_sure(errors: NDArray[np.float64]) -> int:
    """Number of tokens before the first whose rounding error is larger than `_MOST_ROUNDING`."""
    return int(np.argmax([*(errors > _MOST_ROUNDING), True]))
