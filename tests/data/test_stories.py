"""Files of stories, and their token ids."""

from pathlib import Path

import numpy as np
import pytest

from heedful.data.stories import Stories, encode_story, find_stories, story_line
from heedful.errors import DataError
from heedful.predictors.answerer import story_of_line
from heedful.text.stories import Story
from heedful.text.tokenizer import TextConfig, train_tokenizer
from heedful.text.vocabulary import EOS

CONFIG = TextConfig(source_units="words", max_tokens=12)
TOKENIZER = train_tokenizer(["a b c d e f g h where is it"], "words", 0, CONFIG)


def encoded(*facts: str, question: str = "where is it") -> tuple[list[str], int, bool]:
    ids, number, was_cut = encode_story(TOKENIZER, Story(facts, question), CONFIG)
    parts = np.split(ids, np.flatnonzero(ids == EOS) + 1)[:-1]
    return [TOKENIZER.decode(part.tolist()) for part in parts], number, was_cut


def test_the_newest_fact_comes_first_and_the_oldest_are_left_out():
    assert encoded("a b", "c") == (["where is it", "c", "a b"], 2, False)
    assert encoded() == (["where is it"], 0, False)
    assert encoded("a b c", "d e", "f g") == (["where is it", "f g", "d e"], 2, True)


def test_long_texts_are_cut():
    texts, number, was_cut = encoded("a", "b " * 90, question="where " * 90)
    assert (texts, number, was_cut) == (["where " * 4 + "where", "b " * 4 + "b"], 1, True)


def test_blank_texts_are_empty():
    assert encoded(" ", question="") == (["", ""], 1, False)


def test_the_line_of_a_story_depends_on_all_but_the_answer():
    assert story_line(Story(("a", "b"), "where?", "c")) == story_line(Story(("a", "b"), "where?")) == "a | b | where?"


def test_a_file_is_read_lazily_and_each_time_anew(tmp_path: Path):
    path = tmp_path / "stories.tsv"
    path.write_text("a | b\twhere?\tc\n\n\td?\te\n", encoding="utf-8")
    file = find_stories((path,))
    assert [*file] == [*file] == [(1, Story(("a", "b"), "where?", "c")), (3, Story((), "d?", "e"))]
    assert (file.name, file.fingerprint()["files"][0]["lines"]) == ("stories", 3)
    assert "first: 2 facts, 'where?' -> 'c'" in file.describe()
    before = file.identity()
    path.write_text("longer | b\twhere?\tc\n", encoding="utf-8")
    assert file.identity() != before


def test_slices_of_stories_are_stories():
    stories = Stories((Story((), "a?", "x"), Story((), "b?", "y")))
    assert stories[1:].labels == ["y"]
    assert stories.texts == ["a?", "b?"]


def test_the_format_of_the_babi_tasks_is_read(tmp_path: Path):
    path = tmp_path / "qa1.txt"
    lines = [
        "1 Ada left.",
        "2 Where is Ada? \tgone\t1",
        "3 Ada came.",
        "4 Who came?\tAda\t3 1",
        "1 No.",
        "2 Who?\tnobody",
    ]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    assert [story for _, story in find_stories((path,))] == [
        Story(("Ada left.",), "Where is Ada?", "gone", (0,)),
        Story(("Ada left.", "Ada came."), "Who came?", "Ada", (1, 0)),
        Story(("No.",), "Who?", "nobody"),
    ]


@pytest.mark.parametrize("line", ["2 Who?\tAda\t2", "2 Who?\tAda\tone", "2 Who?\tAda\t1\tmore", "2 \tAda"])
def test_a_wrong_line_of_a_babi_task_is_refused(line: str, tmp_path: Path):
    path = tmp_path / "qa1.txt"
    path.write_text(f"1 Ada left.\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"qa1.txt:2: "):
        [*find_stories((path,))]


def test_a_fact_that_begins_with_a_number_is_no_line_of_a_babi_task(tmp_path: Path):
    path = tmp_path / "stories.tsv"
    path.write_text("1 dog | 2 cats\tHow many dogs?\tone\n", encoding="utf-8")
    assert [story for _, story in find_stories((path,))] == [Story(("1 dog", "2 cats"), "How many dogs?", "one")]


@pytest.mark.parametrize(
    "story",
    [
        Story(("Ada went.", "Boris ran."), "Where?"),
        Story(("a | b went.", "c"), "Where | who?"),
        Story(("a |", "b"), "q"),
        Story(("{", "b"), "q"),
        Story((), "q"),
    ],
)
def test_a_story_in_one_line_comes_back(story: Story):
    assert story_of_line(story_line(story)) == story
