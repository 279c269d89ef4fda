"""ONNX Runtime engine: a model's exported graphs behind the engine interface of search; no PyTorch.

The graphs are described in `heedful.export.onnx`, which writes them. Tensors stay in ONNX Runtime; only the best tokens
and their log probabilities, a few numbers per hypothesis, are copied to NumPy. Where the vocabulary is small, as of
letters or phones, all tensors are arrays of NumPy: to copy them takes less time than to run the small graphs around a
step, which select, reorder and sort.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.engines.engine import Stepwise
from heedful.engines.onnx_session import Session, import_runtime, num_threads, open_session
from heedful.engines.shortlist_file import read_shortlist
from heedful.errors import FileRefused, NeedError
from heedful.search.array_scores import ArrayScores
from heedful.search.inputs import InputArrays, TokenArrays
from heedful.search.interface import Adjust, Engine, FloatArray, IntArray, StepScores, WeightsArray
from heedful.search.listed_scores import ListedScores
from heedful.text.shortlist import Shortlist

GRAPHS: Final = ("encode", "step", "select", "reorder", "top", "pick")
"""Names of a model's graph files, without the suffix .onnx."""
_LARGE: Final = frozenset({"encode", "step", "output", "listed"})
BEST: Final = "best"
"""Optional graph for top-k without adjustments; engines exported before it existed use "top", which is slower."""
OUTPUT: Final = ("output", "list", "listed")
"""Optional graphs of the output layer, for a vocabulary shortlist."""
FEATURES: Final = "features"
"""Output of the graph "step" where the output layer has graphs of its own, in place of log probabilities."""
_FEW: Final = 16
"""Maximum number of banned tokens that are removed from the result of a larger top-k."""
MOST_IN_ARRAYS: Final = 1024
"""Largest vocabulary whose log probabilities are sorted by NumPy, not in a graph."""


@final
class Tensors(dict[str, Any]):
    """Tensors of ONNX Runtime by name; the graphs of a stranger may lack some."""

    def __missing__(self, name: str) -> Any:
        raise FileRefused(f"the graphs of this engine have no {name}; export the model again")

    def __or__(self, others: Any) -> "Tensors":
        return Tensors(super().__or__(others))


