"""Generated stories with questions, whose answers follow from one, two or three of their facts.

    one      Ada went to the cellar. Boris ran to the garden.                    Where is Ada?             cellar
    two      Ada took the lamp. Ada went to the cellar. Boris ran home.          Where is the lamp?        cellar
    three    Ada ran to the attic. Ada took the lamp. Ada went to the cellar.    Where was the lamp before the cellar?

The families are those of the first three of the bAbI tasks, Weston et al. 2015, arXiv:1502.05698, with other names,
words and rules. All stories are a function of the seed, on every machine and in every version of Python.
"""

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, final

from heedful.errors import UsageError
from heedful.text.stories import Story

NumSupporting = Literal[1, 2, 3]
PEOPLE: Final = ("Ada", "Boris", "Chen", "Dora", "Emil", "Farah", "Goran", "Hana")
PLACES: Final = ("cellar", "garden", "attic", "library", "stable", "market", "harbour", "kitchen")
THINGS: Final = ("lamp", "letter", "basket", "coin", "flute", "map")
_MOVES: Final = ("went to", "walked to", "ran to", "hurried to")
_TAKES: Final = ("took", "picked up", "grabbed")
_DROPS: Final = ("dropped", "put down", "left")
_NUM_FACTS: Final = {1: (2, 12), 2: (4, 16), 3: (6, 20)}
"""Fewest and most facts of a story, by the number of supporting ones."""
_PEOPLE_PER_STORY: Final = 4
_THINGS_PER_STORY: Final = 3


def generate(num_stories: int, num_supporting: NumSupporting, seed: int) -> Iterator[Story]:
    """Generate stories, with equal other arguments the first ones of more stories.

    Args:
        num_stories: number of stories, 0 or more.
        num_supporting: number of facts that each answer follows from, 1, 2 or 3.
        seed: any whole number.

    Returns:
        Stories of 2 to 20 facts; the answer is one of `PLACES`.

    Raises:
        UsageError: `num_stories` is below 0, or `num_supporting` is none of 1, 2 and 3.

    Example:
        >>> next(generate(1, 1, seed=3)).question
        'Where is Goran?'
    """
    if num_stories < 0:
        raise UsageError(f"num_stories is {num_stories}: give 0 or more")
    if num_supporting not in _NUM_FACTS:
        raise UsageError(f"num_supporting is {num_supporting}: give 1, 2 or 3")
    name = f"facts/{num_supporting}/{seed}".encode()
    source = random.Random(int.from_bytes(hashlib.blake2b(name, digest_size=16).digest(), "big"))
    return (_story(source, num_supporting) for _ in range(num_stories))


def _story(source: random.Random, num_supporting: NumSupporting) -> Story:
    while True:
        world = _World(source, has_things=num_supporting > 1)
        for _ in range(source.randint(*_NUM_FACTS[num_supporting])):
            world.act()
        questions = (world.of_people, world.of_things, world.of_earlier_places)[num_supporting - 1]()
        if questions:
            question, answer, supporting = source.choice(questions)
            return Story(tuple(world.facts), question, answer, tuple(sorted(supporting)))


_Question = tuple[str, str, tuple[int, ...]]
"""Question, its answer, and the indices of its supporting facts."""


@final
@dataclass
class _Move:
    """Move of a person."""

    place: str
    fact: int
    """Index of the fact that tells of it."""


@final
class _World:
    """People who move, and things that they take and drop; everything known follows from the facts."""

    def __init__(self, source: random.Random, has_things: bool) -> None:
        self._source: Final = source
        self._people: Final = source.sample(PEOPLE, _PEOPLE_PER_STORY)
        self._things: Final = source.sample(THINGS, _THINGS_PER_STORY if has_things else 0)
        self._moves: Final[dict[str, list[_Move]]] = {person: [] for person in self._people}
        self._holders: Final[dict[str, tuple[str, int]]] = {}
        """Person who has a thing, and the fact of taking it."""
        self._dropped: Final[dict[str, _Question]] = {}
        """Question about each thing that lies where it was dropped."""
        self._earlier: Final[dict[tuple[str, str], _Question]] = {}
        """Question about the place of each thing before another place."""
        self.facts: Final[list[str]] = []

    def act(self) -> None:
        """Let something happen: a person moves, takes a thing at the same place, or drops one."""
        person = self._source.choice(self._people)
        carried = [thing for thing, (holder, _) in self._holders.items() if holder == person]
        chance = self._source.random()
        if carried and chance < 0.2:
            self._drop(person, self._source.choice(carried))
        elif self._moves[person] and chance < 0.55 and (near := self._near(person)):
            thing = self._source.choice(near)
            self._dropped.pop(thing, None)
            self._holders[thing] = (person, len(self.facts))
            self.facts.append(f"{person} {self._source.choice(_TAKES)} the {thing}.")
        else:
            self._move(person, carried)

    def _near(self, person: str) -> list[str]:
        """Things that a person may take: those that nobody has, and that do not lie at another place."""
        here = self._moves[person][-1].place
        return [
            thing
            for thing in self._things
            if thing not in self._holders and (thing not in self._dropped or self._dropped[thing][1] == here)
        ]

    def _drop(self, person: str, thing: str) -> None:
        last = self._moves[person][-1]
        del self._holders[thing]
        self._dropped[thing] = (f"Where is the {thing}?", last.place, (last.fact, len(self.facts)))
        self.facts.append(f"{person} {self._source.choice(_DROPS)} the {thing}.")

    def _move(self, person: str, carried: list[str]) -> None:
        before = self._moves[person][-1] if self._moves[person] else None
        goal = self._source.choice([one for one in PLACES if before is None or one != before.place])
        if before is not None:
            for thing in carried:
                supporting = (before.fact, self._holders[thing][1], len(self.facts))
                question = f"Where was the {thing} before the {goal}?"
                self._earlier[thing, goal] = (question, before.place, supporting)
        self._moves[person].append(_Move(goal, len(self.facts)))
        self.facts.append(f"{person} {self._source.choice(_MOVES)} the {goal}.")

    def of_people(self) -> list[_Question]:
        return [
            (f"Where is {person}?", moves[-1].place, (moves[-1].fact,))
            for person, moves in self._moves.items()
            if moves
        ]

    def of_things(self) -> list[_Question]:
        carried = [
            (f"Where is the {thing}?", self._moves[person][-1].place, (self._moves[person][-1].fact, take))
            for thing, (person, take) in self._holders.items()
        ]
        return [*carried, *self._dropped.values()]

    def of_earlier_places(self) -> list[_Question]:
        return [*self._earlier.values()]
