"""Generated notices and questions about them, whose answers are spans of the notice.

    The autumn fair opens in the old mill on 9 May. Ada Stone, a baker, leads the poetry evening at half past six. ...
    Where does the autumn fair open?       the old mill
    Who leads the poetry evening?          Ada Stone

Every notice tells place, person, day and hour of several events, each in one of several wordings, so that most of its
names, places and times answer other questions. All notices are a function of the seed, on every machine and in every
version of Python.
"""

import hashlib
import random
from collections.abc import Iterator
from typing import Final

from heedful.errors import UsageError
from heedful.text.stories import Story

_FIRST: Final = ("Ada", "Boris", "Chen", "Dora", "Emil", "Farah", "Goran", "Hana", "Ivo", "Jana", "Kofi", "Lena")
_LAST: Final = ("Stone", "Brandt", "Li", "Okafor", "Silva", "Novak", "Haddad", "Moreau", "Kim", "Larsen")
_TRADES: Final = ("a baker", "a retired pilot", "a gardener", "a young teacher", "a doctor", "a carpenter")
_KINDS: Final = ("fair", "concert", "market", "lecture", "race", "poetry evening", "workshop", "puppet show")
_SORTS: Final = ("autumn", "spring", "first", "second", "children's", "annual", "charity", "open-air")
_SITES: Final = ("mill", "town hall", "harbour", "school", "library", "railway museum", "park", "church", "theatre")
_LOOKS: Final = ("old", "new", "little", "upper", "restored", "covered")
_MONTHS: Final = ("January", "March", "April", "May", "July", "August", "October", "December")
_HOURS: Final = ("noon", "half past six", "eight o'clock", "a quarter to nine", "ten in the morning", "three o'clock")
_ABOUT: Final = {
    "place": (
        (
            "The {event} takes place in {place}.",
            "You will find the {event} at {place}.",
            "The {event} opens in {place}.",
        ),
        ("Where is the {event}?", "Where does the {event} take place?", "At which place is the {event}?"),
    ),
    "person": (
        (
            "{person}, {trade}, leads the {event}.",
            "The {event} is led by {person}, {trade}.",
            "{person} runs the {event}.",
        ),
        ("Who leads the {event}?", "By whom is the {event} led?", "Who is in charge of the {event}?"),
    ),
    "day": (
        ("The {event} is on {day}.", "Come to the {event} on {day}.", "On {day} there is the {event}."),
        ("On which day is the {event}?", "When is the {event}?", "What is the date of the {event}?"),
    ),
    "hour": (
        ("The {event} begins at {hour}.", "Doors of the {event} open at {hour}.", "At {hour} the {event} starts."),
        (
            "At what time does the {event} begin?",
            "When do the doors of the {event} open?",
            "What hour does the {event} start?",
        ),
    ),
}
"""Wordings of a fact and of a question about it, by the part of an event that they tell."""
_NUM_EVENTS: Final = (2, 4)


def generate(num_stories: int, seed: int, impossible_share: float = 0.0) -> Iterator[Story]:
    """Generate notices with a question each, with the same seed the first ones of more.

    Args:
        num_stories: number of notices, 0 or more.
        seed: any whole number.
        impossible_share: share of the notices that lack the sentence with the answer, in [0, 1].

    Returns:
        Stories whose facts are the sentences of the notice, of which one has the answer unless the question is
        impossible; the same questions whatever the share.

    Raises:
        UsageError: `num_stories` is below 0.

    Example:
        >>> story = next(generate(1, seed=1))
        >>> story.answer in story.facts[story.supporting[0]]
        True
    """
    if num_stories < 0:
        raise UsageError(f"num_stories is {num_stories}: give 0 or more")
    name = f"notices/{seed}".encode()
    source = random.Random(int.from_bytes(hashlib.blake2b(name, digest_size=16).digest(), "big"))
    other = random.Random(f"{seed}/impossible")
    stories = (_notice(source) for _ in range(num_stories))
    return (_without_answer(story) if other.random() < impossible_share else story for story in stories)


def _without_answer(story: Story) -> Story:
    facts = tuple(fact for index, fact in enumerate(story.facts) if index not in story.supporting)
    return Story(facts, story.question, is_impossible=True)


def _notice(source: random.Random) -> Story:
    number = source.randint(*_NUM_EVENTS)
    events = [f"{sort} {source.choice(_KINDS)}" for sort in source.sample(_SORTS, number)]
    facts: list[tuple[str, str, str, str]] = []
    for event in events:
        values = {
            "place": f"the {source.choice(_LOOKS)} {source.choice(_SITES)}",
            "person": f"{source.choice(_FIRST)} {source.choice(_LAST)}",
            "day": f"{source.randint(1, 28)} {source.choice(_MONTHS)}",
            "hour": source.choice(_HOURS),
        }
        for part in source.sample([*_ABOUT], source.randint(2, len(_ABOUT))):
            wording = source.choice(_ABOUT[part][0])
            fact = wording.format(event=event, trade=source.choice(_TRADES), **values)
            facts.append((fact[0].upper() + fact[1:], part, event, values[part]))
    source.shuffle(facts)
    index = source.randrange(len(facts))
    fact, part, event, answer = facts[index]
    # A place at the beginning of a sentence would have a capital letter.
    question = source.choice(_ABOUT[part][1]).format(event=event)
    return Story(
        tuple(fact for fact, *_ in facts), question, answer if answer in fact else answer.capitalize(), (index,)
    )