@final
class Graphs:
    """Loaded graphs of one model."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        """Load all graphs of a folder.

        Args:
            folder: folder with a file for each name in `GRAPHS`, and one for `BEST` unless it is from an old export.
            threads: number of threads; 0 = OMP_NUM_THREADS, or ONNX Runtime's own choice if that is not set.

        Raises:
            FileRefused: a file is missing or damaged.
        """
        onnxruntime = import_runtime()
        self.folder: Final = folder
        self._tensor: Final = onnxruntime.OrtValue.ortvalue_from_numpy
        self._sessions: Final[dict[str, Session]] = {}
        self.has_best: Final = (folder / f"{BEST}.onnx").is_file()
        self.has_list: Final = all((folder / f"{name}.onnx").is_file() for name in OUTPUT)
        for name in (*GRAPHS, *((BEST,) if self.has_best else ()), *(OUTPUT if self.has_list else ())):
            self._sessions[name] = open_session(folder / f"{name}.onnx", num_threads(threads) if name in _LARGE else 1)
        self.state_names: Final = [name for name in self._inputs("step") if name.startswith("state.")]
        self.memory_names: Final = [name for name in self._inputs("select") if name.startswith("memory.")]
        self.has_weights: Final = "weights" in self._outputs("step")
        self.vocab_size: Final = self._sessions["output"].output_shape(0)[-1] if self.has_list else 0
        """Size of the vocabulary, if there are graphs of the output layer."""
        self.in_arrays: Final = not self.has_list and 0 < self._num_tokens() <= MOST_IN_ARRAYS
        """True where outputs of graphs are arrays of NumPy, because the vocabulary is small."""

    def _num_tokens(self) -> int:
        """Size of the vocabulary as the graph "step" names it; 0 = it does not."""
        names = self._outputs("step")
        shape = self._sessions["step"].output_shape(names.index("log_probs")) if "log_probs" in names else ()
        return shape[-1] if len(shape) == 3 and isinstance(shape[-1], int) else 0

    def run(self, name: str, feeds: Mapping[str, Any], outputs: Iterable[str] = ()) -> Tensors:
        """Run a graph.

        Args:
            feeds: input arrays, or tensors from another run, by name; inputs that the graph does not have are ignored.
            outputs: names of the outputs to compute; none = all.

        Returns:
            Tensors of ONNX Runtime by name, or arrays of NumPy where `in_arrays`.
        """
        names = [*outputs] or self._outputs(name)
        tensors, session = Tensors(feeds), self._sessions[name]
        if self.in_arrays:
            values = session.run(names, {key: tensors[key] for key in session.input_names})
        else:
            values = session.run_tensors(names, {key: self._held(tensors[key]) for key in session.input_names})
        return Tensors(zip(names, values, strict=True))

    def refuse(self, name: str, problem: str) -> FileRefused:
        """Make the error for a graph whose results cannot be those of a model."""
        return FileRefused(f"{self.folder / name}.onnx: {problem}; export the model again")

    def _held(self, value: Any) -> Any:
        return self._tensor(np.ascontiguousarray(value)) if isinstance(value, np.ndarray) else value

    def _inputs(self, name: str) -> list[str]:
        return self._sessions[name].input_names

    def _outputs(self, name: str) -> list[str]:
        return self._sessions[name].output_names


@final
class OnnxStepScores(StepScores):
    """Scores of one step; log-softmax and top-k run in graphs."""

    def __init__(self, graphs: Graphs, log_probs: Any, weights: Any, rows: tuple[int, ...]) -> None:
        """Check the shapes.

        Args:
            log_probs: [source, hypothesis, token] log probabilities.
            weights: [source, hypothesis, position] attention weights, or None.
            rows: numbers of sources and hypotheses.

        Raises:
            FileRefused: the graph gives other shapes.
        """
        for name, values in (("log_probs", log_probs), ("weights", weights)):
            if values is not None and (len(shape := values.shape()) != 3 or tuple(shape[:2]) != rows or not shape[2]):
                raise graphs.refuse("step", f"{name} {list(shape)} for {rows[0]} sources and {rows[1]} hypotheses")
        self._graphs = graphs
        self._log_probs = log_probs
        self._weights = weights
        self._rows = rows

    def top(self, k: int, adjust: Adjust | None = None) -> tuple[FloatArray, IntArray]:
        change = Adjust() if adjust is None else adjust
        if self._graphs.has_best and not change.ids.size and change.banned.size <= _FEW:
            return self._unchanged(k, change.banned)
        feeds = {
            "log_probs": self._log_probs,
            "banned": change.banned,
            "places": np.stack((change.sources, change.hypotheses, change.ids), axis=-1),
            "values": change.values.astype(np.float32),
            "k": np.array([min(k, self.vocab_size)], dtype=np.int64),
        }
        return self._best("top", feeds, k)

    def _unchanged(self, k: int, banned: IntArray) -> tuple[FloatArray, IntArray]:
        """The k best tokens without banned ones, from a top-k enlarged by the number of banned tokens."""
        most = min(k + banned.size, self.vocab_size)
        feeds = {"log_probs": self._log_probs, "k": np.array([most], dtype=np.int64)}
        best, ids = self._best("best", feeds, most)
        k = min(k, self.vocab_size)
        is_banned = (ids[..., None] == banned).any(axis=-1)
        if not is_banned[..., :k].any():
            return best[..., :k], ids[..., :k]
        best[is_banned] = -np.inf
        ranks = np.broadcast_to(np.arange(most), ids.shape)
        order = np.lexsort((np.where(is_banned, ids, ranks), is_banned), axis=-1)[..., :k]
        return np.take_along_axis(best, order, axis=-1), np.take_along_axis(ids, order, axis=-1)

    def _best(self, name: str, feeds: Mapping[str, Any], k: int) -> tuple[FloatArray, IntArray]:
        """Values and ids that a graph finds.

        Raises:
            FileRefused: they are not as many, or no tokens.
        """
        values = self._graphs.run(name, feeds)
        best, ids, size = values["best"].numpy(), values["ids"].numpy(), self.vocab_size
        shape = (*self._rows, min(k, size))
        if best.shape != shape or ids.shape != shape or ids.dtype != np.int64:
            raise self._graphs.refuse(name, f"{list(best.shape)} values and {list(ids.shape)} ids for {list(shape)}")
        if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < size:
            raise self._graphs.refuse(name, f"ids from {ids.min()} to {ids.max()} of {size} tokens")
        return best.astype(np.float64), ids

    def full(self) -> FloatArray:
        return self._log_probs.numpy().astype(np.float64)

    def of(self, sources: IntArray, hypotheses: IntArray, ids: IntArray) -> FloatArray:
        indices = np.stack((sources, hypotheses, ids), axis=-1)
        values = self._graphs.run("pick", {"log_probs": self._log_probs, "places": indices})
        picked = values["picked"].numpy()
        if picked.shape != ids.shape:
            raise self._graphs.refuse("pick", f"{list(picked.shape)} values for {list(ids.shape)}")
        return picked.astype(np.float64)

    @property
    def vocab_size(self) -> int:
        return int(self._log_probs.shape()[-1])

    @property
    def weights(self) -> WeightsArray:
        """Attention weights [source, hypothesis, position] over source positions.

        Raises:
            NeedError: the step computed no attention weights.
        """
        if self._weights is None:
            raise NeedError("this model gives no attention weights; search without alignment and with beta = 0")
        return self._weights.numpy()


@dataclass(frozen=True)
class _Running:
    """Engine state: the encoder's outputs and the decoder state of each hypothesis."""

    memory: Tensors
    state: Tensors
    listed: "_Listed | None" = None


