"""Passages of a batch as named NumPy arrays: a question and a text each, both sequences of tokens."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.search.inputs import InputArrays, InputDraw, IntArray
from heedful.text.vocabulary import EOS, PAD, UNK

_LONGEST_QUESTION: Final = 5
"""Most tokens of a drawn question, EOS included."""


@final
class PassageArrays(InputArrays):
    """Sources that are a question and a passage, whose tokens are the positions that a model attends to."""

    axis_names: ClassVar[Mapping[str, Mapping[int, str]]] = MappingProxyType({"question": {1: "question_word"}})

    def __init__(self, sequences: Sequence[IntArray], room: int = 0) -> None:
        """Cut sequences of tokens into questions and passages.

        Args:
            sequences: [position] ids of each source: the question, EOS, the passage, EOS.
            room: least number of positions of the padded passages.
        """
        self.sequences: Final = tuple(np.asarray(ids, dtype=np.int64) for ids in sequences)
        self._pairs: Final = [_cut(ids) for ids in self.sequences]
        self._room: Final = room

    def __len__(self) -> int:
        return len(self.sequences)

    def take(self, rows: Iterable[int]) -> "PassageArrays":
        return PassageArrays([self.sequences[row] for row in rows])

    def named_arrays(self) -> dict[str, NDArray[Any]]:
        """Pad questions and passages to arrays.

        Returns:
            "question" [source, question_word] and "passage" [source, position] token ids padded with 0, each row ending
            in EOS, and the number of real ones, "question_lengths" and "passage_lengths" [source].
        """
        questions, passages = zip(*self._pairs, strict=True) if self._pairs else ((), ())
        return {
            "question": _padded(questions, 0),
            "question_lengths": _lengths(questions),
            "passage": _padded(passages, self._room),
            "passage_lengths": _lengths(passages),
        }

    @property
    def num_positions(self) -> IntArray:
        """[source] number of tokens of each passage, EOS included."""
        return _lengths([passage for _, passage in self._pairs])

    @property
    def num_numbers(self) -> IntArray:
        """[source] number of token ids of question and passage."""
        return np.array([question.size + passage.size for question, passage in self._pairs], dtype=np.int64)

    @property
    def length_hint(self) -> IntArray:
        """[source] number of tokens of each passage, without EOS."""
        return self.num_positions - 1

    @property
    def width(self) -> int:
        """Number of positions of the padded passages."""
        return max(self._room, super().width)

    def widened(self, width: int) -> "PassageArrays":
        return PassageArrays(self.sequences, width)

    def with_fillers(self, num_positions: Sequence[int]) -> "PassageArrays":
        fillers = [np.array([EOS, *[UNK] * (number - 1), EOS], dtype=np.int64) for number in num_positions]
        return PassageArrays([*self.sequences, *fillers], self._room)


def _cut(ids: IntArray) -> tuple[IntArray, IntArray]:
    """Question and passage, each ending in EOS."""
    ends = np.flatnonzero(ids == EOS)
    end = int(ends[0]) + 1 if ends.size else ids.size
    question, passage = ids[:end], ids[end:]
    return question if ends.size else np.append(question, EOS), passage if passage.size else np.array([EOS])


def _lengths(sequences: Sequence[IntArray]) -> IntArray:
    return np.array([ids.size for ids in sequences], dtype=np.int64)


def _padded(sequences: Sequence[IntArray], room: int) -> IntArray:
    rows = np.full((len(sequences), max(1, room, *(ids.size for ids in sequences))), PAD, dtype=np.int64)
    for row, ids in zip(rows, sequences, strict=True):
        row[: ids.size] = ids
    return rows


def passage_draw(num_tokens: int) -> InputDraw:
    """Return a function that draws random questions and passages.

    Returns:
        A function that draws ordinary tokens and EOS; the positions of a source are those of its passage.

    Example:
        >>> passage_draw(9)(np.array([1, 4]), np.random.default_rng(0)).num_positions.tolist()
        [1, 4]
    """
    first = min(EOS + 1, num_tokens - 1)

    def text(number: int, generator: np.random.Generator) -> IntArray:
        return np.append(generator.integers(first, num_tokens, number - 1), EOS)

    def draw(num_positions: IntArray, generator: np.random.Generator) -> InputArrays:
        longest = generator.integers(1, _LONGEST_QUESTION + 1, len(num_positions)).tolist()
        both = zip(longest, num_positions.tolist(), strict=True)
        return PassageArrays([np.concatenate([text(number, generator) for number in own]) for own in both])

    return draw
