"""Generated stories: answers that follow from their facts, and only from all supporting ones."""

import re
from collections.abc import Iterable

import pytest

from heedful.errors import UsageError
from heedful.synthetic.facts import PLACES, generate
from heedful.text.stories import Story

MOVE = re.compile(r"(\w+) (?:\w+) to the (\w+)\.")
TAKE = re.compile(r"(\w+) (?:took|picked up|grabbed) the (\w+)\.")
DROP = re.compile(r"(\w+) (?:dropped|put down|left) the (\w+)\.")


def solve(facts: Iterable[str], question: str) -> str | None:
    """Answer by a second reading of the facts: where each person and thing is, and where it was before."""
    here: dict[str, str] = {}
    holder: dict[str, str] = {}
    path: dict[str, list[str]] = {}
    for fact in facts:
        if move := MOVE.fullmatch(fact):
            person, place = move.groups()
            here[person] = place
            for thing in (thing for thing, one in holder.items() if one == person):
                path.setdefault(thing, []).append(place)
        elif take := TAKE.fullmatch(fact):
            person, thing = take.groups()
            holder[thing] = person
            if person in here:
                path.setdefault(thing, []).append(here[person])
        elif drop := DROP.fullmatch(fact):
            person, thing = drop.groups()
            holder.pop(thing, None)
            if person in here:
                path.setdefault(thing, []).append(here[person])
        else:
            raise AssertionError(fact)
    if earlier := re.fullmatch(r"Where was the (\w+) before the (\w+)\?", question):
        thing, place = earlier.groups()
        places = path.get(thing, [])
        last = max((index for index, one in enumerate(places) if one == place), default=-1)
        before = [one for one in places[: max(0, last)] if one != place]
        return before[-1] if before else None
    thing = re.fullmatch(r"Where is the (\w+)\?", question)
    if thing:
        return path[thing[1]][-1] if path.get(thing[1]) else None
    person = re.fullmatch(r"Where is (\w+)\?", question)
    assert person
    return here.get(person[1])


@pytest.mark.parametrize("num_supporting", [1, 2, 3])
def test_the_answer_follows_from_the_facts_and_from_the_supporting_ones_alone(num_supporting: int):
    for story in generate(1_000, num_supporting, seed=5):
        assert len(story.supporting) == num_supporting
        assert story.answer in PLACES
        assert solve(story.facts, story.question) == story.answer, story
        supporting = [story.facts[index] for index in story.supporting]
        assert solve(supporting, story.question) == story.answer, story
        for left_out in supporting:
            fewer = [fact for fact in supporting if fact != left_out]
            assert solve(fewer, story.question) != story.answer, story


def test_a_wrong_answer_would_be_seen():
    story = Story(("Ada went to the attic.", "Boris ran to the cellar."), "Where is Ada?", "cellar", (1,))
    assert solve(story.facts, story.question) != story.answer


def test_stories_are_a_function_of_the_seed_and_fewer_are_a_prefix():
    first = [*generate(20, 2, seed=1)]
    assert [*generate(5, 2, seed=1)] == first[:5]
    assert [*generate(20, 2, seed=2)] != first
    assert first[0].question == "Where is the flute?"


@pytest.mark.parametrize(("number", "num_supporting"), [(-1, 1), (1, 4)])
def test_wrong_numbers_are_refused(number: int, num_supporting: int):
    with pytest.raises(UsageError, match="give"):
        generate(number, num_supporting, seed=1)  # pyright: ignore[reportArgumentType]