@dataclass(frozen=True)
class _Listed:
    """Tokens of a vocabulary shortlist, and their part of the output layer."""

    ids: IntArray
    layer: Tensors


@final
class OnnxEngine(Engine):
    """Engine that runs the graphs of a model step by step."""

    def __init__(self, graphs: Graphs, with_weights: bool = False, shortlist: Shortlist | None = None) -> None:
        """Wrap loaded graphs.

        Args:
            graphs: graphs of one model; engines may share them.
            with_weights: whether steps return attention weights.
            shortlist: vocabulary shortlist that scores are restricted to; None = the whole vocabulary.
        """
        self._graphs = graphs
        self._shortlist = shortlist
        outputs = [FEATURES if graphs.has_list else "log_probs", *(f"next.{name}" for name in graphs.state_names)]
        self._outputs = [*outputs, "weights"] if with_weights and graphs.has_weights else outputs

    def start(self, inputs: InputArrays, num_hypotheses: int) -> object:
        values = self._graphs.run("encode", inputs.named_arrays())
        memory = Tensors({"memory.lengths": inputs.num_positions})
        memory |= {name: values[name] for name in self._graphs.memory_names if name in values}
        # All hypotheses start from the state of the only one.
        parents = np.zeros((len(inputs), num_hypotheses), dtype=np.int64)
        state = Tensors({name: values[name] for name in self._graphs.state_names})
        if self._graphs.in_arrays:
            _require_rows(self._graphs, "encode", memory, (len(inputs),))
            _require_rows(self._graphs, "encode", state, (len(inputs), 1))
        return _Running(memory, self._reordered(state, parents), self._listed(inputs))

    def step(
        self,
        state: object,
        tokens: NDArray[np.int64],
        parents: NDArray[np.int64] | None,
        keep: NDArray[np.int64] | None,
    ) -> tuple[StepScores, object]:
        if not isinstance(state, _Running):
            raise TypeError(f"engine: got a state of type {type(state).__name__}")
        memory, inner = state.memory, state.state
        if keep is not None:
            memory, inner = self._selected(memory, inner, keep)
        if parents is not None:
            inner = self._reordered(inner, parents)
        values = self._graphs.run("step", memory | inner | {"tokens": tokens}, self._outputs)
        after = Tensors({name: values[f"next.{name}"] for name in self._graphs.state_names})
        return self._scores(values, state.listed, tokens.shape), _Running(memory, after, state.listed)

    def _scores(self, values: Tensors, listed: _Listed | None, rows: tuple[int, ...]) -> StepScores:
        graphs, weights = self._graphs, values.get("weights")
        if graphs.in_arrays:
            _require_rows(graphs, "step", values, rows)
            return ArrayScores(values["log_probs"], weights)
        if not graphs.has_list:
            return OnnxStepScores(graphs, values["log_probs"], weights, rows)
        features = Tensors({FEATURES: values[FEATURES]})
        if listed is None:
            return OnnxStepScores(graphs, graphs.run("output", features)["log_probs"], weights, rows)
        scores = OnnxStepScores(graphs, graphs.run("listed", features | listed.layer)["log_probs"], weights, rows)
        return ListedScores(scores, listed.ids, graphs.vocab_size)

    def _listed(self, inputs: InputArrays) -> _Listed | None:
        """Candidates of all sources of a batch; None = the whole vocabulary."""
        if self._shortlist is None or not isinstance(inputs, TokenArrays):
            return None
        ids = self._shortlist.of_batch(inputs.sequences)
        return _Listed(ids, self._graphs.run("list", {"ids": ids}))

    def _selected(self, memory: Tensors, state: Tensors, keep: NDArray[np.int64]) -> tuple[Tensors, Tensors]:
        if self._graphs.in_arrays:
            rows = {name: value.take(keep, axis=0) for name, value in (memory | state).items()}
        else:
            values = self._graphs.run("select", memory | state | {"keep": keep})
            rows = {name: values[f"kept.{name}"] for name in (*memory, *state)}
        return Tensors({name: rows[name] for name in memory}), Tensors({name: rows[name] for name in state})

    def _reordered(self, state: Tensors, parents: NDArray[np.int64]) -> Tensors:
        if self._graphs.in_arrays:
            places = np.arange(len(parents))[:, None], parents
            return Tensors({name: state[name][places] for name in state})
        reordered = self._graphs.run("reorder", state | {"parents": parents})
        return Tensors({name: reordered[f"kept.{name}"] for name in state})


