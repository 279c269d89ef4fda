"""Sharded translation of many files by any number of workers: planning, progress, and joining in order.

A folder of outputs has one file for each input, of the same name. While an input is being translated, its outputs are
in `NAME.parts/`, one file for each shard, which gets its name only when it is complete. So a shard is either done or
not begun, and a worker or machine that dies loses one shard. `shards.json` records model, settings and inputs: with
others, the folder is refused.
"""

import io
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from heedful.errors import FileRefused, UsageError
from heedful.files import sync, written_whole
from heedful.formats import SHARDS_FORMAT
from heedful.text.lines import open_bytes, raw_lines, read_lines
from heedful.text.text_files import check_file, fingerprint_file

MANIFEST: Final = "shards.json"
SHARD_LINES: Final = 2048
"""Lines of a shard: as many as `translate` sorts by length together, so that outputs are those of one process."""


@final
@dataclass(frozen=True)
class Shard:
    """Consecutive lines of an input."""

    source: str
    """Path of the input."""
    output: str
    """Path of the shard's outputs, which exists once they are complete."""
    first_line: int
    """Index of the first line in the input, from 0."""
    num_lines: int
    start: int
    """Byte offset of the first line, after unpacking."""
    num_bytes: int

    @property
    def is_done(self) -> bool:
        """Whether the outputs exist."""
        return Path(self.output).is_file()

    def lines(self) -> Iterator[str]:
        """Read the lines of the shard.

        Yields:
            Each as `read_lines` gives it from the whole input.

        Raises:
            DataError: the input cannot be read.
        """
        with open_bytes(Path(self.source)) as stream:
            stream.seek(self.start)
            content = stream.read(self.num_bytes)
        # What is special about the first line of an input is so for no other line.
        before = b"\n" if self.first_line else b""
        lines = read_lines(io.BytesIO(before + content), f"{self.source} from line {self.first_line + 1}", "replace")
        if before:
            next(lines)
        yield from lines

    def write(self, texts: Iterable[str]) -> None:
        """Write the outputs of the shard; the file appears once all are on disk.

        Args:
            texts: with line ends.

        Raises:
            OSError: the disk is full or refuses.
        """
        with written_whole(Path(self.output)) as stream:
            for text in texts:
                stream.write(text.encode("utf-8", "replace").decode("utf-8"))


@final
@dataclass(frozen=True)
class Job:
    """Input file, cut into shards."""

    source: Path
    output: Path
    shards: tuple[Shard, ...]

    @property
    def is_done(self) -> bool:
        """Whether the complete output exists."""
        return self.output.is_file()

    @property
    def remaining(self) -> list[Shard]:
        """Shards without outputs."""
        return [] if self.is_done else [shard for shard in self.shards if not shard.is_done]

    def finish(self) -> None:
        """Join the outputs of all shards, which must be done, into the output file.

        Raises:
            OSError: the disk is full or refuses; the outputs of the shards stay.
        """
        if not self.is_done:
            part = self.output.with_name(f"{self.output.name}.part")
            with part.open("wb") as stream:
                for shard in self.shards:
                    with Path(shard.output).open("rb") as shard_stream:
                        shutil.copyfileobj(shard_stream, stream)
            sync(part)
            part.replace(self.output)
            sync(self.output.parent)
        shutil.rmtree(_parts(self.output), ignore_errors=True)


