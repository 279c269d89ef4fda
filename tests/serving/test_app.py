"""Every route of the server, over a model that reverses its sources."""

import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.data.corrections import CorrectionJournal
from heedful.errors import ResourceError
from tests.serving.reversing import Reverser, serve


def test_the_server_describes_itself():
    client = serve()
    assert client.get("/health").json() == {"status": "ok"}
    assert "/translate" in client.get("/openapi.json").json()["paths"] == client.get("/spec").json()["paths"]
    assert "heedful_requests_total" in client.get("/metrics").text


def test_errors_have_one_body():
    client = serve()
    assert client.get("/nothing").json() == {"error": "Not Found"}
    assert client.get("/translate").status_code == 405
    assert set(client.get("/translate").json()) == {"error"}


def test_a_fault_tells_no_text():
    answer = serve(Reverser(poison="secret")).post("/translate", json={"q": "secret", "source": "de", "target": "en"})
    assert answer.status_code == 500
    assert answer.json() == {"error": "Internal error"}


def test_a_file_of_the_model_that_is_none_any_more_is_one_line_of_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    """A pipe in the place of the corrections: neither waited for, nor an internal error."""
    monkeypatch.setattr(logging.getLogger("uvicorn.error"), "propagate", True)
    journal = CorrectionJournal(tmp_path / "corrections.jsonl", str)
    os.mkfifo(journal.path)
    model = Reverser()
    model.correct = lambda source, correction: journal.add([(source, correction)])  # type: ignore[method-assign]
    client = serve(model, takes_corrections=True)
    for _ in range(3):
        answer = client.post("/suggest", json={"q": "a.", "s": "b.", "source": "de", "target": "en"})
        assert (answer.status_code, answer.json()["error"].count("server's messages")) == (503, 1)
    model.translate = lambda *_, **__: journal.read()  # type: ignore[assignment, return-value]
    assert client.post("/translate", json={"q": "a", "source": "de", "target": "en"}).status_code == 503
    assert [record.message for record in caplog.records] == [f"{journal.path}: a pipe, not a file; copy the file again"]


def test_a_gpu_that_failed_is_one_answer_and_one_line_of_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    class OnLostDevice(Reverser):
        def translate(self, texts: Iterable[str], **_: Any) -> list[Any]:
            raise RuntimeError("CUDA error: unspecified launch failure\nCompile with `TORCH_USE_CUDA_DSA`")

    monkeypatch.setattr(logging.getLogger("uvicorn.error"), "propagate", True)
    client = serve(OnLostDevice())
    for text in ("a", ["b", "c"]):
        answer = client.post("/translate", json={"q": text, "source": "de", "target": "en"})
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "60")
        assert answer.json() == {"error": "The GPU of the server failed; its messages say why; it has to be restarted"}
    assert [record.message for record in caplog.records] == [
        "the GPU failed: CUDA error: unspecified launch failure; start the server again, or with --device cpu"
    ]


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB\nGPU 0 has 1 MiB free"),
        ResourceError("out of memory: it does not hold one source of 9,000 positions; shorten it"),
        MemoryError("Unable to allocate 3.1 GiB"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_memory_that_is_exhausted_is_a_refusal_and_the_next_request_is_answered(
    error: Exception, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    class Exhausted(Reverser):
        def translate(self, texts: Iterable[str], **options: Any) -> list[Any]:
            rows = [*texts]
            if any("long" in text for text in rows):
                raise error
            return super().translate(rows, **options)

    monkeypatch.setattr(logging.getLogger("uvicorn.error"), "propagate", True)
    client = serve(Exhausted())
    for path, field, status in (("/translate", "q", 503), ("/v2/translate", "text", 503)):
        answer = client.post(path, json={field: ["long"], "source": "de", "target": "en", "target_lang": "EN"})
        assert (answer.status_code, answer.headers["Retry-After"]) == (status, "60")
        assert "the server has no memory for this now" in answer.text
    assert client.post("/translate", json={"q": "a", "source": "de", "target": "en"}).status_code == 200
    assert [record.message for record in caplog.records] == [str(error).partition("\n")[0]]


def test_no_answer_may_load_anything_from_elsewhere():
    for path in ("/health", "/nothing", "/metrics"):
        assert "default-src 'none'" in serve().get(path).headers["content-security-policy"]
