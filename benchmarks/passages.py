"""Answers in passages that need no reading: the most frequent answers of the training data, scored on the test notices.

    python benchmarks/passages.py write notices.jsonl
    python benchmarks/passages.py baselines notices.jsonl

`write` makes 6,000 notices with a question and its answer (`heedful.synthetic.notices`, seed 1); with `--impossible`, a
share of them lacks the sentence that answers the question. `baselines` holds out the same notices as `heedful train
notices.jsonl --task answering`. The first baseline answers with the most frequent answer of the training data that the
notice has; the second takes the most frequent among questions that begin with the same three words, and the first where
the notice has none of those.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from heedful.data.split import Split
from heedful.data.stories import distinct_stories, story_pair
from heedful.evaluation.evaluate import quick_scores
from heedful.synthetic.notices import generate
from heedful.text.stories import Story, parse_story

NUM_NOTICES = 6_000
SEED = 1
NUM_FIRST_WORDS = 3


def write(path: Path, impossible_share: float) -> None:
    lines = (f"{story.to_json()}\n" for story in generate(NUM_NOTICES, SEED, impossible_share))
    path.write_text("".join(lines), encoding="utf-8", newline="\n")


def beginning(story: Story) -> tuple[str, ...]:
    return tuple(story.question.split()[:NUM_FIRST_WORDS])


def first_in(story: Story, answers: Iterable[str]) -> str:
    passage = " ".join(story.facts)
    return next((answer for answer in answers if answer in passage), "")


def baselines(path: Path) -> None:
    lines = enumerate(path.read_text("utf-8").splitlines(), start=1)
    stories = distinct_stories(parse_story(line, str(path), number) for number, line in lines)
    split = Split(len(stories), False, False)
    parts: dict[str, list[Story]] = defaultdict(list)
    for story in stories:
        parts[split(story_pair(story))].append(story)
    print({name: len(part) for name, part in parts.items()})
    of_all = Counter(story.answer for story in parts["train"])
    of_beginning: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for story in parts["train"]:
        of_beginning[beginning(story)][story.answer] += 1
    references = [[story.answer] for story in parts["test"]]
    everywhere = [answer for answer, _ in of_all.most_common()]
    general = [first_in(story, everywhere) for story in parts["test"]]
    asked = [
        first_in(story, (answer for answer, _ in of_beginning[beginning(story)].most_common())) or answer
        for story, answer in zip(parts["test"], general, strict=True)
    ]
    for name, outputs in (("most frequent answer", general), ("of questions that begin alike", asked)):
        scores = quick_scores(outputs, references, metrics=("answer_match", "answer_f1"))
        print(f"{name}: exact match {scores['answer_match']:.1f} %, F1 {scores['answer_f1']:.1f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("write", "baselines"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--impossible", type=float, default=0.0, metavar="SHARE", help="notices without the answer")
    options = parser.parse_args()
    if options.command == "write":
        write(options.file, options.impossible)
    else:
        baselines(options.file)


if __name__ == "__main__":
    main()
