"""Files that are uploaded, translated and downloaded."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePath
from typing import Any

import pytest
from starlette.testclient import TestClient

from heedful.documents.table import FORMATS
from heedful.serving import files
from heedful.serving.bodies import UploadedFile
from heedful.serving.files import MOST_FILES, Downloads
from tests.architecture.package import SOURCE
from tests.documents import made
from tests.serving.reversing import serve

SUBTITLES = b"1\n00:00:01,000 --> 00:00:02,500\nGood\nday.\n"


@pytest.mark.parametrize(
    ("ending", "make"), [(".docx", made.word), (".odt", made.open_text), (".srt", lambda: SUBTITLES)]
)
def test_a_file_is_translated_and_downloaded(ending: str, make: Callable[[], bytes]):
    client = serve()
    content = make()
    answer = client.post(
        "/translate_file", data={"source": "de", "target": "en"}, files={"file": (f"my file{ending}", content)}
    )
    assert answer.status_code == 200, answer.text
    address = answer.json()["translatedFileUrl"]
    assert PurePath(address).name == f"my_file_en{ending}"
    download = client.get(address)
    first = FORMATS[ending](content, 10**7).passages[0].text
    assert FORMATS[ending](download.content, 10**7).passages[0].text == first[::-1]


def test_faults_of_a_file_are_counted_if_asked():
    file = {"file": ("a.md", b"abc\n\nFaulty\n\nFaulty abc\n\nLosing\n")}
    fields = {"source": "de", "target": "en"}
    assert [*serve().post("/translate_file", data=fields, files=file).json()] == ["translatedFileUrl"]
    answer = serve().post("/translate_file", data={**fields, "faults": "true"}, files=file).json()
    assert answer["faults"] == {"loop": 2, "lost": 1}


def test_no_document_is_parsed_in_the_process_of_the_server(monkeypatch: pytest.MonkeyPatch):
    """It has no limits of time and memory there, and holds up all others."""

    def refuse(content: bytes, most_bytes: int) -> None:
        raise AssertionError

    monkeypatch.setitem(FORMATS, ".txt", refuse)
    answer = serve().post("/translate_file", data={"source": "de", "target": "en"}, files={"file": ("a.txt", b"Haus")})
    assert answer.status_code == 200


def test_a_format_that_is_not_read_is_refused_with_those_that_are():
    answer = serve().post("/translate_file", data={"source": "de", "target": "en"}, files={"file": ("a.pdf", b"x")})
    assert answer.status_code == 400
    assert "read are .txt, .html" in answer.json()["error"]


def test_many_files_of_one_client_take_no_file_of_another():
    downloads = Downloads()
    theirs = [downloads.add("a.txt", b"a", "other"), downloads.add("b.txt", b"b", "another")]
    ours = [downloads.add("c.txt", b"c", "one") for _ in range(3 * MOST_FILES)]
    assert all(downloads.find(token) for token in theirs)
    kept = [token for token in ours if downloads.find(token)]
    assert kept == ours[-(MOST_FILES - 2) :]


def test_many_files_of_one_network_take_no_file_of_another(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(files, "MOST_FILES", 3)
    app = serve().app

    def upload(address: str) -> str:
        form = {"data": {"source": "de", "target": "en"}, "files": {"file": ("a.txt", b"Haus")}}
        answer = TestClient(app, client=(address, 50_000)).post("/translate_file", **form)  # type: ignore[arg-type]
        return str(answer.json()["translatedFileUrl"])

    theirs = upload("192.0.2.1")
    ours = [upload(f"2001:db8::{number}") for number in range(1, 5)]
    client = TestClient(app)
    assert [client.get(address).status_code for address in (theirs, *ours)] == [200, 404, 404, 200, 200]


def test_a_server_leaves_no_file_behind_however_it_ends(tmp_path: Path):
    """Killed, it cannot tidy up."""
    code = (
        "import os, signal; from heedful.serving.files import Downloads; downloads = Downloads(); "
        "token = downloads.add('a.txt', b'x' * 200_000); assert downloads.find(token).num_bytes == 200_000; "
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "TMPDIR": str(tmp_path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == -signal.SIGKILL
    assert [*tmp_path.iterdir()] == []


def test_a_download_goes_on_when_its_time_is_over():
    async def read() -> list[bool]:
        downloads = Downloads()
        content = os.urandom(300_000)
        stored = downloads.find(downloads.add("a.txt", content))
        assert stored is not None
        both = [stored.chunks(), stored.chunks()]
        read = [await anext(each) for each in both]
        for _ in range(MOST_FILES):
            downloads.add("b.txt", b"b")
        assert stored.file.closed
        rest = [b"".join([chunk async for chunk in each]) for each in both]
        return [start + end == content for start, end in zip(read, rest, strict=True)]

    assert asyncio.run(read()) == [True, True]


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch):
    def full(buffering: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    client = serve()
    monkeypatch.setattr(files.tempfile, "TemporaryFile", full)
    answer = client.post("/translate_file", data={"source": "de", "target": "en"}, files={"file": ("a.txt", b"Haus")})
    assert (answer.status_code, answer.json()) == (503, {"error": "The server has no room for the translated file"})


def test_only_the_file_of_a_form_may_be_large():
    """All else is in memory while it arrives, for each of any number of clients."""
    client, content = serve(), b"x" * 2_000_000
    wanted = {"source": "de", "target": "en"}
    for kind in ("application/json", "multipart/form-datax; boundary=b", "multipart/form-data-x; boundary=b"):
        answer = client.post("/translate_file", content=content, headers={"Content-Type": kind})
        assert answer.status_code == 413, kind
    path = client.post("/translate_filex", files={"file": ("a.txt", content)})
    assert path.status_code == 413
    file = {"file": ("a.txt", b"Haus")}
    assert client.post("/translate_file", data=wanted | {"a": "x" * 20_000}, files=file).status_code == 400
    assert (
        client.post("/translate_file", data=wanted | {f"a{i}": "x" for i in range(60)}, files=file).status_code == 400
    )
    assert client.post("/translate_file", data=wanted | {"a": "x" * 9000}, files=file).status_code == 200


def test_files_that_wait_for_their_turn_are_not_in_memory(monkeypatch: pytest.MonkeyPatch):
    held: list[int] = [0]
    content, read = UploadedFile.content, files.read_document

    async def counted(upload: UploadedFile) -> bytes:
        held.append(held[-1] + 1)
        return await content(upload)

    async def slow(*arguments: Any) -> Any:
        await asyncio.sleep(0.05)
        passages = await read(*arguments)
        held.append(held[-1] - 1)
        return passages

    async def written(*arguments: Any) -> bytes:
        held.append(held[-1] - 1)
        return b"x"

    monkeypatch.setattr(UploadedFile, "content", counted)
    monkeypatch.setattr(files, "read_document", slow)
    monkeypatch.setattr(files, "write_document", written)
    with serve() as client, ThreadPoolExecutor(4) as pool:
        form = {"data": {"source": "de", "target": "en"}, "files": {"file": ("a.txt", b"Haus")}}
        answers = [*pool.map(lambda _: client.post("/translate_file", **form).status_code, range(4))]
    assert answers == [200] * 4
    assert len(held) == 17
    assert max(held) == 1
