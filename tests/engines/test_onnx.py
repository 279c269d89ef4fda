"""ONNX Runtime without models; engines with models are tested in tests/export/test_onnx.py."""

from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.engines.onnx import BEST, GRAPHS, Graphs, OnnxEngine, OnnxStepScores
from heedful.errors import FileRefused, NeedError
from heedful.export.onnx_small import write_small_graphs
from heedful.search.array_scores import adjusted, best
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

    return OnnxStepScores(graphs, onnxruntime.OrtValue.ortvalue_from_numpy(log_probs), None)


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
