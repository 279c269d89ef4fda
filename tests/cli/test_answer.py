"""`heedful train --task answering`, `answer` and `evaluate` of its model."""

import csv
import io
import json
from pathlib import Path

import pytest

from heedful.text.stories import parse_story
from tests.cli.command import heedful
from tests.tasks.stories import SETTINGS, write_stories


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answer")
    data, out = write_stories(folder / "stories.jsonl", 2_000), folder / "m"
    settings = [word for setting in (*SETTINGS, "training.max_steps=60") for word in ("--set", setting)]
    done = heedful("train", data, "--task", "answering", "--out", out, "--threads", "1", *settings)
    assert done.code == 0, done.err
    assert "supporting facts have the largest weight" in done.out
    assert f"next:  heedful answer {out}" in done.out
    return out


def test_stories_of_a_file_get_answers(model: Path, tmp_path: Path):
    data = write_stories(tmp_path / "in.jsonl", 5, seed=3)
    lines = heedful("answer", model, data).out.splitlines()
    assert len(lines) == 5
    assert all(0.0 < float(line.split("\t")[1]) <= 1.0 for line in lines)
    heedful("answer", model, data, "-o", tmp_path / "out.tsv")
    assert (tmp_path / "out.tsv").read_text(encoding="utf-8").splitlines() == lines
    assert heedful("answer", model, stdin=data.read_bytes()).out.splitlines() == lines


def test_facts_and_questions_may_be_told_line_by_line(model: Path):
    text = "Ada went to the attic.\nBoris ran home.\nWhere is Ada?\n\nWhere is Ada？\na | b\tWhere?\n"
    done = heedful("answer", model, "--format", "jsonl", stdin=text.encode())
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [row["facts"] for row in rows] == [["Ada went to the attic.", "Boris ran home."], [], ["a", "b"]]
    assert all(sum(step) == pytest.approx(1.0, abs=1e-4) for step in rows[0]["weights"])
    assert rows[1]["weights"] == [[], [], []]
    assert rows[0]["answer"] == next(iter(rows[0]["probabilities"]))


def test_a_line_that_is_no_story_is_refused_with_its_place(model: Path, tmp_path: Path):
    (tmp_path / "in.jsonl").write_text('{"facts": ["a"], "question": "b"}\n{"facts": 3}\n', encoding="utf-8")
    done = heedful("answer", model, tmp_path / "in.jsonl")
    assert done.code == 2
    assert "in.jsonl:2: no key 'question'" in done.errors[0]
    assert len(done.errors) == 1


def test_a_passage_without_text_has_no_answer_and_a_warning(tmp_path: Path):
    data = write_stories(tmp_path / "stories.jsonl", 40)
    sizes = ("model.embedding_size=8", "model.hidden_size=8", "training.max_steps=1", "training.export=false")
    settings = [word for setting in sizes for word in ("--set", setting)]
    done = heedful("train", data, "--task", "answering", "--preset", "bidaf", "--out", tmp_path / "m", *settings)
    assert done.code == 0, done.err
    rows = b'{"facts": ["Ada ran."], "question": "Who?"}\n{"facts": [], "question": "Who?"}\n'
    done = heedful("answer", tmp_path / "m", stdin=rows)
    assert done.code == 0
    assert [bool(line.split("\t")[0]) for line in done.out.split("\n")[:-1]] == [True, False]
    assert "standard input:2: no facts, so no answer" in done.err
    assert done.err.count("no facts") == 1


def test_an_answer_without_facts_or_question_has_a_warning(model: Path):
    rows = b'{"facts": ["Ada ran."], "question": "Who?"}\n{"facts": [], "question": "Who?"}\n'
    done = heedful("answer", model, stdin=rows + b'{"facts": ["Ada ran."], "question": " "}\n')
    assert done.code == 0
    assert [bool(line.split("\t")[0]) for line in done.out.split("\n")[:-1]] == [True, True, True]
    assert done.err.splitlines() == [
        "heedful: warning: standard input:2: no facts, so the answer is a guess",
        "heedful: warning: standard input:3: no question, so the answer is a guess",
    ]


def test_a_long_question_is_cut_with_a_warning(model: Path):
    done = heedful("answer", model, stdin=b'{"facts": [], "question": "' + b"where " * 2_000 + b'"}\n')
    assert done.code == 0
    assert "standard input:1: cut after 1000 tokens" in done.err


def test_its_model_is_evaluated_and_compared(model: Path, tmp_path: Path):
    data = write_stories(tmp_path / "other.jsonl", 60, seed=9)
    done = heedful("evaluate", model, data)
    assert done.code == 0, done.err
    assert "macro-F1" in done.out
    assert "predicted label" in done.out
    assert "; the most frequent answer of these questions alone has " in done.out.splitlines()[2]
    assert "unseen" not in done.out
    story = {"facts": ["Ada went to the moon."], "question": "Where is Ada?", "answer": "moon"}
    other = tmp_path / "unseen.jsonl"
    other.write_text(data.read_text("utf-8") + json.dumps(story) + "\n", "utf-8")
    done = heedful("evaluate", model, other)
    assert "1 question with 1 answer unseen in training: 'moon'" in done.out.splitlines()
    facts = json.loads(heedful("evaluate", model, data, "--format", "json").out)
    assert facts["num_items"] == facts["num_supporting"] == 60
    assert len(facts["confusion"]) == len(facts["labels"])
    assert "answering" in heedful("info", model).out


