"""Stories in lines."""

import json

import pytest

from heedful.errors import DataError
from heedful.text.stories import Story, parse_story

STORY = Story(("Ada went home.", "Boris left."), "Where is Ada?", "home", (0,))


def test_json_and_tabs_are_read():
    assert parse_story(STORY.to_json(), "x", 1) == STORY
    assert parse_story("Ada went home. | Boris left.\tWhere is Ada?\thome", "x", 1).facts == STORY.facts
    assert parse_story("\tWhere is Ada?", "x", 1) == Story((), "Where is Ada?")
    assert parse_story('{"facts": "Ada went home.", "question": "Where?"}', "x", 1).facts == ("Ada went home.",)
    assert parse_story('{"facts": ["a"], "question": "b", "answer": "c", "other": 1}', "x", 1).answer == "c"


def test_blank_facts_are_left_out_and_supporting_ones_stay_the_same():
    row = {"facts": ["", "a", " ", "b"], "question": "?", "supporting": [3, 1, 3, 0]}
    assert parse_story(json.dumps(row), "x", 1) == Story(("a", "b"), "?", "", (1, 0))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("", "neither JSON nor facts"),
        ("a\tb\tc\td", "neither JSON nor facts"),
        ("{", "not JSON"),
        ('{"question": "?"}', "no key 'facts', nor 'passage'"),
        ('{"fact": ["a"], "question": "?"}', "did you mean"),
        ('{"facts": ["a"]}', "no key 'question'"),
        ('{"facts": [1], "question": "?"}', "'facts' holds int at index 0"),
        ('{"passage": ["a", null], "question": "?"}', "'passage' holds NoneType at index 1"),
        ('{"passage": 1, "question": "?"}', "'passage' is int"),
        ('{"passage": "\\u0000", "question": "?"}', "NUL character in 'passage'"),
        ('{"facts": 1, "question": "?"}', "'facts' is int"),
        ('{"facts": ["a"], "question": null}', "'question' is NoneType"),
        ('{"facts": ["a"], "question": "?", "answer": 1}', "'answer' is int"),
        ('{"facts": [], "question": "?", "supporting": [0]}', "expected none, because there are no facts"),
        ('{"facts": ["a"], "question": "?", "supporting": [1]}', "numbers from 0 to 0"),
        ('{"facts": ["a"], "question": "?", "supporting": [true]}', "numbers from 0 to 0"),
        ('{"facts": ["a"], "question": "?", "supporting": "0"}', "numbers from 0 to 0"),
        ('{"facts": ["\\ud800"], "question": "?"}', "lone surrogate"),
        ('{"facts": ["a"], "question": "\\u0000"}', "NUL character in 'question'"),
        ('{"facts": ' + "[" * 100_000, "nested too deeply"),
        ('{"facts": ["a"], "question": ' + "1" * 5000 + "}", "invalid JSON"),
    ],
)
def test_other_lines_are_refused_with_their_place(line: str, complaint: str):
    with pytest.raises(DataError, match=complaint) as error:
        parse_story(line, "stories.jsonl", 7)
    assert str(error.value).startswith("stories.jsonl:7:")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("cell", "facts"),
    [("a | b", ("a", "b")), ("x|y went home | b", ("x|y went home", "b")), ("| a |", ("a",)), ("a |b", ("a |b",))],
)
def test_facts_are_separated_by_bars_between_spaces(cell: str, facts: tuple[str, ...]):
    assert parse_story(f"{cell}\tWhere?", "f", 1).facts == facts
