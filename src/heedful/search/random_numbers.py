"""Counter-based random numbers (Philox): functions of seed, source, sample and step, in any order.

Philox 4x32-10; Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3".
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from heedful.search.interface import FloatArray, IntArray

UInt64Array = NDArray[np.uint64]

_FACTORS: Final = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_KEY_STEPS: Final = (0x9E3779B9, 0xBB67AE85)
_NUM_ROUNDS: Final = 10
_LOW: Final = np.uint64(0xFFFFFFFF)
_HALF: Final = np.uint64(32)


def philox(counters: UInt64Array, key: tuple[int, int]) -> UInt64Array:
    """Apply the Philox block function to counters.

    Args:
        counters: [4, any] words below 2^32.
        key: two words below 2^32.

    Returns:
        [4, any] words below 2^32, uniform and independent for different counters or keys.

    Example:
        >>> [hex(word) for word in philox(np.zeros((4, 1), dtype=np.uint64), (0, 0))[:, 0].tolist()]
        ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    first, second, third, fourth = counters
    for turn in range(_NUM_ROUNDS):
        keys = [np.uint64((word + turn * step) & 0xFFFFFFFF) for word, step in zip(key, _KEY_STEPS, strict=True)]
        # Factors and words lie below 2^32, so products are exact in 64 bits.
        left, right = first * _FACTORS[0], third * _FACTORS[1]
        first, second, third, fourth = (
            (right >> _HALF) ^ second ^ keys[0],
            right & _LOW,
            (left >> _HALF) ^ fourth ^ keys[1],
            left & _LOW,
        )
    return np.stack([first, second, third, fourth])


def uniforms(seed: int, sources: IntArray, samples: IntArray, step: int) -> FloatArray:
    """Draw one uniform number for each sample of each source at a step.

    Args:
        seed: from 0, below 2^64.
        sources: [any] which source, from 0.
        samples: [any] which sample of it, from 0, below 2^32.
        step: from 0, below 2^32.

    Returns:
        [any] multiples of 2^-53 from 0, below 1; each depends on its own four arguments and nothing else.

    Example:
        >>> uniforms(1, np.array([7, 8]), np.array([0, 0]), 3)[1] == uniforms(1, np.array([8]), np.array([0]), 3)[0]
        np.True_
    """
    source_indices = sources.astype(np.uint64)
    counters = np.stack(
        [source_indices & _LOW, source_indices >> _HALF, samples.astype(np.uint64), np.full_like(source_indices, step)]
    )
    words = philox(counters, (seed & 0xFFFFFFFF, seed >> 32))
    high, low = words[0] >> np.uint64(5), words[1] >> np.uint64(6)
    return (high.astype(np.float64) * 2.0**26 + low.astype(np.float64)) * 2.0**-53
