"""Resident memory of `heedful translate` while lines come through standard input.

    python benchmarks/memory.py [--lines 1000000] [--folder FOLDER]

Trains a tiny model for seconds, exports it for ONNX Runtime, feeds lines of one to nine words, and reads the resident
memory each time another twentieth of the lines has come out. Reads /proc: Linux only.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO

FIRST = 100_000
"""Lines after which memory should no longer grow."""
SETTINGS = (
    "model.num_encoder_layers=1",
    "model.num_decoder_layers=1",
    "model.model_size=16",
    "model.num_heads=2",
    "model.feedforward_size=32",
    "training.max_steps=60",
    "training.validate_every=30",
    "text.vocabulary_size=320",
    "search.max_length_ratio=1.0",
    "search.max_length_offset=2",
)


def heedful(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "heedful", *map(str, arguments)]


def words(generator: random.Random) -> str:
    return " ".join("".join(generator.choices("abcdef", k=3)) for _ in range(generator.randint(1, 9)))


def make_model(folder: Path) -> Path:
    generator = random.Random(1)
    lines = [words(generator) for _ in range(2000)]
    data = folder / "pairs.tsv"
    data.write_text("".join(f"{line}\t{line.upper()}\n" for line in lines), encoding="utf-8")
    model = folder / "tiny.model"
    settings = [part for setting in SETTINGS for part in ("--set", setting)]
    subprocess.run(heedful("train", data, "--out", model, "--preset", "tiny", "--quiet", *settings), check=True)
    subprocess.run(heedful("export", model, "--to", "onnx", "--quiet"), check=True)
    return model


def feed(stream: IO[bytes], number: int) -> None:
    generator = random.Random(2)
    with stream:
        for _ in range(number):
            stream.write(f"{words(generator)}\n".encode())


def resident_mib(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="keep the model there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        model = folder / "tiny.model"
        if not model.exists():
            make_model(folder)
        command = heedful("translate", model, "--engine", "onnx", "--beam", 1, "--quiet")
        running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ)
        if not running.stdin or not running.stdout:
            raise SystemExit("no pipes")
        threading.Thread(target=feed, args=(running.stdin, given.lines), daemon=True).start()
        every, found, number = max(1, given.lines // 20), {}, 0
        for _ in running.stdout:
            number += 1
            # The process ends with its last line.
            if number % every == 0 or number == FIRST:
                found[number] = resident_mib(running.pid) if number < given.lines else found[max(found)]
                print(f"{number:10,} lines {found[number]:8.1f} MiB", flush=True)
        if running.wait() or number != given.lines:
            raise SystemExit(f"{number:,} of {given.lines:,} lines came out")
    after = [size for count, size in found.items() if count >= min(FIRST, given.lines)]
    print(f"from line {FIRST:,} on: {min(after):.1f} to {max(after):.1f} MiB, {max(after) / after[0] - 1:+.1%} at most")


if __name__ == "__main__":
    main()
