"""Cost of corrections: time of an append, memory and time of a translation memory of many sentences.

    python benchmarks/corrections.py PAIRS NUMBER... [--model MODEL]

The first NUMBER pairs of the file are corrections; further sources, as many, look for matches. Printed for each number:
the size of the journal, the time of one append (on disk), the time to read and index the journal after a change, the
time to find the match of a source, and the memory that the opened corrections hold.

With --model, a copy of the model has the corrections, and one process of `heedful translate` runs. Printed as well: the
time of the command `heedful correct`, and from its end to the corrected output of the running process, each the median
and the largest of ten.
"""

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import IO, cast

from heedful.data.corpus import find_pairs
from heedful.data.corrections import NAME
from heedful.engines.translation_memory import TranslationMemory

NUM_WAITS = 10
HEEDFUL = (sys.executable, "-m", "heedful")


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


class RunningTranslate:
    """Process of `heedful translate` that translates each line as it comes."""

    def __init__(self, model: Path) -> None:
        words = [*HEEDFUL, "translate", str(model), "--threads", "1", "--batch-tokens", "1", "--quiet"]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._input, self._output = cast(IO[bytes], self._process.stdin), cast(IO[bytes], self._process.stdout)

    def translate(self, source: str) -> str:
        self._input.write(f"{source}\n".encode())
        self._input.flush()
        return self._output.readline().decode().rstrip("\n")

    def close(self) -> None:
        self._input.close()
        self._process.wait()


def in_force(model: Path, pairs: list[tuple[str, str]], number: int) -> str:
    """Times of corrections in a running process, whose journal has as many corrections before the first."""
    commands: list[float] = []
    waits: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.model"
        shutil.copytree(model, copy)
        TranslationMemory(copy / NAME, str).journal.add(pairs[:number])
        running = RunningTranslate(copy)
        running.translate(pairs[-1][0])  # it has started
        for source, _ in pairs[number : number + NUM_WAITS]:
            correction = f"{source} ({number:,})"
            words = [*HEEDFUL, "correct", str(copy), source, correction]
            commands.append(seconds(lambda words=words: subprocess.run(words, check=True, capture_output=True)))  # type: ignore[misc]
            started = time.perf_counter()
            output = running.translate(source)
            waits.append(time.perf_counter() - started)
            if output != correction:
                raise SystemExit(f"not in force: {source} became {output}")
        running.close()
    command, wait = (f"{statistics.median(times):.2f} s (at most {max(times):.2f})" for times in (commands, waits))
    return f"{command} for the command; then {wait} until a running process has it"


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost of corrections.")
    parser.add_argument("pairs", type=Path)
    parser.add_argument("numbers", type=int, nargs="+")
    parser.add_argument("--model", type=Path, help="model for corrections in a running process")
    options = parser.parse_args()
    rows = {
        pair.source: pair.target for pair in find_pairs([options.pairs]) if pair.source.strip() and pair.target.strip()
    }
    if 2 * max(options.numbers) + NUM_WAITS > len(rows):
        parser.error(f"{options.pairs}: {len(rows):,} sources are too few for {max(options.numbers):,} corrections")
    for number in options.numbers:
        print(measure([*rows.items()], number), flush=True)
        if options.model:
            print(f"  {in_force(options.model, [*rows.items()], number)}", flush=True)


if __name__ == "__main__":
    main()