def plan_jobs(
    sources: Sequence[Path], folder: Path, about: Mapping[str, Any], shard_lines: int = SHARD_LINES
) -> list[Job]:
    """Cut inputs into shards, and record in the folder what its outputs depend on.

    Args:
        sources: inputs with different names.
        folder: of outputs; created if need be, continued if it was begun with the same model, settings and inputs.
        about: model and settings that outputs depend on, as JSON values.
        shard_lines: most lines of a shard.

    Returns:
        One job for each input, in order.

    Raises:
        UsageError: two inputs have one name, an input lies in the folder, or the folder was begun with something else.
        DataError: an input cannot be read.
        FileRefused: the folder's manifest is damaged.

    Cost: every input is read once.
    """
    names: dict[str, Path] = {}
    for source in sources:
        check_file(source)
        if source.name in names:
            raise UsageError(f"{source}: has the name of {names[source.name]}; give files of different names")
        if source.resolve().parent == folder.resolve():
            raise UsageError(f"{source}: lies in the folder of outputs; name another folder with --output")
        if source.name == MANIFEST or source.name.endswith((".part", ".parts")):
            raise UsageError(f"{source}: outputs of that name would mean something else; rename it")
        names[source.name] = source
    folder.mkdir(parents=True, exist_ok=True)
    prints = {name: fingerprint_file(source) for name, source in names.items()}
    _agree(
        folder,
        {**about, "length of shards": shard_lines},
        {name: str(fingerprint["sha256"]) for name, fingerprint in prints.items()},
    )
    jobs = [Job(source, folder / name, _cut(source, folder / name, shard_lines)) for name, source in names.items()]
    for job in jobs:
        if not job.is_done:
            _parts(job.output).mkdir(exist_ok=True)
    return jobs


def _agree(folder: Path, about: Mapping[str, Any], prints: Mapping[str, str]) -> None:
    """Record what outputs depend on, or check it against the record of the folder.

    Raises:
        UsageError: the folder was begun with something else, or holds other things.
        FileRefused: the record is damaged.
        NewerFormat: a newer heedful began it.
    """
    path = folder / MANIFEST
    record: dict[str, Any] = {"about": json.loads(json.dumps(about)), "sources": {}}
    if path.is_file():
        try:
            before = SHARDS_FORMAT.strip(path, json.loads(path.read_text(encoding="utf-8")))
            differing = [key for key in record["about"] if before["about"].get(key) != record["about"][key]]
            record["sources"] = dict(before["sources"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise FileRefused(f"{path}: damaged: {error}; name another folder with --output") from None
        if differing:
            raise UsageError(f"{folder}: begun with another {differing[0]}; name another folder with --output")
    elif any(folder.iterdir()):
        raise UsageError(f"{folder}: already holds other files; name another folder")
    for name, sha256 in prints.items():
        if record["sources"].setdefault(name, sha256) != sha256:
            raise UsageError(f"{folder}: begun with another {name}; name another folder with --output")
    with written_whole(path) as stream:
        json.dump(SHARDS_FORMAT.stamp(record), stream, ensure_ascii=False, indent=1)


def _cut(source: Path, output: Path, shard_lines: int) -> tuple[Shard, ...]:
    shards: list[Shard] = []
    start = first = num_lines = num_bytes = 0

    def close() -> None:
        name = str(_parts(output) / f"{len(shards):08d}")
        shards.append(Shard(str(source), name, first, num_lines, start, num_bytes))

    with open_bytes(source) as stream:
        for raw in raw_lines(stream, str(source)):
            # The last line may have no line end; nobody reads beyond it.
            num_lines, num_bytes = num_lines + 1, num_bytes + len(raw) + 1
            if num_lines == shard_lines:
                close()
                start, first, num_lines, num_bytes = start + num_bytes, first + num_lines, 0, 0
    if num_lines:
        close()
    return tuple(shards)


def _parts(output: Path) -> Path:
    return output.with_name(f"{output.name}.parts")


def run_jobs(jobs: Sequence[Job], run: Callable[[list[Shard]], Iterable[Shard]]) -> Iterator[Job]:
    """Run all shards that are not done, and finish each job with its last shard.

    Args:
        jobs: as planned.
        run: does shards in any order, and gives each when its outputs are there; it may do one twice.

    Yields:
        Each job when it is finished.

    Raises:
        FileRefused: shards were given as done that are not.
    """
    waiting = {job.output: {shard.output for shard in job.remaining} for job in jobs}
    of_shard = {shard.output: job for job in jobs for shard in job.shards}
    for job in jobs:
        if not waiting[job.output]:
            job.finish()
            yield job
    for shard in run([shard for job in jobs for shard in job.remaining]):
        job = of_shard[shard.output]
        left = waiting[job.output]
        if shard.output not in left:
            continue
        if not shard.is_done:
            raise FileRefused(f"{shard.output}: not there, though a worker wrote it; do all see the same disk?")
        left.discard(shard.output)
        if not left:
            job.finish()
            yield job
