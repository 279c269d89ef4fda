"""Generated notices."""

import pytest

from heedful.errors import UsageError
from heedful.synthetic.notices import generate


def test_the_supporting_fact_and_no_other_has_event_and_answer():
    for story in generate(300, 2):
        (index,) = story.supporting
        assert story.answer in story.facts[index]
        (event,) = {fact_event(story.question)}
        others = [fact for number, fact in enumerate(story.facts) if number != index]
        assert not any(event in fact and story.answer in fact for fact in others)
        assert event in story.facts[index]


def test_impossible_questions_lack_the_fact_that_answers_them():
    plain, mixed = [*generate(200, 2)], [*generate(200, 2, 0.3)]
    changed = [(story, other) for story, other in zip(plain, mixed, strict=True) if story != other]
    assert 30 < len(changed) < 90
    for story, other in changed:
        (index,) = story.supporting
        assert other.is_impossible
        assert (other.question, other.answer) == (story.question, "")
        assert other.facts == story.facts[:index] + story.facts[index + 1 :]


def fact_event(question: str) -> str:
    """Two words before the end, or before the verb: sort and kind of the event."""
    for sort in ("autumn", "spring", "first", "second", "children's", "annual", "charity", "open-air"):
        if f"{sort} " in question:
            rest = question[question.index(f"{sort} ") :].rstrip("?").split()
            return " ".join(rest[:2])
    raise AssertionError(question)


def test_the_seed_decides_and_more_begin_alike():
    assert [*generate(5, 1)] == [*generate(9, 1)][:5]
    assert [*generate(5, 1)] != [*generate(5, 2)]
    with pytest.raises(UsageError, match="give 0 or more"):
        generate(-1, 0)
