"""First reading of a corpus of many pairs: seconds of each part, and memory.

    python benchmarks/preparation.py train.de train.en [--pairs 500000]

Pairs of 10 to 40 words a side are drawn from two texts, with a number in each source, and prepared in a temporary
folder with default settings, as `heedful train` does before its first step.
"""

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from heedful.data import prepare
from heedful.data.corpus import find_pairs
from heedful.text.tokenizer import TextConfig

PARTS = ("FirstReading", "learn_tokenizers", "_encode")


def main() -> None:
    """Print the seconds of the parts and of all, and the peak of resident memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs=2, type=Path)
    parser.add_argument("--pairs", type=int, default=500_000)
    options = parser.parse_args()
    for name in PARTS:
        setattr(prepare, name, _timed(name, getattr(prepare, name)))
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "pairs.tsv"
        _write(corpus, [path.read_text("utf-8").split() for path in options.texts], options.pairs)
        files = prepare.Sources(find_pairs([corpus]))
        (Path(folder) / "model").mkdir()
        _timed("all", prepare.prepare)(files, TextConfig(), Path(folder) / "model")
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024:,} MB")


def _timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def measured(*arguments: Any) -> Any:
        wall, processor = time.perf_counter(), time.process_time()
        result = function(*arguments)
        print(f"{name}: {time.perf_counter() - wall:.1f} s, {time.process_time() - processor:.1f} s of a processor")
        return result

    return measured


def _write(path: Path, sides: list[list[str]], number: int) -> None:
    draw = random.Random(5)
    with path.open("w", encoding="utf-8") as stream:
        for _ in range(number):
            size = draw.randint(10, 40)
            starts = [draw.randrange(len(side) - 50) for side in sides]
            source, target = (side[start : start + size] for side, start in zip(sides, starts, strict=True))
            stream.write(f"{' '.join(source)} {draw.randrange(100_000)}\t{' '.join(target)}\n")


if __name__ == "__main__":
    main()
