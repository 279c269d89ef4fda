"""Lessons of the course: both languages, pictures with words, every concept of the notes carried by one of them."""

import importlib
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from heedful.course import EXERCISES
from tests.architecture.package import ROOT
from tests.thorough import thorough

FOLDER = ROOT / "docs" / "course"
FILES = {path.stem.partition("_")[2]: path for path in sorted(FOLDER.glob("[0-9][0-9]_*.py"))}
LONGEST = 15_000
SECONDS = 60
QUICK_LOOP = 0.1
"""Seconds that `loop_seconds` takes on a quiet machine."""
TIMED = """
import runpy, sys, time
runpy.run_path(sys.argv[1], run_name="__main__")
print(time.process_time(), file=sys.stderr)
"""
"""Program that runs a lesson and says how many seconds of the processor it took, of all its threads."""
PICTURE = re.compile(r'picture="(\w+)"')
MOST = 8
"""Most concepts that one picture can show."""
NONE = "-"
NOTHING_TO_COMPUTE = {
    "limited computing power": "a reason for attention, not a computation",
    "summarization": "another set of texts, by the code of translation",
}
"""Concepts without code, with the reason."""
NOTHING_TO_DRAW = {
    "limited computing power": "a reason for attention, not a thing",
    "vectorised form": "the same numbers as by a loop",
    "learned table": "random numbers before training",
    "bag of words": "an equality, which the lesson asserts",
    "shapes of the parameters": "three pairs of numbers, which the lesson prints",
    "degradation": "deep models would train longer than a lesson may run",
    "faster convergence": "two models to compare would train longer than a lesson may run",
    "summarization": "another set of texts",
    "fully connected layer": "a matrix within a score",
    "s = s_T": "the choice of the last row",
}
"""Concepts without a picture, with the reason."""
BESIDE_THE_NOTES = {
    "patches": "the notes end before the Vision Transformer",
    "trust": "the notes do not ask what a heat map proves",
}
"""Pictures of what is in none of the notes, with the reason."""


class Cell(NamedTuple):
    """Cell of a lesson."""

    head: str
    """Options behind its mark."""
    text: str


def cells(path: Path) -> list[Cell]:
    parts = re.split(r"^# %%", path.read_bytes().decode("utf-8"), flags=re.MULTILINE)
    return [Cell(*(part.partition("\n")[::2])) for part in parts[1:]]


def prose(path: Path, language: str) -> str:
    """Text of a lesson in a language, without marks."""
    own = [cell.text for cell in cells(path) if f'lang="{language}"' in cell.head]
    text = " ".join(re.sub(r"\s*\n# ?", " ", "\n" + cell) for cell in own)
    return text.replace("**", "").replace("*", "") if language == "en" else text.replace("**", "")


