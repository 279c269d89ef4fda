"""Sentences in JavaScript: the same as in Python, of texts with every mark and abbreviation."""

import random
from pathlib import Path
from typing import Any

from heedful.text.segments import split
from heedful.text.sentences import ABBREVIATIONS, STREETS, sentence_spans
from tests.js.node import PACKAGE, Run, answers, changed_package, needs_node

pytestmark = needs_node

FACTS: dict[str, Any] = {"abbreviations": sorted(ABBREVIATIONS), "streets": STREETS, "usual": 1}
WORDS = "Ein Haus der Hund dr Dr Bahnhofstr U.S z.B i I 3 12 1999 e été Été 你好 房间 नम ok «ja»".split()
MARKS = [
    ". ",
    "! ",
    "? ",
    "... ",
    "… ",
    "。",
    "！",
    "……",
    "!",
    ".” ",
    '." ',
    "। ",
    ", ",
    " ",
    " ",
    " ",
    "; ",
    "?! ",
    ". » ",
]


def texts() -> list[str]:
    generator = random.Random(0)
    drawn = ["".join(generator.choice(WORDS) + generator.choice(MARKS) for _ in range(9)) for _ in range(1500)]
    return ["", " ", "One. Two.", "房间很好。服务不错！", "Dr. Who sat. He left", *drawn]


def run(folder: Path = PACKAGE) -> Run:
    facts = {"units": "words", "normalization": "none", "tokens": ["<pad>", "<unk>", "<bos>", "<eos>"], "most": 9}
    return Run({**facts, "sentences": FACTS}, [["sentences", texts()]], folder)


def in_python() -> list[list[str]]:
    return [[text[start:end] for start, end in sentence_spans(text)] for text in texts()]


def test_sentences_are_those_of_python():
    (found,) = answers(run())
    assert [pair for pair in zip(in_python(), found, strict=True) if pair[0] != pair[1]] == []
    assert max(map(len, found)) > 5


def test_wrong_sentences_are_told_from_right_ones(tmp_path: Path):
    mutants = (
        ("place).split(' ')", "place).split('.')"),
        ("word.endsWith(facts.streets)", "word.endsWith('Str')"),
        (r"\p{Nd}{1,2}", r"\p{Nd}{1,4}"),
        ("(word === 'i' || ", "("),
        (r"/^\p{Lowercase}/u.test(", r"/^[a-z]/u.test("),
    )
    folders = [changed_package(tmp_path / str(index), "sentences.js", *one) for index, one in enumerate(mutants)]
    found = answers(*map(run, folders))
    assert [one for one, answer in zip(mutants, found, strict=True) if answer == in_python()] == []


def test_outputs_are_joined_as_in_python():
    cases = [
        ["One. Two.\n\nThree! Four", 1],
        ["房间很好。服务不错！\n好。", 1],
        ["  a. b  \n c", 1],
        ["A b. C d.", 2],
        ["A. B.", 0],
    ]
    outputs = [["Eins.", "房间。", "", "Ja!", "Nein"], ["好。", "Gut.", "Da."], ["x"]]
    expected: list[str] = []
    for text, usual in cases:
        parts = split(text, policy="auto" if usual else "line", usual=usual)
        expected += [parts.join([each[i % len(each)] for i in range(len(parts.segments))]) for each in outputs]
    calls = [["join", *case, each] for case in cases for each in outputs]
    assert answers(run()._replace(calls=calls)) == expected
