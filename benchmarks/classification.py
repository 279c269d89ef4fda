"""Classification beside TF-IDF with logistic regression and fastText, all trained on the same rows in the same run.

    python benchmarks/classification.py trec.tsv sms.tsv:2,1 banking77.csv --seeds 1 2 3
    python benchmarks/classification.py banking77.csv --rows 5 10 30 100
    python benchmarks/classification.py banking77.csv sms.tsv:2,1 --rare

Each file has rows of a text and a label; `:2,1` behind its name says that the label is first. Of each, a tenth of the
rows, drawn by the seed, is the test; with `--rows N`, N rows of each label are left of the others. With `--rare`, one
label out of 20, drawn by the seed, is told from the 19 others; of two labels the rarer one is thinned to a twentieth.
heedful is trained by its command, with defaults. The peers are TfidfVectorizer of words and pairs with
LogisticRegression(C=10), and, if it is installed, fastText, which tunes itself on a tenth of the training rows of the
first seed for `--autotune` seconds; with 0, it has pairs of words, 25 epochs and a rate of 0.5.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from typing import Any

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.pipeline import make_pipeline

from heedful.data.labelled import find_labelled

try:
    import fasttext  # pyright: ignore[reportMissingImports]
except ImportError:
    fasttext: Any = None

Rows = list[tuple[str, str]]
RARE_LABELS = 20
TUNED = ("lr", "epoch", "wordNgrams", "dim", "minn", "maxn", "bucket")
"""Settings that fastText finds by tuning itself, besides its loss."""
TUNED_BYTES = 10 << 30
"""Memory of fastText while it tunes itself; some of the sizes that it tries would take all there is."""
FASTTEXT = {"lr": 0.5, "epoch": 25, "wordNgrams": 2, "dim": 50}


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


def heedful(folder: Path, train: Rows, test: Rows, seed: int, ensemble: int) -> tuple[float, float]:
    files = write(folder / "train.tsv", train), write(folder / "test.tsv", test)
    command = [sys.executable, "-m", "heedful", "train", files[0], "--test", files[1], "--task", "classification"]
    settings = ["--set", f"training.seed={seed}", "--set", "training.export=false", "--threads", "1"]
    settings += ["--seeds", str(ensemble)] if ensemble > 1 else []
    subprocess.run([*map(str, command), "--out", str(folder / "m"), *settings], check=True, capture_output=True)
    command = [sys.executable, "-m", "heedful", "evaluate", folder / "m", files[1], "--format", "json"]
    done = subprocess.run([*map(str, command)], check=True, capture_output=True, text=True)
    scores = json.loads(done.stdout)
    return scores["accuracy"], scores["macro_f1"]


def scores(test: Rows, predicted: list[str]) -> tuple[float, float]:
    labels = [label for _, label in test]
    return 100.0 * accuracy_score(labels, predicted), 100.0 * f1_score(labels, predicted, average="macro")


def linear(train: Rows, test: Rows) -> tuple[float, float]:
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(C=10, max_iter=1000))
    model.fit(*zip(*train, strict=True))
    return scores(test, [*model.predict([text for text, _ in test])])


def tune(train: str, valid: str, seed: int, seconds: int) -> dict[str, Any]:
    """Settings that fastText finds; in a process of its own, because it does not always come to an end."""
    code = (
        "import json, resource, sys, fasttext\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({TUNED_BYTES}, {TUNED_BYTES}))\n"
        "train, valid, seed, seconds, *names = sys.argv[1:]\n"
        "model = fasttext.train_supervised(train, thread=1, seed=int(seed), verbose=0, autotuneValidationFile=valid, "
        "autotuneDuration=int(seconds))\n"
        "known = {name: getattr(model, name) for name in names} | {'loss': model.loss.name}\n"
        "print(json.dumps(known))\n"
    )
    arguments = [train, valid, str(seed), str(seconds), *TUNED]
    command = [sys.executable, "-c", code, *arguments]
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=4 * seconds)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        # A killed process may have taken more memory than there is.
        print(f"fastText found no settings; its fixed ones are taken: {str(error)[-100:]}", file=sys.stderr)
        return dict(FASTTEXT)
    return json.loads(done.stdout.splitlines()[-1])


def tuned(folder: Path, train: Rows, test: Rows, seed: int, seconds: int, known: dict[str, Any]) -> tuple[float, float]:
    """Scores of fastText, which tunes itself unless its settings are known already; they are then."""
    numbers = {label: str(number) for number, label in enumerate(sorted({label for _, label in train}))}
    names = {f"__label__{number}": label for label, number in numbers.items()}
    drawn = random.Random(seed).sample(train, len(train))

    def written(name: str, rows: Rows) -> str:
        lines = (f"__label__{numbers[label]} {text}\n" for text, label in rows)
        (folder / name).write_text("".join(lines), "utf-8")
        return str(folder / name)

    if not known:
        held = len(drawn) // 10
        files = written("tuned.txt", drawn[held:]), written("valid.txt", drawn[:held])
        known |= tune(*files, seed, seconds) if seconds else FASTTEXT
    model = fasttext.train_supervised(written("train.txt", drawn), thread=1, seed=seed, verbose=0, **known)
    # `model.predict` itself does not run with NumPy 2.
    return scores(test, [names[model.f.predict(f"{text}\n", 1, 0.0, "strict")[0][1]] for text, _ in test])


def rare(rows: Rows, seed: int) -> Rows:
    """Rows of two labels, one of which is a twentieth."""
    counts, draw = Counter(label for _, label in rows), random.Random(seed)
    if len(counts) > 2:
        kept = draw.sample(sorted(counts), RARE_LABELS)
        return [(text, "one" if label == kept[0] else "others") for text, label in rows if label in kept]
    (common, number), (other, _) = counts.most_common()
    few = draw.sample([row for row in rows if row[1] == other], number // 19)
    return [row for row in rows if row[1] == common] + few


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--rows", nargs="+", type=int, default=[0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--rare", action="store_true")
    parser.add_argument("--autotune", type=int, default=60, metavar="SECONDS")
    parser.add_argument("--ensemble", type=int, default=1, metavar="N", help="heedful with --seeds N")
    options = parser.parse_args()
    heads = ("corpus", "rows a label", "seed", "heedful: accuracy, macro-F1", "seconds", "TF-IDF + LR", "seconds")
    heads += ("fastText", "seconds") if fasttext else ()
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for name in options.files:
        rows = read(name)
        for most in options.rows:
            settings: dict[str, Any] = {}
            for seed in options.seeds:
                train, test = divide(rare(rows, seed) if options.rare else rows, seed, most)
                cells: list[str] = []
                with tempfile.TemporaryDirectory() as folder:
                    measures = [
                        partial(heedful, Path(folder), train, test, seed, options.ensemble),
                        partial(linear, train, test),
                        partial(tuned, Path(folder), train, test, seed, options.autotune, settings),
                    ]
                    for measure in measures[: 3 if fasttext else 2]:
                        started = time.monotonic()
                        accuracy, macro_f1 = measure()
                        cells += [f"{accuracy:.2f}, {macro_f1:.2f}", f"{time.monotonic() - started:.0f}"]
                        print(*cells[-2:], file=sys.stderr, flush=True)
                stem = Path(name.partition(":")[0]).stem + (", 95 : 5" if options.rare else "")
                print(f"| {stem} | {most or 'all'} | {seed} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
