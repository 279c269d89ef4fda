"""Sentiment of reviews: data files for training, and the accuracy of word counts on the same validation set.

    python benchmarks/reviews.py write reviews --imdb train.tsv.gz --hotels train.tsv --films folds0-8.tsv
    heedful train reviews/imdb.tsv --dev reviews/imdb-dev.tsv --task classification --preset hierarchical
    python benchmarks/reviews.py baselines reviews

`write` makes rows of a text, a tab and a label. Of IMDB one review in five validates, those with a SHA-256 that five
divides; of hotels one in ten, those with a CRC-32 that ten divides; of films one in nine, those of fold 8.

`baselines` trains on the same rows: naive Bayes (Laplace-smoothed presence of words, or of pairs of characters in
Chinese), and NBSVM (Wang and Manning 2012: a linear SVM on the presence of words and pairs, times log-count ratios).
"""

import argparse
import gzip
import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import BernoulliNB, MultinomialNB
from sklearn.svm import LinearSVC

Row = tuple[str, str, bool]
"""Text, label, and whether it validates."""
INTERPOLATION = 0.25
"""Share of the SVM's own weights beside their mean size; the paper's beta."""


def imdb(path: Path) -> Iterator[Row]:
    for line in gzip.open(path, "rt", encoding="utf-8"):
        label, _, text = line.rstrip("\n").split("\t")
        yield text, label, int(hashlib.sha256(text.encode()).hexdigest(), 16) % 5 == 0


def hotels(path: Path) -> Iterator[Row]:
    for line in path.read_text("utf-8").rstrip("\n").split("\n"):
        label, _, text = line.split("\t", 2)
        if text.strip():
            yield text, label, zlib.crc32(text.encode()) % 10 == 0


def films(path: Path) -> Iterator[Row]:
    for line in path.read_text("utf-8").rstrip("\n").split("\n"):
        label, fold, _, text = line.split("\t", 3)
        yield text.replace(" <s> ", "<br>"), label, fold == "8"


READERS = {"imdb": imdb, "hotels": hotels, "films": films}


def write(options: argparse.Namespace) -> None:
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, read in READERS.items():
        path: Path | None = getattr(options, name)
        if path is None:
            continue
        parts: tuple[list[str], list[str]] = [], []
        for text, label, is_held_out in read(path):
            parts[is_held_out].append(f"{text}\t{label}\n")
        for suffix, lines in zip(("", "-dev"), parts, strict=True):
            (options.folder / f"{name}{suffix}.tsv").write_text("".join(lines), encoding="utf-8", newline="\n")
        print(f"{name}: {len(parts[0]):,} reviews for training, {len(parts[1]):,} for validation")


def rows(path: Path) -> tuple[list[str], np.ndarray]:
    texts, labels = zip(*(line.rsplit("\t", 1) for line in path.read_text("utf-8").split("\n")[:-1]), strict=True)
    return [*texts], np.array(labels)


def baselines(options: argparse.Namespace) -> None:
    for name in READERS:
        if not (options.folder / f"{name}.tsv").is_file():
            continue
        is_chinese = name == "hotels"
        (texts, labels), (dev_texts, dev_labels) = (rows(options.folder / f"{name}{each}.tsv") for each in ("", "-dev"))
        options_of = {"analyzer": "char", "token_pattern": None} if is_chinese else {"token_pattern": r"[^\W_]+"}
        units = (2, 2) if is_chinese else (1, 1)
        for model, title in ((BernoulliNB(), "naive Bayes, presence"), (MultinomialNB(), "naive Bayes, counts")):
            counter = CountVectorizer(ngram_range=units, **options_of)
            fitted = model.fit(counter.fit_transform(texts), labels)
            print(
                f"{name}: {title} {fitted.score(counter.transform(dev_texts), dev_labels):.2%} of {len(dev_labels):,}"
            )
        counter = CountVectorizer(ngram_range=(1, 2), binary=True, **options_of)
        features, is_first = counter.fit_transform(texts), labels == np.unique(labels)[0]
        first, second = (1.0 + np.asarray(features[part].sum(axis=0)).ravel() for part in (is_first, ~is_first))
        ratios = np.log(first / first.sum()) - np.log(second / second.sum())
        svm = LinearSVC(C=1.0, max_iter=20_000).fit(features.multiply(ratios).tocsr(), is_first)
        weights = svm.coef_[0]
        weights = (1.0 - INTERPOLATION) * np.abs(weights).mean() + INTERPOLATION * weights
        scores = counter.transform(dev_texts).multiply(ratios).tocsr() @ weights + svm.intercept_
        print(f"{name}: NBSVM {np.mean((scores > 0) == (dev_labels == np.unique(labels)[0])):.2%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    writing = commands.add_parser("write")
    writing.add_argument("folder", type=Path)
    for name in READERS:
        writing.add_argument(f"--{name}", type=Path)
    writing.set_defaults(run=write)
    counting = commands.add_parser("baselines")
    counting.add_argument("folder", type=Path)
    counting.set_defaults(run=baselines)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
