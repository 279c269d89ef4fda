import numpy as np
import pytest

from heedful.search.random_numbers import philox, uniforms

# The known answers that the authors of the generator publish with it: counter, key, result.
KNOWN = [
    (
        (0x00000000, 0x00000000, 0x00000000, 0x00000000),
        (0x00000000, 0x00000000),
        (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
    ),
    (
        (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF),
        (0xFFFFFFFF, 0xFFFFFFFF),
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_philox_gives_the_known_answers(
    counter: tuple[int, ...], key: tuple[int, int], expected: tuple[int, ...]
) -> None:
    words = np.array([counter, counter], dtype=np.uint64).T
    np.testing.assert_array_equal(philox(words, key), np.array([expected, expected], dtype=np.uint64).T)


def test_a_number_depends_on_its_own_place_alone() -> None:
    sources, samples = np.array([3, 0, 2**40, 3]), np.array([0, 7, 1, 1])
    together = uniforms(5, sources, samples, 9)
    for place in range(4):
        alone = uniforms(5, sources[place : place + 1], samples[place : place + 1], 9)
        assert alone.tolist() == [together[place]]


def test_every_part_of_the_place_counts() -> None:
    def draw(seed: int = 1, source: int = 2, sample: int = 3, step: int = 4) -> float:
        return float(uniforms(seed, np.array([source]), np.array([sample]), step)[0])

    others = [draw(), draw(seed=2), draw(seed=1 + 2**32), draw(source=3), draw(source=2 + 2**32), draw(sample=4)]
    others += [draw(step=5), draw(sample=4, step=3), draw(source=3, sample=2)]
    assert len(set(others)) == len(others)


def test_numbers_are_uniform_and_below_1() -> None:
    size = 20_000
    for numbers in (
        uniforms(1, np.arange(size), np.zeros(size, dtype=np.int64), 0),
        uniforms(1, np.zeros(size, dtype=np.int64), np.arange(size), 0),
        np.concatenate([uniforms(1, np.arange(100), np.arange(100), step) for step in range(size // 100)]),
    ):
        assert numbers.dtype == np.float64
        assert 0 <= numbers.min()
        assert numbers.max() < 1
        # The largest distance from the straight line exceeds 1.95 / sqrt(size) once in 1000 times.
        assert np.abs(np.sort(numbers) - (np.arange(size) + 0.5) / size).max() < 1.95 / np.sqrt(size)
        # Neighbours are not alike: the correlation's standard deviation is 1 / sqrt(size).
        assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 3.3 / np.sqrt(size)
        # Nor are the low bits stuck.
        assert abs((numbers * 2.0**53 % 2).mean() - 0.5) < 3.3 * 0.5 / np.sqrt(size)
