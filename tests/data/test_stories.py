"""Files of stories, and their token ids."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.data.passages import answer_place
from heedful.data.stories import Stories, answered_stories, encode_story, find_stories, part_names, story_line
from heedful.errors import DataError
from heedful.predictors.answerer import story_of_line
from heedful.text.stories import Story
from heedful.text.tokenizer import TextConfig
from heedful.text.tokenizer_training import train_tokenizer
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


PASSAGE = "The cat sat. The dog ran after the cat. 汉语"
SQUAD = {
    "version": "v2.0",
    "data": [
        {
            "title": "Animals",
            "paragraphs": [
                {
                    "context": PASSAGE,
                    "qas": [
                        {"id": "1", "question": "Who ran?", "answers": [{"text": "dog", "answer_start": 17}]},
                        {"id": "2", "question": "After whom?", "answers": [{"text": "cat", "answer_start": 35}] * 3},
                        {"id": "3", "question": "Why?", "answers": [], "is_impossible": True},
                    ],
                }
            ],
        }
    ],
}


def test_squad_and_tables_of_it_give_the_same_stories(tmp_path: Path):
    wanted = [
        Story((PASSAGE,), "Who ran?", "dog", occurrence=0),
        Story((PASSAGE,), "After whom?", "cat", occurrence=1),
    ]

    def file(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text, "utf-8")
        return tmp_path / name

    def table(name: str, rows: list[tuple[Any, ...]]) -> Path:
        stream = io.StringIO()
        csv.writer(stream).writerows([("id", "title", "context", "question", "answers"), *rows])
        return file(name, stream.getvalue())

    rows: list[dict[str, Any]] = [
        {"id": "1", "context": PASSAGE, "question": "Who ran?", "answers": {"text": ["dog"], "answer_start": [17]}},
        {"id": "2", "context": PASSAGE, "question": "After whom?", "answers": {"text": ["cat"], "answer_start": [35]}},
        {"id": "3", "context": PASSAGE, "question": "Why?", "answers": {"text": [], "answer_start": []}},
    ]
    python = [str({"text": one["answers"]["text"], "answer_start": one["answers"]["answer_start"]}) for one in rows]
    pandas = [
        one.replace("['dog']", "array(['dog'], dtype=object)").replace("[17]", "array([17], dtype=int32)")
        for one in python
    ]
    heads = [tuple(one[key] for key in ("id", "id", "context", "question")) for one in rows]
    paths = [
        file("one-line.json", json.dumps(SQUAD)),
        file("lines.json", json.dumps(SQUAD, indent=1)),
        file("hub.jsonl", "".join(json.dumps(row) + "\n" for row in rows)),
        table("hub.csv", [(*head, answer) for head, answer in zip(heads, python, strict=True)]),
        table("pandas.csv", [(*head, answer) for head, answer in zip(heads, pandas, strict=True)]),
    ]
    for path in paths:
        stories = find_stories([path])
        assert [*answered_stories(stories)] == wanted, path.name
        (note,) = stories.notes
        assert note.startswith("1 of 3 questions left out; the first: ")
        *rest, third = answered_stories(find_stories([path]), keeps_impossible=True)
        assert rest == wanted, path.name
        assert (third.question, third.answer, third.is_impossible) == ("Why?", "", True), path.name
    # Without offsets, the place is found by the text.
    plain = file("plain.tsv", f"passage\tquestion\tanswer\n{PASSAGE}\tWho ran?\tdog\n{PASSAGE}\tAfter whom?\tcat\n")
    assert [*answered_stories(find_stories([plain]))] == [Story((PASSAGE,), one.question, one.answer) for one in wanted]
    assert answer_place(wanted[1]) == (35, 38)
    assert answer_place(Story((PASSAGE,), "After whom?", "cat")) == (4, 7)
    unanswered = file("unanswered.jsonl", json.dumps(rows[2]))
    with pytest.raises(DataError, match="no answer"):
        list(answered_stories(find_stories([unanswered])))
    mostly = [*rows[:2]] * 10 + [{"context": PASSAGE, "question": "Who?", "answer": "the cow"}]
    found = find_stories([file("mostly.jsonl", "".join(json.dumps(row) + "\n" for row in mostly) + "{\n")], True)
    assert len([*answered_stories(found, in_facts=True)]) == 20
    assert [note for note in found.notes if "the cow" in note and "1 of 21" in note]
    assert [note for note in found.notes if "left out as unreadable: line 22" in note]
    too_many = find_stories([file("cow.jsonl", "".join(json.dumps(row) + "\n" for row in mostly[18:]))])
    with pytest.raises(DataError, match="the cow"):
        list(answered_stories(too_many, in_facts=True))


@pytest.mark.parametrize("names", ["doc,q,a", "context,q,a", "id,story_text,q,reply", "passage,question,answer"])
def test_headings_of_unknown_names_are_no_story(names: str, tmp_path: Path):
    heads = names.split(",")
    rows = [(f"Ada went to room {n}. Bo left.", f"Where did Ada go on day {n}?", f"room {n}") for n in range(4)]
    for separator, suffix in ((",", "csv"), ("\t", "tsv")):
        lines = [heads, *(["7"] * (len(heads) - 3) + [*row] for row in rows)]
        path = tmp_path / f"a.{suffix}"
        path.write_text("".join(separator.join(line) + "\n" for line in lines), "utf-8")
        stories = [story for _, story in find_stories([path])]
        assert [(story.question, story.answer) for story in stories] == [row[1:] for row in rows]
        assert all(" ".join(story.facts) == row[0] for story, row in zip(stories, rows, strict=True))
        path.write_text("".join(separator.join(row) + "\n" for row in rows), "utf-8")
        assert len([*find_stories([path])]) == len(rows)


def test_no_row_of_data_is_taken_for_headings_of_stories(tmp_path: Path):
    path = tmp_path / "a.tsv"
    rows = [("Rain", "Why", "cold"), *[("It rained all day.", f"How was day {n}?", "wet") for n in range(4)]]
    path.write_text("".join("\t".join(row) + "\n" for row in [rows[0], rows[1], *rows]), "utf-8")
    assert len([*find_stories([path])]) == len(rows) + 2


def test_columns_of_unknown_names_are_taken_in_order_only_if_there_are_as_many_as_parts():
    assert part_names(["doc", "q", "a"]) == ("facts", "question", "answer")
    assert part_names(["doc", "q"]) == ("facts", "question")
    assert part_names(["title", "context", "q", "a"]) == ("title", "context", "q", "a")
