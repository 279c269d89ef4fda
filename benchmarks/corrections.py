"""Cost of corrections: time of an append, memory and time of a translation memory of many sentences.

    python benchmarks/corrections.py PAIRS NUMBER...

The first NUMBER pairs of the file are corrections; further sources, as many, look for matches. Printed for each number:
the size of the journal, the time of one append (on disk), the time to read and index the journal after a change, the
time to find the match of a source, and the memory that the opened corrections hold.
"""

import argparse
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from heedful.data.corpus import find_pairs
from heedful.data.corrections import NAME
from heedful.runtime.translation_memory import TranslationMemory


def seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def measure(pairs: list[tuple[str, str]], number: int) -> str:
    corrections, others = pairs[:number], pairs[number : 2 * number]
    with tempfile.TemporaryDirectory() as folder:
        memory = TranslationMemory(Path(folder) / NAME, str)
        memory.journal.add(corrections[:-20])
        appends = [seconds(lambda pair=pair: memory.journal.add([pair])) for pair in corrections[-20:]]  # type: ignore[misc]
        tracemalloc.start()
        memory.state().match(others[0][0])
        num_bytes = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        fresh = TranslationMemory(memory.journal.path, str)
        opening = seconds(lambda: fresh.state().match(others[0][0]))
        looks = [seconds(lambda source=source: fresh.state().match(source)) for source, _ in others[:1000]]  # type: ignore[misc]
        num_near = sum(fresh.state().match(source) is not None for source, _ in others[:1000])
        size = memory.journal.path.stat().st_size
    return (
        f"{number:,}: journal {size / 1e6:.2f} MB, append {1e3 * statistics.median(appends):.1f} ms, "
        f"open {1e3 * opening:.0f} ms, match {1e3 * statistics.median(looks):.2f} ms, memory {num_bytes / 1e6:.1f} MB; "
        f"{num_near} of {min(1000, len(others))} other sources have a match"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost of corrections.")
    parser.add_argument("pairs", type=Path)
    parser.add_argument("numbers", type=int, nargs="+")
    options = parser.parse_args()
    rows = {
        pair.source: pair.target for pair in find_pairs([options.pairs]) if pair.source.strip() and pair.target.strip()
    }
    for number in options.numbers:
        print(measure([*rows.items()], number), flush=True)


if __name__ == "__main__":
    main()
