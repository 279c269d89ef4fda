"""Sentences in JavaScript: for ordinary texts those of Python, whose rules know more; the layout is put back alike."""

from pathlib import Path
from typing import Any

from heedful.text.segments import split
from heedful.text.sentences import ABBREVIATIONS, STREETS, sentence_spans
from tests.js.node import PACKAGE, Run, answers, changed_package, needs_node

pytestmark = needs_node

FACTS: dict[str, Any] = {"abbreviations": sorted(ABBREVIATIONS), "streets": STREETS, "usual": 1}
TEXTS = {
    "en": (
        "Good day, Dr. Brown. How are you?",
        "We met Mr. and Mrs. Smith in the U.S. embassy. They left early! Did you?",
        "It costs 3.50 dollars. That is cheap. So do I. Really.",
        "J. R. Tolkien wrote it. He was English.",
        '"Stop!" he said. She did.',
    ),
    "de": (
        "Er wohnt in der Bahnhofstr. 12 in Bonn. Sie auch.",
        "Die Bahnhofstr. Nord ist lang. Ja.",
        "Das ist z.B. ein Hund. Am 3. Mai kommt er. Schön!",
        "Ein Mann läuft über die Straße. Zwei Hunde spielen im Schnee.",
    ),
    "fr": ("M. Dupont est là. Il attend.", "Où vas-tu ? À Paris. C'est loin !"),
    "zh": ("房间很好。服务不错！下次再来？", "今天下雨。"),
    "": ("One sentence. Another one. ", "  Leading space. And more"),
}


def run(language: str, folder: Path = PACKAGE) -> Run:
    facts = {"units": "words", "normalization": "none", "tokens": ["<pad>", "<unk>", "<bos>", "<eos>"], "most": 9}
    return Run({**facts, "sentences": FACTS}, [["sentences", language, TEXTS[language]]], folder)


def stripped(sentences: list[str]) -> list[str]:
    return [each.strip() for each in sentences if each.strip()]


def test_ordinary_texts_have_the_sentences_of_python_and_wrong_rules_are_told_from_right_ones(tmp_path: Path):
    mutants = (
        ("word.endsWith(facts.streets)", "false"),
        ("facts.abbreviations.includes(word)", "false"),
        ("(plain === 'I' || ", "("),
        ("INITIALS.test(word)", "false"),
    )
    folders = [changed_package(tmp_path / str(index), "sentences.js", *one) for index, one in enumerate(mutants)]
    runs = [run(language, folder) for folder in (PACKAGE, *folders) for language in TEXTS]
    answered = iter(answers(*runs))
    found = [[stripped(each) for _ in TEXTS for each in next(answered)] for _ in (PACKAGE, *folders)]
    texts = [text for each in TEXTS.values() for text in each]
    assert found[0] == [stripped([text[start:end] for start, end in sentence_spans(text)]) for text in texts]
    assert [mutant for mutant, sentences in zip(mutants, found[1:], strict=True) if sentences == found[0]] == []


def test_outputs_are_joined_as_in_python():
    cases = [
        ["One is here. Two is there.\n\nThree! Four", 1],
        ["房间很好。服务不错！\n好。", 1],
        ["  Ab cd. Ef gh.  \n c", 1],
        ["A dog. A cat.", 2],
        ["A dog. A cat.", 0],
    ]
    outputs = [["Eins.", "房间。", "", "Ja!", "Nein"], ["好。", "Gut.", "Da."], ["x"]]
    expected: list[str] = []
    for text, usual in cases:
        parts = split(text, policy="auto" if usual else "line", usual=usual)
        expected += [parts.join([each[i % len(each)] for i in range(len(parts.segments))]) for each in outputs]
    calls = [["join", *case, each] for case in cases for each in outputs]
    assert answers(run("en")._replace(calls=calls)) == expected
