"""Process that takes one document apart or writes it, so that no document can hold up or fill the server.

The process ends when it has used up its processor time or memory; the server ends it at its deadline. Document and
answer go through pipes: a line of JSON, and bytes.
"""

import asyncio
import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast

from heedful.documents.table import FORMATS, reader_of
from heedful.errors import HeedfulError
from heedful.text.tagged_text import Tag, TaggedText

BYTES_OF_A_MEGABYTE: Final = 41 << 20
"""Memory for each megabyte of a document, the first one begun, beside that of the empty process."""
MOST_PASSAGES: Final = 20_000
"""Largest number of passages of a document: the server has all of them in memory at once, with what each needs."""
MOST_TAGS: Final = 20_000
"""Largest number of inline tags of a document, each of which takes a kilobyte while it is placed."""
SECONDS: Final = 10.0
"""Processor time of a document."""


class DocumentRefused(Exception):
    """Document that cannot be read, or not within the limits; the message says why, in one line."""


async def read_document(ending: str, content: bytes, most_bytes: int, seconds: float) -> list[TaggedText]:
    """Take a document apart.

    Args:
        ending: format, a key of `heedful.documents.table.FORMATS`.
        most_bytes: bound of its unpacked size.
        seconds: time after which the process is ended.

    Returns:
        The passages to translate.

    Raises:
        DocumentRefused: it cannot be read, or takes too much time or memory.
    """
    facts = {"ending": ending, "most_bytes": most_bytes}
    head, _ = await _run(lambda: facts, content, seconds)
    return await asyncio.to_thread(_passages, head["passages"])


async def write_document(
    ending: str, content: bytes, most_bytes: int, outputs: Sequence[TaggedText], seconds: float
) -> bytes:
    """Write a document with translated passages.

    Args:
        ending: format, a key of `heedful.documents.table.FORMATS`.
        content: the document before.
        most_bytes: bound of its unpacked size.
        outputs: translation of each passage.
        seconds: time after which the process is ended.

    Raises:
        DocumentRefused: it takes too much time or memory.
    """

    def request() -> dict[str, Any]:
        return {"ending": ending, "most_bytes": most_bytes, "outputs": _rows(outputs)}

    return (await _run(request, content, seconds))[1]


async def _run(
    request: Callable[[], Mapping[str, Any]], content: bytes, seconds: float
) -> tuple[dict[str, Any], bytes]:
    """Answer of a process: the head, and the bytes after it.

    Requests and answers with many tags take long to write and to read, so that this is done beside the event loop.

    Raises:
        DocumentRefused: the document cannot be read, or takes too much time or memory.
    """
    most = BYTES_OF_A_MEGABYTE * max(1, math.ceil(len(content) / 1_000_000))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", __name__),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        head = await asyncio.to_thread(lambda: json.dumps({**request(), "memory_bytes": most}).encode())
        sent = head + b"\n" + content
        answer, _ = await asyncio.wait_for(process.communicate(sent), seconds)
    except TimeoutError:
        raise DocumentRefused(f"the document takes longer than {seconds:.0f} s; divide it") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    head, _, rest = answer.partition(b"\n")
    if process.returncode or not head:
        raise DocumentRefused("the document takes too much time or memory; divide it")
    facts = cast(dict[str, Any], await asyncio.to_thread(json.loads, head))
    if "error" in facts:
        raise DocumentRefused(facts["error"])
    return facts, rest


def _rows(passages: Sequence[TaggedText]) -> list[tuple[str, tuple[Tag, ...]]]:
    return [(passage.text, passage.tags) for passage in passages]


def _passages(rows: Sequence[Any]) -> list[TaggedText]:
    return [TaggedText(text, tuple(Tag(*tag) for tag in tags)) for text, tags in rows]


def _limit(num_bytes: int) -> None:
    """Limit time and memory of this process, where the system can."""
    if sys.platform != "win32":
        os.nice(10)  # the server goes first
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (ImportError, OSError):
        return
    most = pages * resource.getpagesize() + num_bytes
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (round(SECONDS), round(SECONDS) + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Serve one request."""
    head, _, content = sys.stdin.buffer.read().partition(b"\n")
    request = json.loads(head)
    outputs, rest = request.get("outputs"), b""
    for name in ("lxml.etree", "markdown_it"):  # what is imported is no memory of the document
        with suppress(ImportError):
            import_module(name)
    reader_of(request["ending"])
    _limit(request["memory_bytes"])
    try:
        document = FORMATS[request["ending"]](content, request["most_bytes"])
        if outputs is None:
            passages = document.passages
            answer: dict[str, Any] = {}
            for name, number, most in (
                ("passages", len(passages), MOST_PASSAGES),
                ("inline tags", sum(len(each.tags) for each in passages), MOST_TAGS),
            ):
                if number > most:
                    answer = {"error": f"it has {number} {name}, more than {most}; divide it"}
            answer = answer or {"passages": _rows(passages)}
        else:
            answer, rest = {}, document.write(_passages(outputs))
    except HeedfulError as error:
        answer = {"error": str(error)}
    except MemoryError:
        answer = {"error": "the document takes too much memory; divide it"}
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n" + rest)


if __name__ == "__main__":
    main()
