"""Process of a document: limits of time and memory, and the same documents as without it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, TypeVar

import httpx
import pytest

from heedful.documents import epub, gettext_catalog, xml_parts
from heedful.documents.table import FORMATS
from heedful.serving import document_process
from heedful.serving.document_process import DocumentRefused, read_document, write_document
from heedful.text.tagged_text import TaggedText
from tests.architecture.package import SOURCE
from tests.documents import made
from tests.prove import serving_attacks as attacks
from tests.serving.reversing import is_in_event_loop

ResultT = TypeVar("ResultT")


def run(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    return asyncio.run(asyncio.wait_for(work, 120))


def test_documents_are_those_of_this_process():
    for ending, content in ((".docx", made.word()), (".html", "<p title=ä>a <b>b</b>".encode()), (".md", b"# a *b*\n")):
        document = FORMATS[ending](content, 10**6)
        passages = run(read_document(ending, content, 10**6, 60))
        assert passages == document.passages
        outputs = [TaggedText(each.text.upper(), each.tags) for each in passages]
        assert run(write_document(ending, content, 10**6, outputs, 60)) == document.write(outputs)


def test_what_cannot_be_read_is_refused_with_its_reason():
    with pytest.raises(DocumentRefused, match="not UTF-8 text"):
        run(read_document(".md", b"\xff", 10**6, 60))


def test_a_document_that_takes_too_long_is_ended():
    started = time.monotonic()
    with pytest.raises(DocumentRefused, match="takes longer than 0 s"):
        run(read_document(".md", b"a", 10**6, 0.01))
    assert time.monotonic() - started < 30


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is not limited there")
def test_a_document_that_takes_too_much_memory_is_refused(monkeypatch: pytest.MonkeyPatch):
    content = b"a=b\n" * 20_001
    with pytest.raises(DocumentRefused, match=r"it has 20001 passages, more than 20000; divide it"):
        run(read_document(".properties", content, 10**6, 60))
    assert len(run(read_document(".properties", content[:-4], 10**6, 60))) == 20_000
    tags = b"[x](y) " * 20_001
    with pytest.raises(DocumentRefused, match=r"it has \d+ inline tags, more than 20000; divide it"):
        run(read_document(".md", tags, 10**6, 60))
    assert len(run(read_document(".md", tags[: 8 * 9_000], 10**6, 60))) == 1
    monkeypatch.setattr(document_process, "BYTES_OF_A_MEGABYTE", 1 << 20)
    with pytest.raises(DocumentRefused, match="too much"):
        run(read_document(".properties", content, 10**6, 60))


def exhausted(*_: object) -> None:
    raise MemoryError


def test_a_format_that_runs_out_of_memory_does_not_blame_the_file(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("lxml")
    pytest.importorskip("translate")
    monkeypatch.setattr(epub, "HtmlMarkup", exhausted)
    monkeypatch.setattr(xml_parts, "parse_xml", exhausted)
    for ending, name in ((".epub", "a.xhtml"), (".docx", "word/document.xml")):
        with pytest.raises(MemoryError):
            FORMATS[ending](made.archive({name: b"<p>a</p>"}), 10**6)
    with pytest.raises(MemoryError):
        gettext_catalog._read(exhausted, b"", 1)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processor time is not limited there")
def test_a_document_that_takes_too_much_processor_time_is_ended():
    """By the system: a server that is killed ends no process of a document."""
    code = (
        "from heedful.serving import document_process as limited; limited.SECONDS = 1.0; limited._limit(1 << 30)\n"
        "while True: pass"
    )
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, timeout=100)
    assert done.returncode in (-signal.SIGXCPU, -signal.SIGKILL)


def test_requests_and_answers_are_written_and_read_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch):
    """Requests and answers with many tags take a tenth of a second."""
    places: list[bool] = []

    def noted(work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            places.append(is_in_event_loop())
            return work(*arguments)

        return call

    for name in ("_rows", "_passages"):
        monkeypatch.setattr(document_process, name, noted(getattr(document_process, name)))
    monkeypatch.setattr(document_process, "json", SimpleNamespace(loads=noted(json.loads), dumps=noted(json.dumps)))
    passages = run(read_document(".md", b"a *b*\n", 10**6, 60))
    assert run(write_document(".md", b"a *b*\n", 10**6, passages, 60)) == b"a *b*\n"
    assert places == [False] * 6


def test_the_server_answers_others_beside_a_hostile_document():
    """Markup of which a tree would grow with the square of its length."""

    async def upload_beside_health() -> tuple[float, int]:
        async with attacks.running() as server, httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}") as client:
            fields, files = {"source": "de", "target": "en"}, {"file": ("a.html", b"<p><b a=1>" * 15_000)}
            upload = asyncio.ensure_future(client.post("/translate_file", data=fields, files=files, timeout=100))
            longest = 0.0
            while not upload.done():
                started = time.monotonic()
                assert (await client.get("/health")).status_code == 200
                longest = max(longest, time.monotonic() - started)
            return longest, (await upload).status_code

    longest, status = run(upload_beside_health())
    assert status in (200, 400)
    assert longest < 2, "a fifth of a second on a quiet machine"
