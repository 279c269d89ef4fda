"""Export of an engine into a model folder: write it, measure its parity with PyTorch, commit it."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

from heedful.engines.engine import Backend
from heedful.engines.exported import FOLDER, Exported, Parity, commit_engine, find_exported
from heedful.engines.folder import ModelFolder
from heedful.engines.onnx import onnx_backend
from heedful.engines.onnx_session import import_runtime
from heedful.engines.shortlist_file import write_shortlist
from heedful.errors import FileRefused, UsageError, needed_for
from heedful.export.onnx import export_graphs
from heedful.export.parity import draw_sources, measure
from heedful.files.atomic_write import temporary_path
from heedful.models.engine import torch_backend
from heedful.models.interface import Seq2Seq
from heedful.search.inputs import InputDraw
from heedful.text.shortlist import Shortlist
from heedful.version import __version__

EngineKind = Literal["onnx", "ctranslate2"]
MOST_COMPARED: Final = 100
"""Maximum length, in positions, of a source in the comparison with PyTorch."""


def export_engine(
    model: Seq2Seq,
    folder: ModelFolder,
    kind: EngineKind,
    is_int8: bool,
    draw: InputDraw,
    max_length: int,
    write_more: Callable[[Path], None] | None = None,
    shortlist: Shortlist | None = None,
) -> Exported:
    """Export an engine into a model folder.

    Args:
        model: the folder's model, in evaluation mode.
        is_int8: whether matrices are quantised to int8.
        draw: function that draws random sources of the kind that the model reads.
        max_length: maximum number of tokens of a source or an output.
        write_more: function that writes further graphs into the folder of the engine; None = no more.
        shortlist: vocabulary shortlist that searches may be restricted to; None = none.

    Raises:
        MissingExtra: a package that writes or runs the engine is not installed; raised before any work.
        UsageError: this kind of engine cannot run the model.
        FileRefused: the engine's results differ from PyTorch's; its files are deleted.
    """
    if kind == "onnx":
        import_runtime()
    name = f"{kind}-int8" if is_int8 else kind
    path = folder.path / FOLDER / name
    path.parent.mkdir(exist_ok=True)
    with temporary_path(path, is_folder=True) as temporary:
        if shortlist is not None:
            write_shortlist(shortlist, temporary)
        backend = _write(model, temporary, kind, is_int8, draw, max_length, shortlist is not None)
        if write_more is not None:
            write_more(temporary)
        parity = _compared(model, backend, draw, max_length)
        if not is_int8 and not parity.is_exact:
            raise FileRefused(
                f"{name}: log probabilities differ by {parity.max_difference:.2g} nats from PyTorch's; not kept; "
                "use --engine torch"
            )
        facts = {"precision": "int8" if is_int8 else "float32", "max_length": max_length, "heedful": __version__}
        del backend
        commit_engine(folder, name, temporary, facts, parity)
    return find_exported(folder, max_length)[name]


def _write(
    model: Seq2Seq, path: Path, kind: EngineKind, is_int8: bool, draw: InputDraw, max_length: int, has_list: bool
) -> Backend:
    open_backend: Callable[[str, Path, int], Backend]
    if kind == "onnx":
        open_backend = onnx_backend
        export_graphs(model, path, max_length, is_int8, draw, has_list)
    elif kind == "ctranslate2":
        from heedful.engines.ctranslate2 import ctranslate2_backend as open_backend

        with needed_for("export to CTranslate2"):
            from heedful.export.ctranslate2 import export_ctranslate2

        export_ctranslate2(model, path, max_length, is_int8)
    else:
        raise UsageError(f"export: no engine {kind!r}")
    return open_backend(kind, path, max_length)


def _compared(model: Seq2Seq, backend: Backend, draw: InputDraw, max_length: int) -> Parity:
    sources = draw_sources(draw, min(max_length, MOST_COMPARED))

    def exact() -> Backend:
        return torch_backend(copy.deepcopy(model).double(), max_length)

    return measure(torch_backend(model, max_length), backend, sources, max_length, exact)
