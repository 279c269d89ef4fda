"""Export of a model as one HTML file: the page with the model inside, which any browser opens, without a network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, final

from heedful.engines.folder import ModelFolder
from heedful.errors import ResourceError, UsageError
from heedful.export.web_runtime import LICENSE, VERSION, WebRuntime
from heedful.files.atomic_write import sync, temporary_path
from heedful.pages.bundle import model_page
from heedful.version import __version__

MOST_EXAMPLES: Final = 10
RUNTIME_NAME: Final = f"ONNX Runtime {VERSION} © Microsoft, MIT"


@final
@dataclass(frozen=True)
class PageFacts:
    """Texts that the page says of its model besides what the model's folder says."""

    examples: Sequence[str | Mapping[str, str]] = ()
    """Texts that the empty page offers, or facts, "source", with a "question"; none of the training data unless the
    caller puts them here."""
    scores: Sequence[Mapping[str, str]] = field(default_factory=tuple)
    """Scores as readers see them, each with "key", "name", such as "exact match", and "value", such as "99.1 %"."""
    license: str = ""
    """Name of the licence; empty = the page does not say."""
    weights: str = ""
    """Kind of the weights, such as "int8"; empty = the page does not say."""


def export_html(folder: ModelFolder, archive: bytes, runtime: WebRuntime, facts: PageFacts) -> str:
    """Make the page of a model.

    Args:
        archive: archive of the model, from `write_archive`.

    Returns:
        The HTML text.
    """
    name = folder.path.resolve().name
    shown: dict[str, Any] = {
        "name": name,
        "task": folder.task,
        "kind": str(folder.facts.get("kind", "")),
        "languages": list(folder.facts.get("languages", ("", ""))),
        "examples": list(facts.examples[:MOST_EXAMPLES]),
        "scores": list(facts.scores),
        "license": facts.license,
        "weights": facts.weights,
        "heedful": __version__,
        "runtime": RUNTIME_NAME,
    }
    return model_page(f"{name} · heedful", shown, archive, (runtime.script, runtime.wasm, LICENSE))


def write_page(content: bytes, out: Path) -> None:
    """Write a file whole or not at all.

    Raises:
        UsageError: `out` is a folder.
        ResourceError: the file cannot be written.
    """
    if out.is_dir():
        raise UsageError(f"{out}: is a folder; give the name of a file, such as model.html")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with temporary_path(out) as temporary:
            temporary.write_bytes(content)
            sync(temporary)
            temporary.replace(out)
        sync(out.parent)
    except OSError as error:
        raise ResourceError(f"{out}: not written: {error.strerror or error}") from None
