"""Disk cache of kernels: damaged files, changed sources, processes that start together: `make prove-kernel-cache`."""

import argparse
import random
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from heedful.files.atomic_write import private_folder
from tests.cpu import kernel_package
from tests.prove.prove_checkpoints import Record, table

DTYPES = ("float32", "float64")


def sweep_damaged(root: Path, num_cases: int, generator: random.Random, record: Record) -> None:
    """Empty, cut, swapped files, and files with a flipped bit: a new process computes the right result."""
    kernel_package.make(root)
    kernel_package.call(root, *DTYPES)
    paths = kernel_package.kernels(root)
    for number in range(num_cases):
        path = generator.choice(paths)
        content = path.read_bytes()
        place = generator.randrange(len(content))
        match number % 6:
            case 0:
                damaged = b""
            case 1:
                damaged = content[:place]
            case 2:
                damaged = next(other.read_bytes() for other in paths if other != path)
            case _:
                damaged = content[:place] + bytes([content[place] ^ 1 << generator.randrange(8)]) + content[place + 1 :]
        path.write_bytes(damaged)
        results, num_hits = kernel_package.call(root, *DTYPES)
        is_well = results == [135.0] * 2 and num_hits == 1 and path.read_bytes() != damaged
        record.ask(is_well, f"{path.name}, {len(damaged)} bytes: {results}, {num_hits} from the cache")


def sweep_stale(root: Path, num_cases: int, record: Record) -> None:
    """A source that a kernel inlines changes: the next process computes the new result, the one after loads it."""
    for weight in range(1, num_cases + 1):
        kernel_package.make(root, weight)
        wanted = [45.0 * weight] * 2
        first, again = (kernel_package.call(root, *DTYPES) for _ in range(2))
        record.ask(first == (wanted, 0) and again == (wanted, 2), f"weight {weight}: {first}, then {again}")


def sweep_races(root: Path, num_starts: int, generator: random.Random, record: Record) -> None:
    """Four processes at a time start on an empty or a damaged cache, with two types in either order."""
    kernel_package.make(root)
    for number in range(0, num_starts, 4):
        if number % 3:
            shutil.rmtree(root / "cache", ignore_errors=True)
        else:
            for path in kernel_package.kernels(root):
                path.write_bytes(path.read_bytes()[:-1])
        started = [kernel_package.start(root, *generator.sample(DTYPES, 2)) for _ in range(4)]
        for process in started:
            out, err = process.communicate()
            record.ask(process.returncode == 0 and "[[135.0, 135.0]," in out, f"{process.returncode}: {out}{err}")
    record.ask(kernel_package.call(root, *DTYPES) == ([135.0] * 2, 2), "what the races left is not whole")


def main(arguments: Sequence[str] | None = None) -> int:
    """Sweep and print the table.

    Returns:
        0 if every process computed the right results, else 1.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--damaged", type=int, default=60)
    parser.add_argument("--stale", type=int, default=20)
    parser.add_argument("--races", type=int, default=200, help="processes that race")
    given = parser.parse_args(arguments)
    records = {name: Record() for name in ("damaged", "stale", "races")}
    generator, began = random.Random(1), time.monotonic()
    with private_folder() as root:
        sweep_damaged(root / "damaged", given.damaged, generator, records["damaged"])
        sweep_stale(root / "stale", given.stale, records["stale"])
        sweep_races(root / "races", given.races, generator, records["races"])
    print(table(records, time.monotonic() - began))
    return int(any(each.failures for each in records.values()))


if __name__ == "__main__":
    sys.exit(main())
