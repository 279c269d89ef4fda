"""Labels of long texts, of which one word tells the label, and of the same texts in other spellings.

    python benchmarks/odd_texts.py write signals
    heedful train signals/train.tsv --test signals/start.tsv --task classification --threads 1
    python benchmarks/odd_texts.py spellings trec.model trec.train.tsv

`write` makes a corpus of texts of 1,600 invented words: 300 rows for training, with one of five words of their label
anywhere, and tests of 100 rows each with it among the first hundred words, in the middle and among the last hundred.
`spellings` labels the first 2,000 texts of a file as they are, in other case, with other spaces and with other quotes,
and prints the share whose label stays.
"""

import argparse
import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Final

from heedful.data.labelled import find_labelled
from heedful.predictors.classifier import Classifier
from heedful.predictors.table import load

NUM_WORDS: Final = 1_600
NUM_TEXTS: Final = 2_000
SIGNALS: Final = {
    "harbour": ("lighthouse", "anchor", "quay", "trawler", "jetty"),
    "orchard": ("cherry", "blossom", "ladder", "cider", "graft"),
    "mine": ("shaft", "lantern", "seam", "pickaxe", "ore"),
}
SYLLABLES: Final = "bdfgklmnprst", "aeiou", ("n", "r", "st", "l", "m", "rt", "nk", "d"), ("a", "o", "us", "e")
WORDS: Final = tuple(map("".join, itertools.product(*SYLLABLES)))[:1_800]
PLACES: Final = {
    "train": range(NUM_WORDS),
    "start": range(100),
    "middle": range(750, 850),
    "end": range(NUM_WORDS - 100, NUM_WORDS),
}
QUOTES: Final = (("``", "“"), ("''", "”"), ("'", "’"), ('"', "”"))
SPELLINGS: Final[dict[str, Callable[[str], str]]] = {
    "capitals": str.upper,
    "Title Case": str.title,
    "lower case": str.lower,
    "doubled spaces": lambda text: text.replace(" ", "  "),
    "tabs": lambda text: text.replace(" ", "\t"),
    "line breaks": lambda text: text.replace(" ", "\n"),
    "no-break spaces": lambda text: text.replace(" ", "\N{NO-BREAK SPACE}"),
    "curly quotes": lambda text: _replaced(text),
    "spaces around it": lambda text: f"  {text} \n",
    "CR LF behind it": lambda text: f"{text}\r\n",
    "a zero-width space behind it": lambda text: f"{text}\N{ZERO WIDTH SPACE}",
    "a byte order mark before it": lambda text: f"\N{ZERO WIDTH NO-BREAK SPACE}{text}",
}


def _replaced(text: str) -> str:
    for plain, curly in QUOTES:
        text = text.replace(plain, curly)
    return text


def write(folder: Path) -> None:
    draw = random.Random(11)
    folder.mkdir(parents=True, exist_ok=True)
    for name, places in PLACES.items():
        lines: list[str] = []
        for _ in range(300 if name == "train" else 100):
            label = draw.choice([*SIGNALS])
            words = draw.choices(WORDS, k=NUM_WORDS)
            words[draw.choice(places)] = draw.choice(SIGNALS[label])
            lines.append(f"{' '.join(words)}\t{label}\n")
        (folder / f"{name}.tsv").write_text("".join(lines), "utf-8")


def measure(model: Path, data: Path) -> None:
    classifier = load(model, kind=Classifier)
    texts = [pair.source for pair in find_labelled([data])][:NUM_TEXTS]
    labels = classifier.predict(texts)
    print(f"| {len(texts):,} texts | same label |\n|---|---|")
    for name, spelling in SPELLINGS.items():
        found = classifier.predict([spelling(text) for text in texts])
        same = sum(one == other for one, other in zip(found, labels, strict=True))
        print(f"| {name} | {100 * same / len(texts):.2f} % |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("write").add_argument("folder", type=Path)
    spellings = commands.add_parser("spellings")
    spellings.add_argument("model", type=Path)
    spellings.add_argument("data", type=Path)
    given = parser.parse_args()
    if given.command == "write":
        write(given.folder)
    else:
        measure(given.model, given.data)


if __name__ == "__main__":
    main()
