"""How near an engine comes to PyTorch: the same tokens read, the same searches made."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heedful.runtime.engine import Backend
from heedful.runtime.exported import Parity
from heedful.search.config import SearchConfig
from heedful.text.vocabulary import EOS

_NUM_SOURCES: Final = 48
_NUM_PLAIN: Final = 4
"""First ids, which are marks."""

IntArray = NDArray[np.int64]


def draw_sources(num_tokens: int, most: int, seed: int = 1) -> list[IntArray]:
    """Draw sources of all lengths that a model takes, most of them short.

    Args:
        num_tokens: size of the source vocabulary.
        most: positions of the longest.
        seed: of the draws.

    Returns:
        [position] ids of each, ending in eos.
    """
    generator = np.random.default_rng(seed)
    lengths = np.geomspace(2, max(2, most), _NUM_SOURCES).astype(np.int64)
    first = min(_NUM_PLAIN, num_tokens - 1)
    return [np.append(generator.integers(first, num_tokens, length - 1), EOS) for length in lengths]


def measure(reference: Backend, other: Backend, sources: Sequence[IntArray], max_length: int) -> Parity:
    """Compare an engine with another one that is right.

    Args:
        reference: PyTorch.
        other: the engine.
        sources: [position] ids of each, ending in eos.
        max_length: most tokens of an output.

    Returns:
        Differences of the log probabilities of the tokens of the reference's outputs, and how many greedy outputs are
        the same.
    """
    greedy = SearchConfig(beam=1, max_length_ratio=1.5, max_length_offset=5)
    wanted = [found[0].token_ids for found in reference.decode(sources, greedy)]
    got = [found[0].token_ids for found in other.decode(sources, greedy)]
    # What follows what: also the outputs' tokens in an order that no model expects.
    outputs = [[*ids[: max_length // 2], *ids[::-1][: max_length // 2 - 1], EOS][-max_length:] for ids in wanted]
    pairs = zip(reference.score(sources, outputs), other.score(sources, outputs), strict=True)
    differences = np.concatenate([np.abs(one.log_probs - two.log_probs) for one, two in pairs])
    same = sum(one == two for one, two in zip(wanted, got, strict=True))
    return Parity(float(differences.max(initial=0.0)), int(differences.size), len(sources), same)
