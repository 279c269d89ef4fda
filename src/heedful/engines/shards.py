"""Sharded translation of many files by any number of workers: planning, progress, and joining in order.

An output folder has one file for each input, with the same name. While an input is being translated, its outputs are in
`NAME.parts/`, one file per shard, which gets its final name only when it is complete. So a shard is either done or not
begun, and a worker or machine that dies loses only its current shard. `shards.json` records the model, settings and
inputs; the folder is refused if they differ.
"""

import io
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, final

from heedful.errors import DamagedFile, FileRefused, UsageError
from heedful.files.atomic_write import atomic_write, sync
from heedful.files.bounded_read import MOST_BULK_BYTES, read_json_object
from heedful.files.formats import SHARDS_FORMAT
from heedful.text.lines import open_bytes, raw_lines, read_lines
from heedful.text.text_files import check_file, fingerprint_file

MANIFEST: Final = "shards.json"
SHARD_LINES: Final = 2048
"""Lines of a shard: the window that `translate` sorts by length, so that outputs equal those of one process."""


_PIECE_BYTES: Final = 1 << 20


def _skip(stream: BinaryIO, num_bytes: int) -> None:
    """Move forward from the beginning of a stream; a compressed one is read."""
    if stream.seekable():
        stream.seek(num_bytes)
        return
    while num_bytes > 0 and (piece := stream.read(min(num_bytes, _PIECE_BYTES))):
        num_bytes -= len(piece)


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
    """Byte offset of the first line in the decompressed input."""
    num_bytes: int

    @property
    def is_done(self) -> bool:
        """Whether the outputs exist."""
        return Path(self.output).is_file()

    def lines(self) -> Iterator[str]:
        """Read the lines of the shard.

        Yields:
            The same lines that `read_lines` yields from the whole input.

        Raises:
            DataError: the input cannot be read.
        """
        with open_bytes(Path(self.source)) as stream:
            _skip(stream, self.start)
            content = stream.read(self.num_bytes)
        # A first line is treated specially (byte order mark, UTF-16), so an empty one goes before any other shard.
        before = b"\n" if self.first_line else b""
        lines = read_lines(io.BytesIO(before + content), f"{self.source} from line {self.first_line + 1}", "replace")
        if before:
            next(lines)
        yield from lines

    def write(self, texts: Iterable[str]) -> None:
        """Write the outputs of the shard; the file appears when all of them are on disk.

        Args:
            texts: output lines, with line ends.

        Raises:
            OSError: the disk is full or refuses.
        """
        with atomic_write(Path(self.output)) as stream:
            for text in texts:
                stream.write(text.encode("utf-8", "replace").decode("utf-8"))


@final
@dataclass(frozen=True)
class Job:
    """Input file divided into shards."""

    source: Path
    output: Path
    shards: tuple[Shard, ...]

    @property
    def is_done(self) -> bool:
        """Whether the complete output exists."""
        return self.output.is_file()

    @property
    def remaining(self) -> list[Shard]:
        """Shards that are not done."""
        return [] if self.is_done else [shard for shard in self.shards if not shard.is_done]

    def finish(self) -> None:
        """Join the outputs of all shards, which must be done, into the output file.

        Raises:
            OSError: the disk is full or refuses; the outputs of the shards remain.
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
    """Divide inputs into shards, and record model, settings and inputs in the output folder.

    Args:
        folder: output folder; created if it does not exist, resumed if it was begun with the same model, settings and
            inputs.
        about: model and settings that determine the outputs, as JSON values.
        shard_lines: maximum number of lines of a shard.

    Returns:
        One job for each input, in order.

    Raises:
        UsageError: two inputs have the same name, an input has a reserved name or lies in the folder, or the folder
            holds other files or was begun with another model, settings or inputs.
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
            raise UsageError(f"{source}: lies in the folder of outputs; name another folder")
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
    """Check model, settings and inputs against the record of the folder, if there is one, and write the new record.

    Raises:
        UsageError: the folder was begun with another model, settings or inputs, or holds other files.
        FileRefused: the record is damaged.
        NewerFormat: a newer heedful wrote the record.
    """
    path = folder / MANIFEST
    record: dict[str, Any] = {"about": json.loads(json.dumps(about)), "sources": {}}
    if path.is_file():
        try:
            before = SHARDS_FORMAT.strip(path, read_json_object(path, MOST_BULK_BYTES))
            differing = [key for key in record["about"] if before["about"].get(key) != record["about"][key]]
            record["sources"] = dict(before["sources"])
        except (OSError, DamagedFile, ValueError, KeyError, TypeError, AttributeError) as error:
            raise FileRefused(f"{path}: damaged: {error}; name another folder") from None
        if differing:
            raise UsageError(f"{folder}: begun with another {differing[0]}; name another folder")
    elif any(folder.iterdir()):
        raise UsageError(f"{folder}: already holds other files; name another folder")
    for name, sha256 in prints.items():
        if record["sources"].setdefault(name, sha256) != sha256:
            raise UsageError(f"{folder}: begun with another {name}; name another folder")
    with atomic_write(path) as stream:
        json.dump(SHARDS_FORMAT.stamp(record), stream, ensure_ascii=False, indent=1)


def _cut(source: Path, output: Path, shard_lines: int) -> tuple[Shard, ...]:
    shards: list[Shard] = []
    start = first = num_lines = num_bytes = 0

    def close() -> None:
        name = str(_parts(output) / f"{len(shards):08d}")
        shards.append(Shard(str(source), name, first, num_lines, start, num_bytes))

    with open_bytes(source) as stream:
        for raw in raw_lines(stream, str(source)):
            # If the last line has no line end, this counts one byte too many, which is harmless at the end of the file.
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
    """Run all shards that are not done, and finish each job after its last shard.

    Args:
        jobs: jobs from `plan_jobs`.
        run: function that translates shards in any order and yields each when its outputs are on disk; it may yield a
            shard twice.

    Yields:
        Each job when it is finished.

    Raises:
        FileRefused: `run` yielded a shard whose outputs do not exist.
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
