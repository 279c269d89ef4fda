"""Train on historical spelling (Bollmann 2019, NAACL), and print the score beside published ones.

git clone https://github.com/coastalcph/histnorm
python examples/shared_tasks/histnorm.py histnorm/datasets/historical/icelandic/icelandic-icepahc out --tokens 5000

A corpus is running text, a token a line, in its old and its modern form: files `NAME.train.txt`, `NAME.dev.txt` and
`NAME.test.txt`. The score is that of the paper: the share of tokens of running text whose modern form is right.
Training takes the first tokens and stops at the best model on the development set; tokens that were seen in training
get their commonest form where that is right more often there. The test set is read with --test alone. `out` gets the
model and the outputs, an old and a modern form a line.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import heedful
from heedful.cli.main import main as heedful_command

PUBLISHED: Final = {
    "german-ridges": ((75.0, 80.3, 85.9), (65.3, 75.8, 84.2)),
    "hungarian-hgds": ((53.0, 58.7, 69.8), (41.1, 51.7, 66.0)),
    "icelandic-icepahc": ((72.3, 76.4, 81.8), (66.0, 72.9, 79.6)),
    "slovene-goo300k-bohoric": ((82.9, 88.1, 91.1), (78.1, 84.3, 89.8)),
    "swedish-gaw": ((78.5, 85.3), (72.1, 81.4)),
}
"""Word accuracy on test sets after training on 1,000, 5,000 and 25,000 tokens: cSMTiser with a language model of modern
words, and the better of the two neural systems. Bollmann 2019, table 6."""
SIZES: Final = (1_000, 5_000, 25_000)
Rows = list[tuple[str, str]]


def read(path: Path, most: int = 0) -> Rows:
    """Old and modern forms of the first tokens of a file; 0 = of all."""
    lines = [line for line in path.read_text(encoding="utf-8").split("\n") if line]
    pairs = [line.split("\t") for line in lines[: most or None]]
    return [(old, modern) for old, modern in pairs]


def write(path: Path, rows: Rows) -> Path:
    path.write_text("".join(f"{old}\t{modern}\n" for old, modern in rows), encoding="utf-8", newline="\n")
    return path


def accuracy(outputs: Rows, gold: Rows) -> float:
    """Share of tokens whose modern form is right, in percent."""
    return 100.0 * sum(output == right for output, right in zip(outputs, gold, strict=True)) / len(gold)


def looked_up(train: Rows, gold: Rows) -> Rows:
    """Commonest form of tokens that were seen in training; others stay as they are."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for old, modern in train:
        counts[old][modern] += 1
    return [(old, counts[old].most_common(1)[0][0] if old in counts else old) for old, _ in gold]


def main(corpus: Path, out: Path, num_tokens: int, has_test: bool = False, options: Sequence[str] = ()) -> None:
    files = {part: corpus.with_name(f"{corpus.name}.{part}.txt") for part in ("train", "dev", "test")}
    out.mkdir(parents=True, exist_ok=True)
    train = read(files["train"], num_tokens)
    paths = [
        write(out / "train.tsv", train),
        "--dev",
        write(out / "dev.tsv", read(files["dev"])),
        "--out",
        out / "model",
    ]
    if code := heedful_command(["train", *map(str, paths), "--quiet", *options]):
        raise SystemExit(code)
    part = "test" if has_test else "dev"
    gold = read(files[part])
    translator = heedful.load(out / "model", kind=heedful.Translator)
    results = translator.translate([old for old, _ in gold], segments=None)
    outputs = [(old, one.text) for (old, _), one in zip(gold, results, strict=True)]
    write(out / f"{part}.out.tsv", outputs)
    print(f"{corpus.name}, {len(train):,} tokens; tokens right, {part}: {accuracy(outputs, gold):.2f} %")
    print(f"looked up, or left as it is: {accuracy(looked_up(train, gold), gold):.2f} %")
    published = dict(zip(SIZES, zip(*PUBLISHED.get(corpus.name, ((), ())), strict=True), strict=False))
    if num_tokens in published:
        print("published, test: cSMTiser with modern words {:.1f} %, neural {:.1f} %".format(*published[num_tokens]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="path of the files of a corpus, without .train.txt")
    parser.add_argument("out", type=Path, help="folder of the model and the outputs")
    parser.add_argument("--tokens", type=int, default=5_000, help="number of training tokens")
    parser.add_argument("--test", action="store_true", help="score the test set")
    given = parser.parse_args()
    main(given.corpus, given.out, given.tokens, given.test)