def _require_rows(graphs: Graphs, name: str, values: Tensors, rows: tuple[int, ...]) -> None:
    """Refuse arrays that are not those of a model.

    Args:
        name: graph that gave them.
        rows: sizes of the first axes: the number of sources, and of hypotheses.

    Raises:
        FileRefused: an array has other sizes, or scores or weights are no numbers for each token or position.
    """
    for key, value in values.items():
        is_wrong = value.shape[: len(rows)] != rows
        if key in ("log_probs", "weights"):
            is_wrong |= value.ndim != 3 or not value.shape[2] or value.dtype != np.float32
        if is_wrong:
            raise graphs.refuse(name, f"{key} {list(value.shape)} of {value.dtype} for {list(rows)} rows")


def onnx_backend(name: str, folder: Path, max_length: int) -> Stepwise:
    """Create an ONNX Runtime backend.

    Args:
        max_length: maximum number of tokens of an output, EOS included.
    """
    graphs = Graphs(folder)

    def make_listed(with_weights: bool) -> Engine:
        return OnnxEngine(graphs, with_weights, shortlist)

    shortlist = read_shortlist(folder) if graphs.has_list else None
    engines = make_listed if shortlist else None
    return Stepwise(
        name,
        lambda with_weights: OnnxEngine(graphs, with_weights),
        max_length,
        has_attention=graphs.has_weights,
        make_listed=engines,
    )
