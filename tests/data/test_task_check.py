"""Data doctor of the other tasks: every fault is told with its place, and sound data with none."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from heedful.data.findings import CheckReport
from heedful.data.label_kinds import LabelKind
from heedful.data.stories import answered_stories, find_stories
from heedful.data.task_check import check_task
from heedful.errors import DataError
from tests.requests import make_request, train
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
    assert level == "error"
    assert message.startswith("column 2 has 1,050 different labels in 2,100 rows; a label needs two rows on average")
    numbers = write(tmp_path / "numbers.tsv", [f"text {n}\t{n // 1.1:.1f}" for n in range(150)])
    report = check_task("classification", [numbers])
    assert [*told(report)] == ["many labels"]  # labels of one row go without saying
    (finding,) = report.findings
    with pytest.raises(DataError, match=re.escape(str(finding).removeprefix("error: "))):
        train(make_request((numbers,), tmp_path / "m", task="classification"), lambda progress: None, print, print)
    assert check_task("classification", [numbers], kind="number").findings == ()
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
    assert found["missing"] == ("warning", "scenes.tsv:21", "1 of 21 rows names an image that is not there")
    lost = write(tmp_path / "lost.tsv", [f"none{number}.png\ta red square" for number in range(12)])
    (finding,) = check_task("captioning", [lost]).findings
    assert (finding.level, finding.advice) == ("error", "correct the paths, or leave these rows out")


def test_answers_elsewhere_than_in_their_facts_or_at_their_offsets_are_told(tmp_path: Path):
    rows = [
        {"context": f"Ada {n} is home.", "question": f"Where is {n}?", "answer": "home" if n % 2 else f"shed {n}"}
        for n in range(30)
    ]
    path = write(tmp_path / "half.jsonl", [*map(json.dumps, rows)])
    message = "15 of 30 rows have an answer that is no part of the facts; the first: 'shed 0'"
    assert told(check_task("answering", [path]))["absent"] == ("warning", "half.jsonl:1", message)
    file = find_stories([path])
    assert len([*answered_stories(file)]) == 30
    assert any(note.startswith("15 of 30 questions have an answer that is not in their facts") for note in file.notes)
    labels = [row | {"answer": ("yes", "no")[n % 2]} for n, row in enumerate(rows)]
    path = write(tmp_path / "labels.jsonl", [*map(json.dumps, labels)])
    assert "absent" not in told(check_task("answering", [path]))
    starts = [
        row | {"answer": "home", "answer_start": row["context"].index("home") + (n == 3)} for n, row in enumerate(rows)
    ]
    path = write(tmp_path / "starts.jsonl", [*map(json.dumps, starts)])
    message = "1 of 30 rows has an answer that is not at its answer_start; the first: 'home'"
    assert told(check_task("answering", [path])) == {"misplaced": ("warning", "starts.jsonl:4", message)}
    file = find_stories([path])
    assert len([*answered_stories(file, in_facts=True)]) == 30
    assert file.notes == [
        "1 of 30 questions do not have their answer at its answer_start; the nearest counts; the first: "
        f"{path}:4: 'home'"
    ]


def test_other_readings_of_labels_are_told_once(tmp_path: Path):
    def hint(labels: list[str], kind: LabelKind = "one") -> list[str]:
        path = write(tmp_path / "a.tsv", [f"text {n}\t{labels[n % len(labels)]}" for n in range(240)])
        return [str(each).partition(": ")[2] for each in check_task("classification", [path], kind=kind).findings]

    where = tmp_path / "a.tsv"
    grades = f"{where}: labels are the whole numbers from 1 to 5; if they are grades: --set text.labels=ordered"
    assert hint([*"12345"]) == hint([f"{n} stars" for n in (4, 2, 1, 3, 5)]) == [grades]
    prices = [f"{n}.5" for n in range(20)]
    measured = f"{where}: labels are 20 different numbers; if they are measured: --set text.labels=number"
    assert hint(prices) == [measured]
    assert hint([*"12345"], "ordered") == hint(prices, "number") == []
    assert hint(["0", "1"]) == hint(["1", "2", "4"]) == hint(["1", "2", "x"]) == []
    joined = (
        f"{where}: 80 rows with labels such as 'joy|mad', whose parts are labels of other rows; "
        "if a text may have several labels: --separator '|'"
    )
    assert hint(["joy", "mad", "joy|mad"]) == [joined]
    combined = (
        f"{where}: 240 rows with labels such as 'a, b', combinations of 4 parts; if a text may have several labels: "
        "--separator ','"
    )
    assert hint(["a, b", "b, c", "a, c", "b, d", "a, d, c"]) == [combined]
    assert hint(["joy", "n/a", "joy/ride"]) == []
    assert hint(["Smith, John", "Smith, Ann", "Doe, John", "Doe, Ann"]) == []
    assert hint(["Paris, France", "Lyon, France", "Nice, France", "Bonn, Germany"]) == []
    assert hint(["Washington, DC, USA", "Lyon, France", "Nice, France", "Boston, MA, USA", "Rome"]) == []
    path = write(tmp_path / "a.tsv", [f"text {n}\t{('joy', 'mad', 'joy|mad')[n % 3]}" for n in range(240)])
    assert check_task("classification", [path], separator="|").findings == ()


def test_values_of_several_types_are_told(tmp_path: Path):
    rows = [{"text": f"text {n}", "label": n % 2 if n % 4 < 2 else "joy"} for n in range(80)]
    path = write(tmp_path / "a.jsonl", [*map(json.dumps, rows)])
    assert told(check_task("classification", [path])) == {
        "mixed types": (
            "warning",
            "a.jsonl:3",
            "key 'label' has values of several types: 40 numbers, 40 texts in the first 80 rows",
        )
    }
    rows = [{"text": f"text {n}" if n else None, "label": n % 2 or 0.0} for n in range(80)]
    assert "mixed types" not in told(check_task("classification", [write(path, [*map(json.dumps, rows)])]))


def test_texts_that_are_pictures_or_beyond_the_limits_are_told(tmp_path: Path):
    good = [f"text {n}\t{'ab'[n % 2]}" for n in range(60)]
    rows = [*good, f"{'iVBORw0KGgo' * 200}\ta", f"{'a word ' * 20_000}\tb", f"{'a word ' * 1_500_000}\tb"]
    found = told(check_task("classification", [write(tmp_path / "a.tsv", rows)]))
    assert found == {
        "encoded data": ("warning", "a.tsv:61", "1 of 63 rows has a text with a word of 1,000 letters and more"),
        "over-long": ("warning", "a.tsv:63", "1 of 63 rows has a text of more than 10,000,000 characters"),
        "cut": ("note", "a.tsv:62", "1 of 63 rows has a text of more than 100,000 characters"),
    }


def test_files_of_other_suffixes_in_folders_of_labels_are_told(tmp_path: Path):
    for label, suffix in (("good", "txt"), ("bad", "txt"), ("bad", "html")):
        (tmp_path / label).mkdir(exist_ok=True)
        for n in range(20):
            (tmp_path / label / f"{n}.{suffix}").write_text(f"{label} {n}")
    message = "20 files left out, because of their suffixes: 20 .html"
    assert told(check_task("classification", [tmp_path])) == {"other files": ("warning", tmp_path.name, message)}


def test_broken_pictures_are_found_by_opening_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    scenes = write_scenes(tmp_path / "scenes.tsv", 40)
    for number in (0, 7):
        picture = tmp_path / f"scenes/{number}.png"
        picture.write_bytes(picture.read_bytes()[:60])
    report = check_task("captioning", [scenes])
    found = told(report)
    assert found["broken"][:2] == ("warning", "scenes.tsv:1")
    start = "2 of 40 rows name a picture that cannot be read; the first: "
    assert found["broken"][2].startswith(f"{start}{tmp_path}/scenes/0.png: truncated or damaged picture (")
    assert report.files[0].form.startswith(
        "separated by tabs, picture in column 1, description in column 2; first pair"
    )
    (tmp_path / "scenes/9.png").unlink()
    report = check_task("captioning", [scenes])
    assert {finding.level for finding in report.findings} == {"error"}  # 3 of 40 are too many
    monkeypatch.setattr("heedful.data.task_check._MOST_OPENED", 20)
    opened = told(check_task("captioning", [scenes]))
    assert opened["broken"][2].startswith(start)
    assert opened["opened"][2] == "the first 20 of 40 pictures were opened"
    features = write_scenes(tmp_path / "features.tsv", 20, kind="npy")
    assert check_task("captioning", [features]).findings == ()
    np.save(tmp_path / "features/3.npy", np.zeros((4, 2), np.float32))
    assert told(check_task("captioning", [features]))["broken"][1] == "features.tsv:4"
