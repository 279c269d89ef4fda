"""Data doctor of the other tasks: every fault is told with its place, and sound data with none."""

import json
from pathlib import Path

from heedful.data.findings import CheckReport
from heedful.data.task_check import check_task
from tests.tasks.scenes import write_scenes


def told(report: CheckReport) -> dict[str, tuple[str, str, str]]:
    return {each.kind: (each.level, each.where.rpartition("/")[2], each.message) for each in report.findings}


def write(path: Path, rows: list[str]) -> Path:
    path.write_bytes("".join(f"{row}\n" for row in rows).encode("utf-8", "surrogateescape"))
    return path


def test_faults_of_labels(tmp_path: Path):
    good = [
        f"text of {word}{number}\t{label}" for number in range(40) for word, label in (("joy", "good"), ("woe", "bad"))
    ]
    sound = write(tmp_path / "sound.tsv", good)
    assert check_task("classification", [sound]).findings == ()
    bad = [
        "text of joy0\tbad",
        "new text\tGood",
        "blank\t",
        "one column",
        "other\trare",
        "text of woe1\tbad",
        "b\udcff\tbad",
    ]
    found = told(check_task("classification", [write(tmp_path / "a.tsv", [*good * 6, *bad])]))
    assert found["ambiguous"][:2] == ("warning", "a.tsv:481")
    assert found["alike labels"] == (
        "warning",
        "a.tsv:482",
        "labels that differ only in case or spaces: 'good' and 'Good'",
    )
    assert found["single rows"][2] == "2 labels of 4 with one row: 'Good', 'rare'"
    assert "2 of 487 rows left out as unreadable: lines 484, 487" in found["file"][2]
    assert found["empty"][:2] == ("note", "a.tsv:483")
    assert found["duplicate"][0] == "note"
    uneven = [f"text {number}\tgood" for number in range(99)]
    assert told(check_task("classification", [write(tmp_path / "u.tsv", [*uneven, "a\tbad", "b\tbad"])]))[
        "uneven labels"
    ][2].startswith("98 % of the rows have the label 'good'")
    assert told(check_task("classification", [write(tmp_path / "one.tsv", uneven)]))["one label"][0] == "error"
    held_out = write(tmp_path / "dev.tsv", [*good[:2], "other\tunknown"])
    found = told(check_task("classification", [sound], [held_out]))
    assert found["leaked pair"][:2] == ("warning", "dev.tsv:1")
    assert found["unseen labels"] == ("warning", "dev.tsv:3", "1 row with labels that no training text has: 'unknown'")
    assert told(check_task("classification", [tmp_path / "none.tsv"]))["file"][0] == "error"


def test_labels_that_cannot_be_learned_are_errors_before_training(tmp_path: Path):
    many = write(tmp_path / "many.tsv", [f"text {n}\tclass {n // 2}" for n in range(2_100)])
    level, _, message = told(check_task("classification", [many]))["many labels"]
    assert (level, message) == ("error", "1,050 different labels; training takes 1,000 at most here")
    numbers = write(tmp_path / "numbers.tsv", [f"text {n}\t{n}.5" for n in range(40)])
    found = told(check_task("classification", [numbers]))["many labels"]
    assert found[:2] == ("warning", "numbers.tsv")
    rows = [f"text {n}\t{'abc'[n % 3] * (1 + 200 * (n % 3))}" for n in range(60)]
    assert told(check_task("classification", [write(tmp_path / "long.tsv", rows)]))["long labels"][0] == "warning"
    blank = write(tmp_path / "blank.csv", ["text,label", *[","] * 40])
    assert told(check_task("classification", [blank]))["few rows"][0] == "error"


def test_faults_of_stories_and_of_captions(tmp_path: Path):
    rows = [{"facts": [f"Ada {n} is home."], "question": f"Where is {n}?", "answer": "home"} for n in range(30)]
    rows += [{"facts": ["Bo left."], "question": "Why?"}, {"facts": ["Bo left."], "question": "Who?", "answer": "Cy"}]
    found = told(check_task("answering", [write(tmp_path / "s.jsonl", [*map(json.dumps, rows), "{"])]))
    assert found["unanswered"][:2] == ("warning", "s.jsonl:31")
    assert found["absent"][:2] == ("warning", "s.jsonl:32")
    assert "1 of 33 questions left out as unreadable: line 33" in found["file"][2]
    assert found["file"][0] == "warning"
    scenes = write_scenes(tmp_path / "scenes.tsv", 20)
    assert check_task("captioning", [scenes]).findings == ()
    with scenes.open("a") as stream:
        stream.write("scenes/none.png\ta red square\n")
    found = told(check_task("captioning", [scenes]))
    assert found["missing"] == ("warning", "scenes.tsv:21", "1 of 21 rows name an image that is not there")
    lost = write(tmp_path / "lost.tsv", [f"none{number}.png\ta red square" for number in range(12)])
    (finding,) = check_task("captioning", [lost]).findings
    assert (finding.level, finding.advice) == ("error", "correct the paths, or leave these rows out")
