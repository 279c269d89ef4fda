"""Questions of XQuAD with and without an answer: data files, and scores with the threshold of validation and without.

    python benchmarks/no_answer.py write answers --squad xquad.en.json
    heedful train answers/train.jsonl --dev answers/dev.jsonl --task answering --threads 1 --out answers.model
    python benchmarks/no_answer.py score answers.model answers/test.jsonl

Every question stands with its own paragraph, and again with another one of the same article, which lacks its answer
(as in Clark and Gardner 2018, arXiv:1710.10723). Articles are apart: of ten, eight train, one validates and one tests.
"""

import argparse
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from heedful.engines.spans import NO_ANSWER_SHIFT
from heedful.predictors.answerer import Answerer
from heedful.predictors.table import load

PARTS = ("train",) * 8 + ("dev", "test")
SEED = 1


def questions(article: dict[str, Any], draw: random.Random) -> Iterator[dict[str, Any]]:
    """Questions of an article, each with its own paragraph and with another one, if one lacks the answer."""
    paragraphs = article["paragraphs"]
    for paragraph in paragraphs:
        for question in paragraph["qas"]:
            row = {"question": question["question"], "context": paragraph["context"], "answers": question["answers"]}
            yield row
            answers = [each["text"].lower() for each in question["answers"]]
            others = [each["context"] for each in paragraphs if each is not paragraph]
            lacking = [text for text in others if not any(answer in text.lower() for answer in answers)]
            if lacking:
                yield row | {"context": draw.choice(lacking), "answers": [], "is_impossible": True}


def write(options: argparse.Namespace) -> None:
    options.folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(SEED)
    parts: dict[str, list[dict[str, Any]]] = {name: [] for name in PARTS}
    for index, article in enumerate(json.loads(options.squad.read_text("utf-8"))["data"]):
        parts[PARTS[index % len(PARTS)]] += questions(article, draw)
    for name, rows in parts.items():
        lines = (f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
        (options.folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")
        number = sum(not row["answers"] for row in rows)
        print(f"{name}: {len(rows):,} questions, {number:,} without an answer")


def score(options: argparse.Namespace) -> None:
    answerer = load(options.model, kind=Answerer)
    shift = answerer.folder.facts.get(NO_ANSWER_SHIFT)
    print(f"shift: {shift} nats")
    items = answerer.read_items((options.data,))
    share = sum(not story.answer for story in items.stories) / len(items)
    print(f"always no answer: exact match and F1 {share:.2%}")
    for name, own in (("chosen threshold", shift), ("none", 0.0)):
        answerer.folder = replace(answerer.folder, facts={**answerer.folder.facts, NO_ANSWER_SHIFT: own})
        print(f"{name}:\n{answerer.measure(items).to_text()}", end="")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    writing = commands.add_parser("write")
    writing.add_argument("folder", type=Path)
    writing.add_argument("--squad", type=Path, required=True)
    writing.set_defaults(run=write)
    scoring = commands.add_parser("score")
    scoring.add_argument("model", type=Path)
    scoring.add_argument("data", type=Path)
    scoring.set_defaults(run=score)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