def test_other_commands_refuse_it_in_a_line(model: Path):
    done = heedful("classify", model, "x")
    assert done.code == 2
    assert "a model for answering, not for classification" in done.err


def test_numbered_lines_are_read_as_in_the_tasks_of_babi(model: Path, tmp_path: Path):
    text = "1 Ada went to the attic.\n2 Boris ran home.\n3 Where is Ada?\tattic\t1\n1 Cy ran.\n2 Where is Cy?\n"
    (tmp_path / "qa1.txt").write_text(text, encoding="utf-8")
    done = heedful("answer", model, tmp_path / "qa1.txt", "--format", "jsonl")
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [(row["facts"], row["question"]) for row in rows] == [
        (["Ada went to the attic.", "Boris ran home."], "Where is Ada?"),
        (["Cy ran."], "Where is Cy?"),
    ]
    done = heedful("answer", model, "--format", "jsonl", stdin=b"3 apples fell.\nWhere are they?\n")
    assert json.loads(done.out)["facts"] == ["3 apples fell."]


def test_options_for_translation_are_refused(model: Path, tmp_path: Path):
    data = write_stories(tmp_path / "other.jsonl", 20, seed=9)
    for option in (["--beam", "2"], ["--replace-unknown"], ["--batch-tokens", "7"]):
        done = heedful("evaluate", model, data, *option)
        assert (done.code, len(done.errors)) == (2, 1)
        assert f"a model for answering has no {option[0]}" in done.errors[0]
    assert json.loads(heedful("evaluate", model, data, "--limit", "3", "--format", "json").out)["num_items"] == 3


def test_headings_in_capitals_are_read_and_missing_ones_are_one_line(model: Path, tmp_path: Path):
    head, *rows = ["nr,{},Question", "1,Ada went to the attic.,Where is Ada?", "2,Bo left.,Where is Bo?"]
    (tmp_path / "in.csv").write_text("\n".join([head.format("Passage"), *rows]), "utf-8")
    done = heedful("answer", model, tmp_path / "in.csv", "-o", tmp_path / "out.csv")
    assert done.code == 0, done.err
    assert "warning" not in done.err
    answered = (tmp_path / "out.csv").read_text("utf-8").splitlines()
    assert answered[0] == "nr,Passage,Question,answer,probability"
    assert all(row.split(",")[3] for row in answered[1:])
    (tmp_path / "other.csv").write_text("\n".join([head.format("Notes"), *rows]), "utf-8")
    done = heedful("answer", model, tmp_path / "other.csv", "-o", tmp_path / "none.csv")
    assert (done.code, (tmp_path / "none.csv").exists()) == (2, False)
    assert "no column of facts (facts, passage, context, paragraph); it has nr, Notes, Question" in done.err


def test_headings_of_unknown_names_are_read_in_their_order_and_told(model: Path, tmp_path: Path):
    rows = [f"Ada went to the attic on day {n}.,Where is Ada now?" for n in range(4)]
    (tmp_path / "in.csv").write_text("\n".join(["doc,q", *rows]), "utf-8")
    done = heedful("answer", model, tmp_path / "in.csv")
    assert done.code == 0, done.err
    assert done.out.splitlines()[0] == "doc,q,answer,probability"
    assert len(done.out.splitlines()) == 5
    assert f"{tmp_path / 'in.csv'}: facts in column doc, question in column q" in done.err


def test_a_table_comes_back_with_answers(model: Path, tmp_path: Path):
    stories = [parse_story(line, "x", 1) for line in write_stories(tmp_path / "in.jsonl", 9).read_text().splitlines()]
    wanted = [line.split("\t")[0] for line in heedful("answer", model, tmp_path / "in.jsonl").out.splitlines()]
    stream = io.StringIO()
    rows = [(str(n), " ".join(story.facts), story.question) for n, story in enumerate(stories)]
    csv.writer(stream).writerows([("id", "context", "question"), *rows, ("9", "Ada left.", "")])
    (tmp_path / "in.csv").write_text(stream.getvalue(), "utf-8")
    done = heedful("answer", model, tmp_path / "in.csv", "-o", tmp_path / "out.jsonl")
    assert done.code == 0, done.err
    read = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert [(row["id"], row["context"], row["question"]) for row in read[:9]] == rows
    assert all(row["answer"] and 0 < row["probability"] <= 1 for row in read[:9])
    assert read[9]["answer"] is None
    lines = heedful("answer", model, tmp_path / "in.csv", "--format", "jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == read
    done = heedful("answer", model, tmp_path / "in.jsonl", "-o", tmp_path / "back.jsonl")
    read = [json.loads(line) for line in (tmp_path / "back.jsonl").read_text("utf-8").splitlines()]
    assert [row.get("predicted_answer", row.get("answer")) for row in read] == wanted
    assert [row["facts"] for row in read] == [[*story.facts] for story in stories]
