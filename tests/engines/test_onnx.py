"""ONNX Runtime without models; engines with models are tested in tests/export/test_onnx.py."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heedful.engines.onnx import BEST, GRAPHS, Graphs, OnnxEngine, OnnxStepScores, Tensors
from heedful.errors import FileRefused, NeedError
from heedful.export.onnx_small import write_small_graphs
from heedful.search.array_scores import adjusted, best
from heedful.search.inputs import TokenArrays
from heedful.search.interface import Adjust

STATE = {"state.hidden": torch.zeros(1, 1, 1), "state.place": torch.zeros(1, 1, dtype=torch.int64)}
MEMORY = {"memory.keys": torch.zeros(1, 1, 1), "memory.lengths": torch.zeros(1, dtype=torch.int64)}


@pytest.fixture(scope="module", params=["new", "old"])
def graphs(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Graphs:
    """The graphs around a model's own, which are here stood in for by one of the others."""
    folder = tmp_path_factory.mktemp("graphs")
    write_small_graphs(folder, MEMORY, STATE)
    if request.param == "old":
        (folder / f"{BEST}.onnx").unlink()
    for name in ("encode", "step"):
        (folder / f"{name}.onnx").write_bytes((folder / "select.onnx").read_bytes())
    return Graphs(folder)


def scores_of(graphs: Graphs, log_probs: np.ndarray) -> OnnxStepScores:
    import onnxruntime

    return OnnxStepScores(graphs, onnxruntime.OrtValue.ortvalue_from_numpy(log_probs), None, log_probs.shape[:2])


def draw(*shape: int) -> np.ndarray:
    return np.log(np.random.default_rng(3).dirichlet(np.ones(shape[-1]), shape[:-1])).astype(np.float32)


CHANGES = {
    "nothing": Adjust(),
    "banned": Adjust(banned=np.array([0, 5, 2])),
    "many banned": Adjust(banned=np.array([0, 5, 2] * 6)),
    "places": Adjust(
        sources=np.array([0, 1, 1, 0]),
        hypotheses=np.array([1, 2, 2, 0]),
        ids=np.array([5, 3, 3, 2]),
        values=np.array([9.0, 1.0, 2.0, -np.inf]),
    ),
    "both": Adjust(
        banned=np.array([5]),
        sources=np.array([0]),
        hypotheses=np.array([1]),
        ids=np.array([5]),
        values=np.array([9.0]),
    ),
}


@pytest.mark.parametrize("k", [1, 3, 7, 100])
@pytest.mark.parametrize("change", CHANGES)
def test_top_is_what_the_reference_takes(graphs: Graphs, change: str, k: int):
    log_probs = draw(2, 3, 7)
    scores = scores_of(graphs, log_probs)
    values, ids = scores.top(k, CHANGES[change])
    wanted, wanted_ids = best(adjusted(log_probs, CHANGES[change]), k)
    assert (values.dtype, ids.dtype, values.shape) == (np.float64, np.int64, (2, 3, min(k, 7)))
    assert np.array_equal(ids, wanted_ids)
    is_possible = ~np.isneginf(wanted)
    assert np.array_equal(np.isneginf(values), ~is_possible)
    assert np.abs(values[is_possible] - wanted[is_possible]).max() <= 1e-6
    assert np.array_equal(scores.full(), log_probs.astype(np.float64))  # changed for one question only


def test_of_equal_ones_the_lower_id_comes_first(graphs: Graphs):
    _, ids = scores_of(graphs, np.full((1, 1, 6), -2.0, dtype=np.float32)).top(4)
    assert ids.tolist() == [[[0, 1, 2, 3]]]


def test_broken_numbers_are_not_hidden(graphs: Graphs):
    values, _ = scores_of(graphs, np.full((1, 1, 6), np.nan, dtype=np.float32)).top(2)
    assert np.isnan(values).all()


def test_single_tokens_are_picked(graphs: Graphs):
    log_probs = draw(3, 2, 5)
    sources, hypotheses, ids = np.array([2, 0, 2]), np.array([1, 0, 0]), np.array([4, 0, 3])
    found = scores_of(graphs, log_probs).of(sources, hypotheses, ids)
    assert np.array_equal(found, log_probs[sources, hypotheses, ids].astype(np.float64))
    empty = np.empty(0, dtype=np.int64)
    assert scores_of(graphs, log_probs).of(empty, empty, empty).shape == (0,)
    assert scores_of(graphs, log_probs).vocab_size == 5


def test_states_are_reordered_and_sources_selected(graphs: Graphs):
    hidden = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    place = np.arange(6).reshape(3, 2)
    parents = np.array([[1, 1, 0], [0, 0, 1], [1, 0, 0]])
    found = graphs.run("reorder", {"state.hidden": hidden, "state.place": place, "parents": parents})
    rows = np.arange(3)[:, None]
    assert np.array_equal(found["kept.state.hidden"].numpy(), hidden[rows, parents])
    assert np.array_equal(found["kept.state.place"].numpy(), place[rows, parents])
    given = {"memory.keys": hidden, "memory.lengths": np.array([4, 5, 6]), "state.hidden": hidden, "state.place": place}
    kept = graphs.run("select", given | {"keep": np.array([0, 2])})
    assert kept["kept.memory.lengths"].numpy().tolist() == [4, 6]
    assert np.array_equal(kept["kept.state.place"].numpy(), place[[0, 2]])
    assert list(graphs.run("select", given | {"keep": np.array([1])}, ["kept.memory.lengths"])) == [
        "kept.memory.lengths"
    ]


