"""Processor time of single sentences with segments against that without, sentence by sentence.

    python benchmarks/segments_speed.py MODEL SOURCES [--sentences 400] [--start]

Each sentence is translated with and without, one after the other, first the one or the other by chance, so that what
else the machine does falls on both alike. Printed are the median of the ratios of speed, with a 95 % interval by
bootstrap, the ratio of the sums, and the same of a comparison without a difference. Sentences that are cut, or
translated twice, do other work with segments, and are counted apart. `--start` does the same with new processes that
each translate one sentence.
"""

import argparse
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

Way = Callable[[str], object]


def process_seconds(work: Way, source: str) -> float:
    started = time.process_time()
    work(source)
    return time.process_time() - started


def children_seconds(work: Way, source: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work(source)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(name: str, sources: Sequence[str], ways: tuple[Way, Way], seconds: Callable[[Way, str], float]) -> None:
    """Print the speed of the second way, in that of the first."""
    generator = random.Random(0)
    pairs: list[tuple[float, float]] = []
    for source in sources:
        times = [0.0, 0.0]
        for which in generator.sample((0, 1), 2):
            times[which] = seconds(ways[which], source)
        pairs.append((times[0], times[1]))
    ratios = [first / second for first, second in pairs]
    medians = sorted(statistics.median(generator.choices(ratios, k=len(ratios))) for _ in range(2000))
    sums = sum(first for first, _ in pairs) / sum(second for _, second in pairs)
    milliseconds = [1000 * statistics.median(times) for times in zip(*pairs, strict=True)]
    print(
        f"{name}: {len(pairs)} pairs, {milliseconds[0]:.2f} and {milliseconds[1]:.2f} ms, speed "
        f"{statistics.median(ratios):.4f} [{medians[50]:.4f}, {medians[1949]:.4f}], by sums {sums:.4f}"
    )


def measure_starts(model: str, sources: Sequence[str]) -> None:
    code = "import sys, heedful; heedful.load(sys.argv[1]).translate([sys.argv[2]], segments={})"

    def starting(segments: str) -> Way:
        command = [sys.executable, "-c", code.format(segments), model]
        return lambda source: subprocess.run([*command, source], check=True)

    measure("new processes", sources, (starting("None"), starting("'auto'")), children_seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("sources", type=Path)
    parser.add_argument("--sentences", type=int, default=400)
    parser.add_argument("--start", action="store_true", help="measure new processes, of 40 sentences")
    options = parser.parse_args()
    sources = options.sources.read_text("utf-8").split("\n")[:-1]
    random.Random(1).shuffle(sources)
    if options.start:
        measure_starts(options.model, sources[:40])
        return
    import heedful
    from heedful.predictors.translator import Translator

    translator = heedful.load(options.model, kind=Translator)

    def with_segments(source: str) -> object:
        return translator.translate([source])

    def without(source: str) -> object:
        return translator.translate([source], segments=None)

    for source in sources[-20:]:
        with_segments(source)
        without(source)
    same: list[str] = []
    for source in sources[: options.sentences]:
        (one,), (other,) = translator.translate([source]), translator.translate([source], segments=None)
        if not one.segments and one.decoded is None and one.text == other.text:
            same.append(source)
    measure("the same work", same, (without, with_segments), process_seconds)
    measure("all sentences", sources[: options.sentences], (without, with_segments), process_seconds)
    measure("no difference", same, (without, without), process_seconds)


if __name__ == "__main__":
    main()
