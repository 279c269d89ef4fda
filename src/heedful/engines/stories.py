"""Stories of a batch as named NumPy arrays: a question and any number of facts, each a sequence of tokens."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.search.inputs import InputArrays, InputDraw, IntArray
from heedful.text.vocabulary import EOS, PAD, UNK

_LONGEST_QUESTION: Final = 4
"""Most tokens of a drawn question; another number than that of a fact, so that no axis is mistaken for another."""
_LONGEST_FACT: Final = 6
"""Most tokens of a drawn fact."""


@final
class StoryArrays(InputArrays):
    """Sources that are a question and facts; the facts are the positions that a model attends to."""

    axis_names: ClassVar[Mapping[str, Mapping[int, str]]] = MappingProxyType(
        {"question": {1: "question_word"}, "facts": {1: "fact", 2: "word"}}
    )

    def __init__(self, sequences: Sequence[IntArray], room: int = 0) -> None:
        """Cut sequences of tokens into questions and facts.

        Args:
            sequences: [position] ids of each story: the question, then the facts, the newest first, each ending in EOS.
            room: least number of facts of the padded arrays.
        """
        self.sequences: Final = tuple(np.asarray(ids, dtype=np.int64) for ids in sequences)
        self._texts: Final = [_cut(ids) for ids in self.sequences]
        self._room: Final = room

    def __len__(self) -> int:
        return len(self.sequences)

    def take(self, rows: Iterable[int]) -> "StoryArrays":
        return StoryArrays([self.sequences[row] for row in rows])

    def named_arrays(self) -> dict[str, NDArray[Any]]:
        """Pad the stories to arrays.

        Returns:
            "question" [story, word] and "facts" [story, fact, word] token ids, padded with 0 and without EOS, and
            "num_facts" [story]. The axes of facts and words have at least one position.
        """
        longest = max((text.size for texts in self._texts for text in texts[1:]), default=0)
        question = np.full((len(self), max(1, *(texts[0].size for texts in self._texts))), PAD, dtype=np.int64)
        facts = np.full((len(self), self.width, max(1, longest)), PAD, dtype=np.int64)
        for row, texts in enumerate(self._texts):
            question[row, : texts[0].size] = texts[0]
            for index, text in enumerate(texts[1:]):
                facts[row, index, : text.size] = text
        num_facts = np.array([len(texts) - 1 for texts in self._texts], dtype=np.int64)
        return {"question": question, "facts": facts, "num_facts": num_facts}

    @property
    def num_positions(self) -> IntArray:
        """[source] number of facts; 1 for a story without facts, whose only position is padding."""
        return np.array([max(1, len(texts) - 1) for texts in self._texts], dtype=np.int64)

    @property
    def num_numbers(self) -> IntArray:
        """[source] number of token ids of each story when padded by itself."""
        return np.array([len(texts) * max(1, *(text.size for text in texts)) for texts in self._texts], dtype=np.int64)

    @property
    def length_hint(self) -> IntArray:
        """[source] number of tokens, without EOS."""
        return np.array([sum(text.size for text in texts) for texts in self._texts], dtype=np.int64)

    @property
    def width(self) -> int:
        """Number of facts of the padded array."""
        return max(self._room, super().width)

    def widened(self, width: int) -> "StoryArrays":
        return StoryArrays(self.sequences, width)

    def with_fillers(self, num_positions: Sequence[int]) -> "StoryArrays":
        fillers = [np.array([UNK, EOS] * (number + 1), dtype=np.int64) for number in num_positions]
        return StoryArrays([*self.sequences, *fillers], self._room)


def _cut(ids: IntArray) -> list[IntArray]:
    """Question and facts, without EOS."""
    ends = np.flatnonzero(ids == EOS)
    return [part[part != EOS] for part in np.split(ids, ends + 1)[: max(1, len(ends))]]


def story_draw(num_tokens: int) -> InputDraw:
    """Return a function that draws random stories.

    Returns:
        A function that draws ordinary tokens; the positions of a story are its facts.

    Example:
        >>> story_draw(9)(np.array([1, 4]), np.random.default_rng(0)).num_positions.tolist()
        [1, 4]
    """
    first = min(EOS + 1, num_tokens - 1)

    def text(longest: int, generator: np.random.Generator) -> IntArray:
        return np.append(generator.integers(first, num_tokens, generator.integers(1, longest + 1)), EOS)

    def draw(num_positions: IntArray, generator: np.random.Generator) -> InputArrays:
        longest = ([_LONGEST_QUESTION, *[_LONGEST_FACT] * number] for number in num_positions.tolist())
        return StoryArrays([np.concatenate([text(most, generator) for most in own]) for own in longest])

    return draw