def test_weights_that_were_not_asked_for_are_missed_loudly(graphs: Graphs):
    with pytest.raises(NeedError, match="no attention weights"):
        _ = scores_of(graphs, draw(1, 1, 4)).weights


def test_a_foreign_state_is_a_bug(graphs: Graphs):
    with pytest.raises(TypeError, match="got a state of type"):
        OnnxEngine(graphs).step(object(), np.array([[2]]), None, None)


class Stranger:
    """Session whose graph gives other arrays."""

    def __init__(self, session: Any, change: Callable[[str, np.ndarray], np.ndarray | None]) -> None:
        self.input_names, self._session, self._change = session.input_names, session, change
        example = np.zeros((1, 1, 1))
        self.output_names = [name for name in session.output_names if change(name, example) is not None]

    def run_tensors(self, names: list[str], feeds: Mapping[str, Any]) -> list[Any]:
        import onnxruntime

        values = self._session.run_tensors(names, feeds) if names else []
        changed = [self._change(name, value.numpy()) for name, value in zip(names, values, strict=True)]
        return [onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(each)) for each in changed]


STRANGE: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("ids", lambda ids: ids - 9),
    ("ids", lambda ids: ids + 5),
    ("ids", lambda ids: ids + (1 << 62)),
    ("ids", lambda ids: ids[..., :1]),
    ("ids", lambda ids: ids.astype(np.int32)),
    ("ids", lambda ids: None),
    ("best", lambda best: best.reshape(-1)),
    ("best", lambda best: best[:0]),
    ("best", lambda best: None),
    ("picked", lambda picked: picked[:0]),
    ("picked", lambda picked: None),
)
"""Outputs of graphs, and changes of them."""


def test_results_that_are_no_tokens_are_refused(graphs: Graphs, monkeypatch: pytest.MonkeyPatch):
    """Graphs of a stranger; negative ids would be tokens from the end."""
    for name, change in STRANGE:
        sessions = {
            key: Stranger(each, lambda key, value, name=name, change=change: change(value) if key == name else value)
            for key, each in graphs._sessions.items()
        }
        with monkeypatch.context() as patch:
            patch.setattr(graphs, "_sessions", sessions)
            scores = scores_of(graphs, draw(2, 2, 5))
            for banned in (np.array([1]), np.arange(0)):
                with pytest.raises(FileRefused, match="export the model again"):
                    scores.of(*np.zeros((3, 1), np.int64)) if name == "picked" else scores.top(2, Adjust(banned))


def test_scores_of_other_rows_are_refused(graphs: Graphs):
    import onnxruntime

    tensor = onnxruntime.OrtValue.ortvalue_from_numpy
    right = tensor(draw(2, 3, 5))
    OnnxStepScores(graphs, right, right, (2, 3))
    for shape in ((2, 3), (3, 2, 5), (6, 5), (2, 3, 0), (1, 2, 3, 5), ()):
        other = tensor(np.zeros(shape, np.float32))
        for given in ((other, None), (right, other)):
            with pytest.raises(FileRefused, match="for 2 sources and 3 hypotheses; export the model again"):
                OnnxStepScores(graphs, *given, (2, 3))


def test_arrays_of_other_rows_are_refused(graphs: Graphs, monkeypatch: pytest.MonkeyPatch):
    """NumPy would take rows from the end, or fail without a word about the file."""
    right = {
        "encode": {"memory.keys": np.zeros((2, 4, 1)), "state.hidden": np.zeros((2, 1, 1))},
        "step": {"log_probs": draw(2, 3, 5), "next.state.hidden": np.zeros((2, 3, 1))},
    }
    wrong = (
        ("encode", "memory.keys", np.zeros((1, 4, 1))),
        ("encode", "state.hidden", np.zeros((1, 1, 1))),
        ("encode", "state.hidden", np.zeros((2, 0, 1))),
        ("step", "log_probs", draw(2, 1, 5)),
        ("step", "log_probs", draw(6, 5)),
        ("step", "log_probs", draw(2, 3, 5).astype(np.float64)),
        ("step", "log_probs", np.zeros((2, 3, 0), np.float32)),
        ("step", "next.state.hidden", np.zeros((3, 2, 1))),
    )
    monkeypatch.setattr(graphs, "in_arrays", True)
    monkeypatch.setattr(graphs, "state_names", ["state.hidden"])
    monkeypatch.setattr(graphs, "memory_names", ["memory.keys"])

    def steps(given: Mapping[str, Mapping[str, np.ndarray]]) -> None:
        monkeypatch.setattr(graphs, "run", lambda name, *_: Tensors(given[name]))
        engine = OnnxEngine(graphs)
        state = engine.start(TokenArrays([np.array([4, 5, 6, 3])] * 2), 3)
        engine.step(state, np.full((2, 3), 2), None, None)

    steps(right)
    for name, key, array in wrong:
        with pytest.raises(FileRefused, match=rf"{name}.onnx: {key} .* rows; export the model again"):
            steps(right | {name: right[name] | {key: array}})


@pytest.mark.parametrize("name", GRAPHS)
def test_a_damaged_or_missing_graph_is_refused(graphs: Graphs, name: str, tmp_path: Path):
    for each in GRAPHS:
        content = (graphs.folder / f"{each}.onnx").read_bytes()
        (tmp_path / f"{each}.onnx").write_bytes(content[:20] if each == name else content)
    with pytest.raises(FileRefused, match=rf"{name}.onnx: not readable: .*; export the model again"):
        Graphs(tmp_path)
    (tmp_path / f"{name}.onnx").unlink()
    with pytest.raises(FileRefused, match=f"{name}.onnx: not readable"):
        Graphs(tmp_path)
