"""Export of a text classifier as one ONNX graph, whose parity with PyTorch is measured before it is committed."""

from pathlib import Path
from typing import Final, final

import numpy as np
import torch
from torch import Tensor, nn

from heedful.engines.exported import FOLDER, Exported, Parity, commit_engine, find_exported
from heedful.engines.folder import ModelFolder
from heedful.engines.labels import GRAPH, open_label_graphs, run_labels
from heedful.engines.onnx_session import import_runtime
from heedful.engines.passages import passage_draw
from heedful.engines.stories import story_draw
from heedful.errors import FileRefused, MissingExtra
from heedful.export.documents import document_draw, record_levels
from heedful.export.onnx import EXAMPLE_LENGTHS, free_axes, record_graph, recordable, refuse_unexportable
from heedful.export.records import flatten
from heedful.files.atomic_write import temporary_path
from heedful.models.bidaf import Bidaf
from heedful.models.hierarchical import HierarchicalClassifier
from heedful.models.inputs import Inputs, inputs_on
from heedful.models.label_model import LabelModel, label_run
from heedful.models.memory_network import MemoryNetwork
from heedful.search.inputs import InputDraw, token_draw
from heedful.version import __version__

ENGINE: Final = "onnx"
NUM_COMPARED: Final = 48
MOST_COMPARED: Final = 100
"""Maximum length, in positions, of a text in the comparison with PyTorch."""


@final
class _Labels(nn.Module):
    def __init__(self, model: LabelModel, kind: type[Inputs]) -> None:
        super().__init__()
        self.model = model
        self.kind = kind

    def forward(self, tensors: list[Tensor]) -> tuple[Tensor, ...]:
        need = ("weights",) if self.model.has_attention else ()
        scores, encoded = self.model(self.kind(*tensors), need)
        log_probs = self.model.log_probs(scores)
        return (log_probs, *(each for each in (encoded.vectors, encoded.weights) if each is not None))


def export_classifier(
    model: LabelModel,
    folder: ModelFolder,
    num_tokens: int,
    max_length: int,
) -> Exported:
    """Export a classifier as an ONNX engine into its model folder.

    Args:
        model: the folder's model, in evaluation mode.
        max_length: maximum number of tokens of a text.

    Raises:
        MissingExtra: a package that writes or runs graphs is not installed.
        UsageError: the model cannot be written as a graph.
        FileRefused: the graph's results differ from PyTorch's; its files are deleted.
    """
    import_runtime()
    refuse_unexportable(model)
    draw = _draw(model, num_tokens)
    path = folder.path / FOLDER / ENGINE
    path.parent.mkdir(exist_ok=True)
    with temporary_path(path, is_folder=True) as temporary:
        try:
            _record(model, draw, temporary, max_length)
        except ModuleNotFoundError as error:
            raise MissingExtra(str(error.name), "train", "writing ONNX") from None
        lengths = np.geomspace(1, min(max_length, MOST_COMPARED), NUM_COMPARED).astype(np.int64)
        texts = draw(lengths, np.random.default_rng(1))
        runs = label_run(model), open_label_graphs(temporary)
        wanted, exported = (run_labels(run, texts)[0] for run in runs)
        pairs = [*zip(wanted, exported, strict=True)]
        difference = max(float(np.abs(one - other).max()) for one, other in pairs)
        same = sum(bool((one.argmax(axis=-1) == other.argmax(axis=-1)).all()) for one, other in pairs)
        parity = Parity(difference, sum(one.size for one in wanted), len(texts), same)
        if not parity.is_exact:
            raise FileRefused(f"{ENGINE}: log probabilities differ by {difference:.2g} nats from PyTorch's; not kept")
        facts = {"precision": "float32", "max_length": max_length, "heedful": __version__}
        commit_engine(folder, ENGINE, temporary, facts, parity)
    return find_exported(folder, max_length)[ENGINE]


def _draw(model: LabelModel, num_tokens: int) -> InputDraw:
    """Function that draws texts of the kind that a model reads."""
    if isinstance(model, MemoryNetwork):
        return story_draw(num_tokens)
    if isinstance(model, Bidaf):
        return passage_draw(num_tokens)
    return document_draw(num_tokens) if isinstance(model, HierarchicalClassifier) else token_draw(num_tokens)


def _record(model: LabelModel, draw: InputDraw, folder: Path, max_length: int) -> None:
    """Write the graphs of a classifier."""
    copied = recordable(model, max_length)
    if isinstance(copied, HierarchicalClassifier):
        record_levels(copied, folder, max_length)
        return
    arrays = draw(np.array(EXAMPLE_LENGTHS), np.random.default_rng(0))
    inputs, others = (inputs_on(torch.device("cpu"), each) for each in (arrays, arrays.take((1, 2))))
    fields = flatten(inputs, "")
    axes = free_axes(fields, flatten(others, ""), {0: "source"}, "position")
    listed = {
        array: (fields[name], axes[name] | dict(arrays.axis_names.get(array, {})))
        for array, name in zip(arrays.named_arrays(), fields, strict=True)
    }
    outputs = ["log_probs", "vectors", *(["weights"] if model.has_attention else [])]
    record_graph(_Labels(copied, type(inputs)), {}, listed, outputs, folder / GRAPH, max_length)
