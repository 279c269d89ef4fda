"""Tree transduction, from prefix to infix notation: encoders with no, simple and structured attention.

    python benchmarks/trees.py write trees [--number 15000 --depths 2 3 4]
    alias train='heedful train trees/train.tsv --dev trees/dev.tsv --preset syntactic --config trees/settings.toml'
    train --out none.model --set model.encoder=words --threads 1
    train --out simple.model --set model.head_attention.normalizer=softmax --threads 1
    train --out structured.model --threads 1
    python benchmarks/trees.py score none.model simple.model structured.model

`score` prints, for each depth, the percentage of the target that is produced before the first error, the measure of
Kim et al. 2017, table 1, with greedy search; and the two-sided p of the difference between each model and the one
before it, by sign flips of the differences. Several models after one name (`structured=a.model,b.model`) are averaged.
"""

import argparse
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.synthetic.trees import Expression, generate

NUM_TRAIN, NUM_DEV, NUM_TEST = 6_000, 200, 200
"""Expressions for training and validation, of all depths, and for testing, of each depth."""
TRAIN_DEPTHS, TEST_DEPTHS = (2, 3), (2, 3, 4, 5, 6)
SETTINGS = """[text]
source_units = "words"
target_units = "words"
max_tokens = 200

[model]
embedding_size = 64
hidden_size = 128
reader_size = 64
dropout = 0.1
output_dropout = 0.1

[training]
batch_tokens = 1024
label_smoothing = 0.0
max_epochs = 8
validate_every = 300
patience = 1000
export = false

[training.optimizer]
learning_rate = 0.005
[training.optimizer.schedule]
warmup_steps = 100
"""
NUM_FLIPS = 10_000


def test_set() -> list[Expression]:
    return [*chain.from_iterable(generate(NUM_TEST, (depth,), seed=2) for depth in TEST_DEPTHS)]


def distinct(expressions: Iterable[Expression], seen: set[str]) -> list[Expression]:
    """Expressions whose source is not among those seen; adds their sources."""
    fresh: list[Expression] = []
    for expression in expressions:
        if expression.prefix not in seen:
            seen.add(expression.prefix)
            fresh.append(expression)
    return fresh


def write(folder: Path, number: int, depths: tuple[int, ...]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    seen = {expression.prefix for expression in test_set()}
    drawn = distinct(generate(2 * (number + NUM_DEV), depths, seed=1), seen)[: number + NUM_DEV]
    for name, expressions in (("dev", drawn[:NUM_DEV]), ("train", drawn[NUM_DEV:]), ("test", test_set())):
        lines = [f"{expression.prefix}\t{expression.infix}\n" for expression in expressions]
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    (folder / "settings.toml").write_text(SETTINGS, encoding="utf-8")


def share_before_error(output: str, reference: str) -> float:
    """Share of the reference's tokens, its end included, that are produced before the first error."""
    produced, wanted = [*output.split(), ""], [*reference.split(), ""]
    right = [mine == theirs for mine, theirs in zip(produced, wanted, strict=False)]
    return (right.index(False) if False in right else len(right)) / len(wanted)


def shares(model: Path, expressions: list[Expression]) -> NDArray[np.float64]:
    results = load(model, kind=Translator).translate([expression.prefix for expression in expressions], beam=1)
    return np.array([share_before_error(r.text, e.infix) for r, e in zip(results, expressions, strict=True)])


def p_value(difference: NDArray[np.float64]) -> float:
    """Two-sided p of a mean of paired differences, by random flips of their signs."""
    random = np.random.default_rng(1)
    observed = abs(difference.mean())
    flips = [abs((difference * random.choice((-1.0, 1.0), len(difference))).mean()) for _ in range(NUM_FLIPS)]
    return (1 + sum(flip >= observed - 1e-12 for flip in flips)) / (1 + NUM_FLIPS)


def score(rows: list[str]) -> None:
    expressions = test_set()
    depth = np.array([expression.depth for expression in expressions])
    before: NDArray[np.float64] | None = None
    print("| row | " + " | ".join(f"depth {each}" for each in TEST_DEPTHS) + " | p, all depths |")
    print("| --- |" + " ---: |" * (len(TEST_DEPTHS) + 1))
    for row in rows:
        name, _, models = row.rpartition("=")
        values = np.stack([shares(Path(model), expressions) for model in models.split(",")])
        mean = values.mean(axis=0)
        cells: list[str] = []
        for each in TEST_DEPTHS:
            by_model = 100 * values[:, depth == each].mean(axis=1)
            spread = f" ± {by_model.std(ddof=1):.1f}" if len(by_model) > 1 else ""
            p = "" if before is None else f" (p {p_value((mean - before)[depth == each]):.4f})"
            cells.append(f"{by_model.mean():.1f}{spread}{p}")
        p = "-" if before is None else f"{p_value(mean - before):.4f}"
        print(f"| {name or models} | " + " | ".join(cells) + f" | {p} |", flush=True)
        before = mean


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write")
    writing.add_argument("folder", type=Path)
    writing.add_argument("--number", type=int, default=NUM_TRAIN, help="expressions for training")
    writing.add_argument("--depths", type=int, nargs="+", default=TRAIN_DEPTHS, help="their depths")
    scoring = commands.add_parser("score")
    scoring.add_argument("models", nargs="+", help="NAME=MODEL,MODEL...")
    options = parser.parse_args()
    if options.command == "write":
        write(options.folder, options.number, tuple(options.depths))
    else:
        score(options.models)


if __name__ == "__main__":
    main()
