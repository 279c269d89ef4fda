"""Headlines of news: ROUGE of models and of the first words of an article, and trigrams that an output repeats.

    python benchmarks/headlines.py write headlines --articles train.jsonl.gz
    heedful compare examples/compare_headlines.toml headlines/train.tsv --dev headlines/dev.tsv --threads 1
    python benchmarks/headlines.py score headlines/dev.tsv plain.model copy.model

`write` takes the articles of Reuters-21578 (JSONL with "title" and "body"), in lower case: the first 60 words of an
article and its headline without markup. One article in ten validates: those whose body has a SHA-256 that ten divides.

`score` prints a row for the first ten words of each article, and for each model with and without blocked trigrams, with
the p-value of the difference in ROUGE-2 from the first ten words (paired bootstrap). Repeated trigrams are those of
words that stand earlier in the same output, as a share of all.
"""

import argparse
import gzip
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from heedful.cli.options import use_threads
from heedful.data.corpus import find_pairs
from heedful.evaluation.evaluate import compare, evaluate
from heedful.predictors.table import load
from heedful.predictors.translator import Translator

NUM_WORDS = 60
NUM_FIRST = 10
METRICS = ("rouge1", "rouge2", "rougeL")
MARKUP = re.compile(r"<[^<>]*>|&\w+;")


def rows(path: Path) -> Iterator[tuple[str, str, bool]]:
    """Beginning of an article, its headline, and whether it validates."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            article = json.loads(line)
            is_held_out = int(hashlib.sha256(article["body"].encode()).hexdigest(), 16) % 10 == 0
            words = article["body"].lower().split()[:NUM_WORDS]
            headline = " ".join(MARKUP.sub(" ", article["title"]).lower().split())
            yield " ".join(words), headline, is_held_out


def write(options: argparse.Namespace) -> None:
    options.folder.mkdir(parents=True, exist_ok=True)
    names = ("train", "dev")
    streams = [(options.folder / f"{name}.tsv").open("w", encoding="utf-8", newline="\n") for name in names]
    counts = [0, 0]
    for text, headline, is_held_out in rows(options.articles):
        if text and headline:
            streams[is_held_out].write(f"{text}\t{headline}\n")
            counts[is_held_out] += 1
    for stream in streams:
        stream.close()
    print(f"{counts[0]:,} articles for training, {counts[1]:,} for validation")


def repeated_share(outputs: Sequence[str]) -> float:
    """Share of the trigrams of words that stand earlier in the same output, in percent."""
    num_trigrams = num_repeated = 0
    for output in outputs:
        words = output.split()
        trigrams = [*zip(words, words[1:], words[2:], strict=False)]
        num_trigrams += len(trigrams)
        num_repeated += len(trigrams) - len({*trigrams})
    return 100 * num_repeated / max(1, num_trigrams)


def score(options: argparse.Namespace) -> None:
    use_threads(options.threads)
    pairs = [*find_pairs([options.pairs])]
    sources, references = [pair.source for pair in pairs], [[pair.target] for pair in pairs]
    first = [" ".join(source.split()[:NUM_FIRST]) for source in sources]

    baseline = evaluate(first, references, sources, METRICS)

    def row(name: str, outputs: Sequence[str]) -> None:
        report = evaluate(outputs, references, sources, METRICS)
        figures = "  ".join(f"{one.metric.name} {one.score:.2f}" for one in report.results)
        p = {one.metric: one.p_value for one in compare(report, baseline)}["ROUGE-2"]
        print(f"{name}: {figures}  repeated {repeated_share(outputs):.2f} %  p {p:.4f}", flush=True)

    row(f"first {NUM_FIRST} words", first)
    for path in options.models:
        translator = load(path, kind=Translator, engine=options.engine)
        for size in dict.fromkeys((translator.search.no_repeat_ngram_size, 3, 0)):
            search = translator.search.model_copy(update={"no_repeat_ngram_size": size, "beam": options.beam})
            name = f"{path}, no {size}-gram twice" if size else f"{path}, repetition allowed"
            row(name, [one.text for one in translator.translate(sources, search=search)])


def main() -> None:
    parser = argparse.ArgumentParser(description="Headlines of news.")
    commands = parser.add_subparsers(required=True)
    writing = commands.add_parser("write", help="write the articles as pairs")
    writing.add_argument("folder", type=Path)
    writing.add_argument("--articles", type=Path, required=True)
    writing.set_defaults(run=write)
    scoring = commands.add_parser("score", help="score models")
    scoring.add_argument("pairs", type=Path)
    scoring.add_argument("models", type=Path, nargs="*")
    scoring.add_argument("--beam", type=int, default=4)
    scoring.add_argument("--engine", default="auto")
    scoring.add_argument("--threads", type=int, default=1)
    scoring.set_defaults(run=score)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