def complaints(path: Path) -> list[str]:
    """Violations of the form of a lesson."""
    found: list[str] = []
    text = [cell for cell in cells(path) if "[markdown]" in cell.head]
    languages = [match[1] if (match := re.search(r'lang="(\w+)"', cell.head)) else "" for cell in text]
    if languages != ["en", "zh"] * (len(text) // 2):
        found.append("texts do not alternate between English and Chinese")
    for english, chinese in zip(text[::2], text[1::2], strict=False):
        formulas = [re.findall(r"\$\$(.*?)\$\$", cell.text, re.DOTALL) for cell in (english, chinese)]
        if len(formulas[0]) != len(formulas[1]):
            found.append(f"formulas differ: {english.text[:40]!r}")
        depths = [re.findall(r"^# (#+) ", cell.text, re.MULTILINE) for cell in (english, chinese)]
        if depths[0] != depths[1]:
            found.append(f"headings differ: {english.text[:40]!r}")
    for cell in cells(path):
        if "plt.show()" in cell.text and not re.search(r'picture="\w+" alt="[^"]{20,}" alt_zh="[^"]{10,}"', cell.head):
            found.append(f"a picture has no name or no words: {cell.text[:40]!r}")
    return found


def concepts() -> list[list[str]]:
    return [line.split("\t") for line in (FOLDER / "concepts.tsv").read_bytes().decode("utf-8").strip().split("\n")[1:]]


def carried(concept: list[str]) -> list[str]:
    """Whatever is missing of a concept: its words in both languages, its code, its picture."""
    _, chinese, english, lesson, code, picture = concept
    if lesson not in FILES:
        return [f"no lesson {lesson}"]
    found: list[str] = []
    if english.lower() not in prose(FILES[lesson], "en").lower():
        found.append(f"{lesson} does not say {english}")
    if chinese not in prose(FILES[lesson], "zh"):
        found.append(f"{lesson} does not say {chinese}")
    has_none = english in NOTHING_TO_DRAW
    if (picture == NONE) != has_none or not (has_none or drawn_in(FILES[lesson], picture)):
        found.append(f"{lesson} has no picture {picture} of {english}")
    has_none = english in NOTHING_TO_COMPUTE
    if (code == NONE) != has_none or not (has_none or code in used_names(FILES[lesson])):
        found.append(f"code of {lesson} does not use {code} for {english}")
    return found


def drawn_in(path: Path, picture: str) -> bool:
    return any(f'picture="{picture}"' in cell.head for cell in cells(path))


def used_names(path: Path) -> dict[str, int]:
    """Names that the code of a lesson uses, by the module that the table of the site is made with."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        return importlib.import_module("course_names").used_names(path)
    finally:
        sys.path.remove(str(ROOT / "docs"))


def test_there_are_ten_lessons_in_the_order_of_the_exercises():
    assert list(FILES) == list(dict.fromkeys(name.partition(".")[0] for name in EXERCISES))
    assert len(FILES) == 10


@pytest.mark.parametrize("lesson", FILES)
def test_a_lesson_has_its_form(lesson: str):
    text = FILES[lesson].read_bytes().decode("utf-8")
    assert complaints(FILES[lesson]) == []
    asked = set(re.findall(r'check\("([\w.]+)", \.\.\.\)', text))
    assert asked == {name for name in EXERCISES if name.startswith(f"{lesson}.")}
    assert len(re.findall(r"assert .* < 1e-6", text)) >= 1, "the same by heedful is asserted"
    assert all(len(prose(FILES[lesson], language).encode()) <= LONGEST for language in ("en", "zh"))


def test_every_concept_of_the_notes_is_carried():
    table = concepts()
    assert [line for concept in table for line in carried(concept)] == []
    assert len(table) >= 120
    assert {concept[0] for concept in table} == {"1", "2", "3", "4", "5"}
    assert {concept[3] for concept in table} == set(FILES)
    for reasons, column in ((NOTHING_TO_COMPUTE, 4), (NOTHING_TO_DRAW, 5)):
        assert set(reasons) == {concept[2] for concept in table if concept[column] == NONE}


def test_no_picture_stands_for_more_concepts_than_it_can_show():
    rows = Counter((concept[3], concept[5]) for concept in concepts() if concept[5] != NONE)
    assert {picture: number for picture, number in rows.items() if number > MOST} == {}


def test_every_picture_shows_a_concept_or_says_why_not():
    drawn = {match[1] for path in FILES.values() for cell in cells(path) if (match := PICTURE.search(cell.head))}
    assert drawn - {concept[5] for concept in concepts()} == set(BESIDE_THE_NOTES)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (1, "不在课里"),
        (2, "not there"),
        (3, "nowhere"),
        (4, "heedful.attention.Nothing"),
        (4, "heedful.attention.Cosine"),  # a public name, but the lesson does not use it
        (4, "heedful.attention.attend(kernel='flash')"),
        (4, NONE),
        (5, "none"),
        (5, NONE),
    ],
)
def test_a_concept_that_is_not_carried_is_found(place: int, value: str):
    concept = concepts()[0]
    concept[place] = value
    assert len(carried(concept)) == 1


def test_an_import_alone_is_no_use_of_a_name(tmp_path: Path):
    path = tmp_path / "lesson.py"
    path.write_bytes(
        b"# %%\nfrom heedful.attention import Dot, Softmax\n\n\ndef own(): ...\n\n\n"
        b"# %%\nprint(Softmax(temperature=5.0))\n"
        b'# %% [markdown] lang="en"\n# Dot(1, 1)\n'
    )
    assert used_names(path) == {
        "heedful.attention.Softmax": 1,
        "heedful.attention.Softmax(temperature=5.0)": 1,
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [('lang="zh"', 'lang="en"'), (" alt_zh=", " alternative="), ("# ## 练习", "# 练习"), ("$$f(x)", "f(x)")],
)
def test_a_lesson_without_its_form_is_found(old: str, new: str, tmp_path: Path):
    text = FILES["averages"].read_bytes().decode("utf-8")
    path = tmp_path / "01_averages.py"
    path.write_bytes(text.replace(old, new, 1).encode("utf-8"))
    assert complaints(path)


def loop_seconds() -> float:
    """Processor time of two million additions."""
    began, total = time.process_time(), 0
    for number in range(2_000_000):
        total += number
    return time.process_time() - began


@thorough
@pytest.mark.parametrize("lesson", FILES)
def test_a_lesson_runs(lesson: str, tmp_path: Path):
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-c", TIMED, str(FILES[lesson])]
    # The machine may be busy with other things, or slow, so that the limit is of processor time, in proportion.
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, timeout=10 * SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    assert float(done.stderr.split()[-1]) <= SECONDS * max(1.0, loop_seconds() / QUICK_LOOP)
    asked = [name for name in EXERCISES if name.startswith(f"{lesson}.")]
    assert done.stdout.decode("utf-8").count("no answer yet") == len(asked)
