"""Data of the results on adapting a model: going on from it, corrections, text of one side, confidence.

    python benchmarks/adaptation.py CORPORA adaptation

Written to the second folder, each file as pairs of a source, a tab and a target:

- Tatoeba, German-English: `tatoeba.tsv`, 120,000 pairs drawn from the training pairs, and `tatoeba-dev.tsv`; the others
  are `unseen.tsv`, less those whose source is among the 120,000.
- Multi30k, German-English: `val.tsv` (validation), `multi30k-1000.tsv`, `multi30k-5000.tsv` and `multi30k-10000.tsv`,
  drawn from the training pairs, and `more.en`, 20,000 English sentences of pairs that are not among the 5,000.
- For confidence: `NAME/train.tsv`, and validation pairs in two halves, `NAME/half-1.tsv` and `NAME/half-2.tsv` (every
  other source), for `dates`, `names` (English names in Chinese), `phonemes`, `multi30k` and `chinese` (Tatoeba,
  English-Chinese: 2,000 sources of its training pairs).

Every draw is `random.Random(1).sample`.
"""

import argparse
import gzip
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from heedful.synthetic.corpus import generate

Pair = tuple[str, str]
NUM_TATOEBA = 120_000
NUMBERS_MULTI30K = (1_000, 5_000, 10_000)
NUM_MONOLINGUAL = 20_000
NUM_DATES, NUM_DATES_VALIDATION = 75_000, 3_000
NUM_CHINESE_VALIDATION = 2_000


def lines(path: Path) -> list[str]:
    """Lines of a file, or of the file of this name that gzip compressed."""
    packed = path.with_name(f"{path.name}.gz")
    text = gzip.open(packed, "rt", encoding="utf-8").read() if packed.exists() else path.read_text("utf-8")
    return text.rstrip("\n").split("\n")


def aligned(stem: Path, source: str, target: str) -> list[Pair]:
    """Pairs of two files, less those with an empty side or a tab."""
    names = (stem.with_name(f"{stem.name}.{side}") for side in (source, target))
    pairs = zip(*(lines(path) for path in names), strict=True)
    return [(left, right) for left, right in pairs if left.strip() and right.strip() and "\t" not in left + right]


def columns(path: Path, header: bool = False) -> list[Pair]:
    """First two columns of a table."""
    rows = [line.split("\t") for line in lines(path)]
    return [(row[0], row[1]) for row in rows[int(header) :]]


def drawn(pairs: Sequence[Pair], number: int) -> list[Pair]:
    return random.Random(1).sample(pairs, min(number, len(pairs)))


def held_out(pairs: Sequence[Pair], number: int) -> tuple[list[Pair], list[Pair]]:
    """Pairs for training, and those of sources that were drawn for validation."""
    sources = {*random.Random(1).sample([*dict.fromkeys(source for source, _ in pairs)], number)}
    return [pair for pair in pairs if pair[0] not in sources], [pair for pair in pairs if pair[0] in sources]


def halves(pairs: Sequence[Pair]) -> tuple[list[Pair], list[Pair]]:
    """Pairs of every other source, from the first, and those of the other sources."""
    places = {source: place for place, source in enumerate(dict.fromkeys(source for source, _ in pairs))}
    parts: tuple[list[Pair], list[Pair]] = [], []
    for pair in pairs:
        parts[places[pair[0]] % 2].append(pair)
    return parts


def tatoeba(data: Path) -> Iterator[tuple[str, list[Pair]]]:
    pairs = aligned(data / "tatoeba_deu" / "train", "de", "en")
    first = drawn(pairs, NUM_TATOEBA)
    seen = {source for source, _ in first}
    yield "tatoeba.tsv", first
    yield "unseen.tsv", [pair for pair in pairs if pair[0] not in seen]
    yield "tatoeba-dev.tsv", aligned(data / "tatoeba_deu" / "dev", "de", "en")


def multi30k(data: Path) -> Iterator[tuple[str, list[Pair]]]:
    pairs = aligned(data / "multi30k" / "train", "de", "en")
    yield "val.tsv", aligned(data / "multi30k" / "val", "de", "en")
    for number in NUMBERS_MULTI30K:
        yield f"multi30k-{number}.tsv", drawn(pairs, number)


def confidence(data: Path) -> Iterator[tuple[str, list[Pair]]]:
    sets = {
        "dates": (
            [*generate(NUM_DATES, seed=1, split="train")],
            [*generate(NUM_DATES_VALIDATION, seed=1, split="dev")],
        ),
        "names": tuple(columns(data / "translit_en2zh" / name, header=True) for name in ("train.tsv", "valid.tsv")),
        "phonemes": tuple(columns(data / "cmudict_g014b2b" / name) for name in ("train.tsv", "dev.tsv")),
        "multi30k": tuple(aligned(data / "multi30k" / name, "de", "en") for name in ("train", "val")),
        "chinese": held_out(aligned(data / "tatoeba_cmn" / "train", "en", "zh"), NUM_CHINESE_VALIDATION),
    }
    for name, (train, validation) in sets.items():
        yield f"{name}/train.tsv", train
        for number, half in enumerate(halves(validation), start=1):
            yield f"{name}/half-{number}.tsv", half


def write(path: Path, rows: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8", newline="\n")
    print(f"{path}: {len(rows):,} lines")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the corpora")
    parser.add_argument("folder", type=Path, help="folder to write to")
    options = parser.parse_args()
    for part in (tatoeba, multi30k, confidence):
        for name, pairs in part(options.data):
            write(options.folder / name, ["\t".join(pair) for pair in pairs])
    pairs = aligned(options.data / "multi30k" / "train", "de", "en")
    paired = set(drawn(pairs, NUMBERS_MULTI30K[1]))
    others = [pair for pair in pairs if pair not in paired]
    write(options.folder / "more.en", [target for _, target in drawn(others, NUM_MONOLINGUAL)])


if __name__ == "__main__":
    main()
