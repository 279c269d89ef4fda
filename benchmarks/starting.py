"""Time from the start of a command to its end, or of a server to its first answer.

    python benchmarks/starting.py MODEL --text 'Ein Hund rennt.' [--other OTHER/src]

Prints the median wall and processor time of several runs of Python alone, of `import heedful`, of `heedful --help`, of
`heedful translate` with one text, and the wall time of `heedful serve` until `/health` answers. With `--other`, the
same commands are run in turn from another source folder, such as that of an older version.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

PORT = 8931
Times = tuple[float, float]
"""Wall and processor time, in seconds."""


def command_times(command: list[str], text: str, environment: Mapping[str, str]) -> Times:
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, input=text.encode(), capture_output=True, check=True, env=environment)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def server_times(model: Path, environment: Mapping[str, str]) -> Times:
    command = [sys.executable, "-m", "heedful", "serve", str(model), "--port", str(PORT)]
    started = time.perf_counter()
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=5).close()
                return time.perf_counter() - started, float("nan")
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.005)
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--text", default="Ein Hund rennt.")
    parser.add_argument("--other", type=Path)
    parser.add_argument("--runs", type=int, default=9)
    given = parser.parse_args()
    python = [sys.executable]
    heedful = [*python, "-m", "heedful"]
    cases: dict[str, Callable[[Mapping[str, str]], Times]] = {
        "python -c pass": lambda env: command_times([*python, "-c", "pass"], "", env),
        "import heedful": lambda env: command_times([*python, "-c", "import heedful"], "", env),
        "heedful --help": lambda env: command_times([*heedful, "--help"], "", env),
        "one sentence": lambda env: command_times([*heedful, "translate", str(given.model), "-q"], given.text, env),
        "serve until /health": lambda env: server_times(given.model, env),
    }
    sources = [None, given.other] if given.other else [None]
    for name, run in cases.items():
        found: list[list[Times]] = [[] for _ in sources]
        for _ in range(given.runs + 1):
            for times, source in zip(found, sources, strict=True):
                times.append(run({**os.environ, **({"PYTHONPATH": str(source)} if source else {})}))
        for times, source in zip(found, sources, strict=True):
            wall, processor = (statistics.median(values) for values in zip(*times[1:], strict=True))
            print(f"{name:20} {source or ''}  wall {wall:.3f} s, processor {processor:.3f} s", flush=True)


if __name__ == "__main__":
    main()
