"""Join one to four pairs of a corpus into one, to see how models do on longer and longer sources.

python examples/join_pairs.py joined train.de train.en val.de val.en test.de test.en
heedful compare examples/compare_lengths.toml joined/train.de joined/train.en --dev joined/val.de --dev joined/val.en \
    --test joined/test.de --test joined/test.en

Every two aligned files give two of the same names in the folder. Pairs are shuffled, and each is used once.
"""

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

from heedful.data.corpus import find_pairs

MOST = 4


def join_pairs(pairs: Sequence[tuple[str, str]], most: int = MOST, seed: int = 1) -> list[tuple[str, str]]:
    """Join runs of 1 to `most` pairs in a drawn order; every number of pairs is about equally frequent."""
    source = random.Random(seed)
    shuffled = source.sample(pairs, len(pairs))
    joined: list[tuple[str, str]] = []
    while shuffled:
        count = source.randint(1, most)
        run, shuffled = shuffled[:count], shuffled[count:]
        joined.append((" ".join(left for left, _ in run), " ".join(right for _, right in run)))
    return joined


def main(folder: Path, files: Sequence[Path], most: int = MOST, seed: int = 1) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for paths in zip(files[::2], files[1::2], strict=True):
        pairs = [(pair.source.strip(), pair.target.strip()) for pair in find_pairs([*paths])]
        joined = join_pairs(pairs, most, seed)
        for path, side in zip(paths, zip(*joined, strict=True), strict=True):
            (folder / path.name).write_text("".join(f"{text}\n" for text in side), encoding="utf-8", newline="\n")
        print(f"{len(pairs):,} pairs of {paths[0]} and {paths[1]} are {len(joined):,} in {folder}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Join one to four pairs of a corpus into one.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", type=Path, nargs="+", help="two aligned files, or several times two")
    parser.add_argument("--most", type=int, default=MOST)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    main(given.folder, given.files, given.most, given.seed)
