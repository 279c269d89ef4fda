"""Model that reverses its sources: every answer proves which request it belongs to."""

import asyncio
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from starlette.testclient import TestClient

from heedful.errors import UsageError
from heedful.serving.app import guarded, make_app
from heedful.serving.catalog import Catalog
from heedful.serving.guard import Hosts
from heedful.serving.service import Service
from heedful.text.segments import Text, split


class Characters:
    """Tokenizer of one token per character; 1 is unknown."""

    def __init__(self, known: str) -> None:
        self.known = known

    def encode(self, text: str) -> list[int]:
        return [10 if character in self.known else 1 for character in text]


@dataclass(eq=False)
class Reverser:
    """Stand-in for a translator, which can be made to wait or fail."""

    languages: tuple[str, str] = ("de", "en")
    known: str = "0123456789abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ.!?"
    name: str = "reverse"
    max_tokens: int = 64
    has_attention: bool = True
    alignment_shift: int = 0
    poison: str = "\0"
    gate: threading.Event | None = None
    started: threading.Event = field(default_factory=threading.Event)
    was_cancelled: threading.Event = field(default_factory=threading.Event)
    batches: list[list[str]] = field(default_factory=list)
    corrections: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder = SimpleNamespace(
            facts={"languages": list(self.languages)}, path=Path(f"{self.name}-{'-'.join(self.languages)}.model")
        )
        self.text = SimpleNamespace(max_tokens=self.max_tokens)
        self.source_tokenizer = Characters(self.known)
        self.tables = SimpleNamespace(lexicon=None)

    def split(self, text: str, **_: Any) -> Text:
        return split(text, fits=lambda sentence: len(sentence) < self.max_tokens)

    def correct(self, source: str, correction: str) -> None:
        if not correction:
            raise UsageError("correct: the correction is blank; give one line of text")
        self.corrections[source] = correction

    def translate(
        self,
        texts: Iterable[str],
        *,
        nbest: int = 1,
        attention: bool = False,
        cancelled: Callable[[], bool] | None = None,
        **_: Any,
    ) -> list[Any]:
        batch = list(texts)
        self.batches.append(batch)
        self.started.set()
        while self.gate is not None and not self.gate.wait(0.01):
            if cancelled is not None and cancelled():
                self.was_cancelled.set()
                break
        if any(self.poison in text for text in batch):
            raise ValueError("poison")
        return [self._translation(text, nbest, attention) for text in batch]

    def _translation(self, text: str, nbest: int, attention: bool) -> Any:
        output = self.corrections.get(text, text[::-1])
        return SimpleNamespace(
            source=text,
            text=output,
            fault="loop" if "Faulty" in text or "ytluaF" in text else "",
            lost=("{a}",) if "Losing" in text else (),
            segments=(),
            links=(),
            alternatives=[SimpleNamespace(text=output + "+" * rank) for rank in range(nbest)],
            source_pieces=tuple(text),
            target_pieces=tuple(text[::-1]),
            attention=np.eye(len(text))[::-1] if attention else None,
        )


def serve(
    *models: Any, hosts: tuple[str, ...] = ("testserver",), origins: tuple[str, ...] = (), **settings: Any
) -> Any:
    """Client of a server over models."""
    service = Service(Catalog(list(models) or [Reverser()]), **settings)  # type: ignore[arg-type]
    app = guarded(make_app(service), service, Hosts("127.0.0.1", hosts), origins)
    client = TestClient(app, raise_server_exceptions=False)
    client.service = service  # type: ignore[attr-defined]
    return client


def is_in_event_loop() -> bool:
    """True in a thread that runs an event loop, which waits for what is called here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
