"""Classification beside TF-IDF with logistic regression: both are trained on the same rows, in the same run.

    python benchmarks/classification.py trec.tsv sms.tsv:2,1 banking77.csv --seeds 1 2 3
    python benchmarks/classification.py banking77.csv --rows 5 10 30 100

Each file has rows of a text and a label; `:2,1` behind its name says that the label is first. Of each, a tenth of the
rows, drawn by the seed, is the test; with `--rows N`, N rows of each label are left of the others. heedful is trained
by its command, with defaults; the peer is TfidfVectorizer of words and pairs with LogisticRegression(C=10).
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.pipeline import make_pipeline

from heedful.data.labelled import find_labelled

Rows = list[tuple[str, str]]


def read(name: str) -> Rows:
    path, _, columns = name.partition(":")
    numbers = (2, 1) if columns == "2,1" else (1, 2)
    return [(" ".join(pair.source.split()), pair.target.strip()) for pair in find_labelled([Path(path)], numbers)]


def divide(rows: Rows, seed: int, most: int) -> tuple[Rows, Rows]:
    """Training and test rows; of the former at most some number of each label, unless it is 0."""
    drawn = random.Random(seed).sample(rows, len(rows))
    test, train = drawn[: len(drawn) // 10], drawn[len(drawn) // 10 :]
    if not most:
        return train, test
    by_label: dict[str, Rows] = defaultdict(list)
    for row in train:
        by_label[row[1]].append(row)
    return [row for own in by_label.values() for row in own[:most]], test


def write(path: Path, rows: Rows) -> Path:
    path.write_text("".join(f"{text}\t{label}\n" for text, label in rows), "utf-8")
    return path


def heedful(folder: Path, train: Rows, test: Rows, seed: int) -> tuple[float, float]:
    files = write(folder / "train.tsv", train), write(folder / "test.tsv", test)
    command = [sys.executable, "-m", "heedful", "train", files[0], "--test", files[1], "--task", "classification"]
    settings = ["--set", f"training.seed={seed}", "--set", "training.export=false", "--threads", "1"]
    subprocess.run([*map(str, command), "--out", str(folder / "m"), *settings], check=True, capture_output=True)
    scores = json.loads((folder / "m" / "run" / "test.json").read_text("utf-8"))
    return scores["accuracy"], scores["macro_f1"]


def peer(train: Rows, test: Rows) -> tuple[float, float]:
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(C=10, max_iter=1000))
    model.fit(*zip(*train, strict=True))
    texts, labels = zip(*test, strict=True)
    predicted = model.predict(texts)
    return 100.0 * accuracy_score(labels, predicted), 100.0 * f1_score(labels, predicted, average="macro")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--rows", nargs="+", type=int, default=[0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    options = parser.parse_args()
    heads = ("corpus", "rows a label", "seed", "heedful: accuracy, macro-F1", "seconds", "TF-IDF + LR", "seconds")
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for name in options.files:
        rows = read(name)
        for most in options.rows:
            for seed in options.seeds:
                train, test = divide(rows, seed, most)
                started = time.monotonic()
                with tempfile.TemporaryDirectory() as folder:
                    own = heedful(Path(folder), train, test, seed)
                between = time.monotonic()
                other = peer(train, test)
                cells = (f"{own[0]:.2f}, {own[1]:.2f}", f"{between - started:.0f}")
                cells += (f"{other[0]:.2f}, {other[1]:.2f}", f"{time.monotonic() - between:.0f}")
                stem = Path(name.partition(":")[0]).stem
                print(f"| {stem} | {most or 'all'} | {seed} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
