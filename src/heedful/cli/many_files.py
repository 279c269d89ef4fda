"""Translate many files with Ray Data: `heedful translate MODEL --ray FILE... --output FOLDER`.

Every worker loads the model once and translates shard after shard. Ray reassigns the shard of a lost worker; finished
shards are not translated again, so running the same command again continues where it stopped.
"""

import logging
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol, final

from heedful.cli.messages import Messages
from heedful.engines.shards import Shard, plan_jobs, run_jobs
from heedful.errors import HeedfulError, MissingExtra, ResourceError, UsageError
from heedful.text.counts import counted

QUIET: Final = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DATA_DISABLE_PROGRESS_BARS": "1"}
"""Settings of Ray without usage reports and progress bars."""


class Opener(Protocol):
    """Work description sent to a worker, which loads the model itself."""

    def load(self) -> Callable[[Shard], int]:
        """Load the model.

        Returns:
            A function that writes a shard's outputs and returns the number of lines that were cut.
        """
        ...


@final
@dataclass(frozen=True)
class ManyFiles:
    """Translator of shards, and the number of lines at a time."""

    sources: Sequence[Path]
    folder: Path
    num_workers: int
    threads_each: int


def translate_files(files: ManyFiles, about: dict[str, Any], opener: Opener, messages: Messages) -> None:
    """Translate files into a folder, or continue an earlier run.

    Args:
        about: facts beside the inputs that determine the outputs.
        opener: loads the model in a worker.

    Raises:
        UsageError: the inputs or the folder are unsuitable.
        MissingExtra: Ray is not installed.
        ResourceError: a worker ran out of disk or memory.
    """
    if find_spec("ray") is None:
        raise MissingExtra("Ray", "ray", "translating with --ray")
    jobs = plan_jobs(files.sources, files.folder, about)
    left = sum(len(job.remaining) for job in jobs)
    messages.say(f"{files.folder}: {left:,} of {sum(len(job.shards) for job in jobs):,} shards to do")

    def run(shards: list[Shard]) -> Iterable[Shard]:
        return run_with_ray(shards, opener, files, messages) if shards else ()

    for job in run_jobs(jobs, run):
        messages.say(f"{job.output}: complete")


def run_with_ray(
    shards: Sequence[Shard], opener: Opener, files: ManyFiles, messages: Messages | None = None
) -> Iterator[Shard]:
    """Translate shards on Ray's workers: those of the cluster that RAY_ADDRESS names, or processes of this machine.

    Args:
        files: numbers of workers and of threads per worker.
        messages: printer of warnings about cut lines.

    Yields:
        Each shard once its outputs are written.

    Raises:
        UsageError: a worker met an input that cannot be read.
        ResourceError: a worker ran out of disk or memory.
    """
    os.environ.update({name: os.environ.get(name, value) for name, value in QUIET.items()})
    import ray  # pyright: ignore[reportMissingImports]
    import ray.data  # pyright: ignore[reportMissingImports]

    is_local = "RAY_ADDRESS" not in os.environ
    num_cpus = {"num_cpus": files.num_workers * files.threads_each, "include_dashboard": False} if is_local else {}
    with _only_our_messages():
        ray.init(log_to_driver=False, logging_level="error", **num_cpus)
        try:
            rows = ray.data.from_items([asdict(shard) for shard in shards], override_num_blocks=len(shards))
            pool = ray.data.ActorPoolStrategy(size=files.num_workers)
            done = rows.map(_Worker, fn_constructor_args=(opener,), compute=pool, num_cpus=files.threads_each)
            for row in done.iter_rows():
                if row["exit_code"] == UsageError.exit_code:
                    raise UsageError(row["fault"])
                if row["fault"]:
                    raise ResourceError(row["fault"])
                if row["num_cut"] and messages:
                    messages.warn(
                        f"{row['source']}: {counted(row['num_cut'], 'line')} cut from line {row['first_line'] + 1} on"
                    )
                yield Shard(**{name: row[name] for name in Shard.__dataclass_fields__})
        finally:
            ray.shutdown()


@contextmanager
def _only_our_messages() -> Generator[None]:
    """Keep Ray's messages off standard error; its log files have them too.

    Ray's C++ parts write to the file descriptor, so the descriptor is redirected, and Python's stream goes to a copy.
    """
    disabled = logging.root.manager.disable
    logging.disable(logging.ERROR)
    sys.stderr.flush()
    stderr_copy = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        with open(stderr_copy, "w", encoding="utf-8", errors="replace", newline="\n", closefd=False) as stream:
            is_ours = sys.stderr is sys.__stderr__
            with redirect_stderr(stream) if is_ours else nullcontext():
                yield
    finally:
        os.dup2(stderr_copy, 2)
        os.close(stderr_copy)
        logging.disable(disabled)


@final
class _Worker:
    """Worker in a Ray process: translates a shard and returns the outcome."""

    def __init__(self, opener: Opener) -> None:
        self._translate = opener.load()

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        shard = Shard(**row)
        outcome = {**row, "num_cut": 0, "fault": "", "exit_code": 0}
        try:
            # A lost worker may have finished the shard just before.
            outcome["num_cut"] = 0 if shard.is_done else self._translate(shard)
        except HeedfulError as error:
            outcome |= {"fault": str(error), "exit_code": error.exit_code}
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            fault = f"{shard.output}: {reason}; free some space and run the same command"
            outcome |= {"fault": fault, "exit_code": ResourceError.exit_code}
        return outcome
