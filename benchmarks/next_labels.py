"""Labels that `heedful next` saves: accuracy after labelling the texts that it chooses, and as many random ones.

    python benchmarks/next_labels.py trec.train.tsv --start 200 --add 200 --rounds 2 --seeds 3 [--columns 2,1]
    python benchmarks/next_labels.py ron.train.tsv --task translation --start 250 --add 225 --rounds 2 --random 1000
        --steps 1200

A model is trained on START random rows, ADD more are chosen from the rest and labelled as the file has them, and it is
trained anew, in ROUNDS. A test set of a fifth of the rows, 1,000 at most, by a seeded draw, is never chosen from.
Beside it, the same with random rows or, with `--random N`, one model of N random rows. `--steps N` gives each model
as many steps, whatever its number of rows.
"""

import argparse
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import heedful
from heedful.data.corpus import find_pairs
from heedful.predictors.interface import Predictor
from heedful.predictors.selection import candidates, select
from heedful.predictors.table import load

Rows = list[tuple[str, str]]


class Plan(NamedTuple):
    """Settings that all trainings of a seed share."""

    task: str
    seed: int
    steps: int

    @property
    def settings(self) -> dict[str, object]:
        limit = {"training.max_steps": self.steps, "training.validate_every": self.steps} if self.steps else {}
        return {"training.seed": self.seed, "training.export": False, **limit}


def accuracy(rows: Rows, test: Rows, folder: Path, plan: Plan) -> tuple[float, Predictor]:
    heedful.train(rows, task=plan.task, out=folder, settings=plan.settings, quiet=True)
    predictor = load(folder, kind=Predictor)
    said = predictor.predict([text for text, _ in test])
    return 100.0 * sum(one == label for one, (_, label) in zip(said, test, strict=True)) / len(test), predictor


def rounds(rows: Rows, test: Rows, start: int, add: int, number: int, is_chosen: bool, plan: Plan) -> Sequence[float]:
    """Accuracy after each round."""
    random_ = random.Random(plan.seed)
    labelled, rest = rows[:start], dict(rows[start:])
    scores: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for index in range(number + 1):
            score, predictor = accuracy(labelled, test, Path(folder) / str(index), plan)
            scores.append(score)
            if index < number:
                texts = [*rest]
                chosen = (
                    [each.text for each in select([*candidates(predictor, texts)], add)]
                    if is_chosen
                    else random_.sample(texts, add)
                )
                labelled = [*labelled, *((text, rest.pop(text)) for text in chosen)]
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--columns", default="1,2")
    parser.add_argument("--start", type=int, default=200)
    parser.add_argument("--add", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--task", default="classification")
    parser.add_argument("--random", type=int, default=0, help="rows of the one random model; 0 = as many as chosen")
    parser.add_argument("--steps", type=int, default=0, help="steps of each training; 0 = as planned")
    given = parser.parse_args()
    first, second = (int(each) for each in given.columns.split(","))
    pairs = [(pair.source, pair.target) for pair in find_pairs([given.data], (first, second))]
    for seed in range(1, given.seeds + 1):
        plan = Plan(given.task, seed, given.steps)
        rows = [*dict(random.Random(seed).sample(pairs, len(pairs))).items()]
        cut = min(1_000, len(rows) // 5)
        for name, is_chosen in (("next", True), ("random", False)):
            start, number = (given.random, 0) if given.random and not is_chosen else (given.start, given.rounds)
            scores = rounds(rows[cut:], rows[:cut], start, given.add, number, is_chosen, plan)
            sizes = [start + given.add * index for index in range(number + 1)]
            listed = "  ".join(f"{size}: {score:.2f}" for size, score in zip(sizes, scores, strict=True))
            print(f"seed {seed}  {name:6}  {listed}", flush=True)


if __name__ == "__main__":
    main()
