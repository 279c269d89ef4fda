import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from heedful.engines import onnx
from heedful.engines.onnx import Graphs, OnnxEngine, onnx_backend
from heedful.errors import UsageError
from heedful.export.onnx import export_graphs, gives_weights, quantize
from heedful.models.engine import TorchEngine
from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints
from heedful.search.forced import score_outputs
from heedful.search.inputs import as_inputs
from tests.export.conftest import MOST, Make
from tests.export.engines import SEARCHES, SIZES, TOLERANCE, assert_same, draw_sources, largest_difference
from tests.models.tiny import CONFIGS, NUM_SOURCE_TOKENS, changed, make_model
from tests.thorough import is_thorough, sampled, thorough

# One for each way a graph is made: layers of attention, GRU and LSTM operators.
QUICK = ("transformer-pre", "rnnsearch-after", "luong")
# No graph has a chain or a tree.
EVERY = tuple(name for name in CONFIGS if name not in ("transformer-local", "luong-trees"))
NAMES = [*QUICK, *map(is_thorough, sorted({*EVERY} - {*QUICK}))]
ONE_LAYER = {"num_encoder_layers": 1, "num_decoder_layers": 1}


@pytest.mark.parametrize("name", NAMES)
def test_steps_are_the_models_at_sizes_never_recorded(exported: Make, name: str):
    model, graphs = exported(name)
    has_weights = gives_weights(model)
    one, other = TorchEngine(model, has_weights), OnnxEngine(graphs, has_weights)
    assert graphs.has_weights == has_weights
    for sizes in SIZES:
        assert largest_difference(one, other, sizes, has_weights) <= TOLERANCE, sizes


@pytest.mark.compiled
@pytest.mark.parametrize("name", [is_thorough(name) for name in ("transformer-additive", "transformer-relative")])
def test_other_scores_and_normalizers_are_the_models(name: str, tmp_path: Path):
    model = make_model(changed(CONFIGS[name], **ONE_LAYER)).float()
    export_graphs(model, tmp_path, MOST)
    graphs = Graphs(tmp_path, threads=1)
    one, other = TorchEngine(model, with_weights=True), OnnxEngine(graphs, with_weights=True)
    assert largest_difference(one, other, SIZES[1], with_weights=True) <= TOLERANCE


@thorough
@pytest.mark.parametrize(
    ("name", "changes"),
    [("rnnsearch-coverage", {}), is_thorough(("luong-coverage", {})), is_thorough(("transformer-pre", ONE_LAYER))],
)
def test_copies_and_coverage_are_the_models(name: str, changes: dict[str, int], tmp_path: Path):
    model = make_model(changed(CONFIGS[name], has_copy=True, **changes), is_shared=True).float()
    export_graphs(model, tmp_path, MOST)
    graphs = Graphs(tmp_path, threads=1)
    one, other = TorchEngine(model, with_weights=True), OnnxEngine(graphs, with_weights=True)
    for sizes in SIZES:
        assert largest_difference(one, other, sizes, True, NUM_SOURCE_TOKENS) <= TOLERANCE, sizes


@pytest.mark.parametrize(
    ("attention", "reason"),
    [
        ({"normalizer": "linear_chain"}, "onnx: a chain needs a loop over keys"),
        ({"normalizer": "entmax", "alpha": 1.3}, "onnx: entmax needs bisection"),
    ],
)
def test_loops_that_no_graph_has_are_refused_in_one_line(attention: dict[str, object], reason: str, tmp_path: Path):
    with pytest.raises(UsageError, match=reason) as caught:
        export_graphs(make_model(changed(CONFIGS["rnnsearch"], attention=attention)), tmp_path, MOST)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@sampled(2)
@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("name", NAMES)
def test_searches_find_the_same(exported: Make, name: str, kind: str):
    model, graphs = exported(name)
    config = SEARCHES[kind]
    if config.beta and not gives_weights(model):
        pytest.skip("nothing is attended")
    sources = draw_sources(9, 10, seed=3)
    needs = gives_weights(model)
    engines = TorchEngine(model, needs), OnnxEngine(graphs, needs)
    one, other = (search(engine, sources, config, max_length=MOST, need_alignment=needs) for engine in engines)
    assert_same(one, other)


def test_searches_keep_what_is_demanded(exported: Make):
    model, graphs = exported("luong")
    sources = draw_sources(3, 8, seed=5)
    constraints = [Constraints(prefix=(4, 5)), Constraints(required=((6, 7),)), Constraints(banned=((4,), (5, 6)))]
    config = SearchConfig(beam=4)
    engines = TorchEngine(model), OnnxEngine(graphs)
    one, other = (search(engine, sources, config, max_length=MOST, constraints=constraints) for engine in engines)
    assert_same(one, other)


def test_given_outputs_get_the_same_probabilities(exported: Make):
    model, graphs = exported("rnnsearch-after")
    outputs = [(4, 5, 6, 3), (), (7,), (8, 3)]
    found = [score_outputs(engine, draw_sources(4, 6), outputs) for engine in (TorchEngine(model), OnnxEngine(graphs))]
    for one, other in zip(*found, strict=True):
        assert np.abs(one.log_probs - other.log_probs).max(initial=0.0) <= TOLERANCE


@pytest.mark.parametrize("name", QUICK)
def test_no_neighbour_changes_an_output(exported: Make, name: str):
    engine = OnnxEngine(exported(name)[1])
    sources, config = draw_sources(7, 10, seed=2), SearchConfig(beam=3, nbest=3)
    together = search(engine, sources, config, max_length=MOST)
    for source, found in zip(sources, together, strict=True):
        assert_same(search(engine, [source], config, max_length=MOST), [found])


def test_sources_and_outputs_may_be_as_long_as_the_model_takes(exported: Make):
    for name in QUICK:
        model, graphs = exported(name)
        source = draw_sources(1, MOST)
        outputs = [[4, 5, 6, 7, 8] * (MOST // 5)]
        engines = TorchEngine(model), OnnxEngine(graphs)
        one, other = (score_outputs(engine, source, outputs)[0].log_probs for engine in engines)
        assert len(other) == MOST
        assert np.abs(one - other).max() <= TOLERANCE


@pytest.mark.parametrize("name", QUICK)
def test_a_model_is_left_as_it_was(exported: Make, name: str):
    model, fresh = exported(name)[0], make_model(name).float()
    assert [type(module) for module in model.modules()] == [type(module) for module in fresh.modules()]
    assert not any(module.training for module in model.modules())
    after = model.state_dict()
    assert all(torch.equal(after[key], tensor) for key, tensor in fresh.state_dict().items())


@pytest.mark.parametrize("name", NAMES)
def test_eight_bits_are_nearly_the_same(exported: Make, name: str, tmp_path: Path):
    model, graphs = exported(name)
    for path in graphs.folder.iterdir():
        shutil.copy(path, tmp_path)
    quantize(tmp_path)
    difference = largest_difference(TorchEngine(model), OnnxEngine(Graphs(tmp_path)), SIZES[1], False)
    assert 1e-5 < difference < 1.0


class _Branching(nn.Module):
    """A layer whose way depends on numbers, which no graph can say."""

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        return vectors * 2 if float(vectors.sum()) > 0 else vectors


def test_what_no_graph_can_say_is_refused_in_one_line(tmp_path: Path):
    model = make_model("rnnsearch")
    model.output = nn.Sequential(model.get_submodule("output"), _Branching())  # type: ignore[assignment]
    with pytest.raises(UsageError, match=r"step.onnx: this model cannot be written as a graph: .") as caught:
        export_graphs(model, tmp_path, MOST)
    assert "\n" not in str(caught.value)


def test_an_engine_of_a_model_without_attention_gives_none(tmp_path: Path):
    export_graphs(make_model("sutskever").float(), tmp_path, MOST)
    backend = onnx_backend("onnx", tmp_path, MOST)
    assert backend.supports_scoring(need_alignment=False) is None
    assert "no attention" in str(backend.supports_scoring(need_alignment=True))


@pytest.mark.parametrize("name", NAMES)
def test_arrays_and_tensors_give_the_same_bits(exported: Make, name: str, monkeypatch: pytest.MonkeyPatch):
    """Selection, reordering and sorting give the same by NumPy, for a small vocabulary, and by graphs."""
    model, graphs = exported(name)
    monkeypatch.setattr(onnx, "MOST_IN_ARRAYS", 0)
    others = Graphs(graphs.folder, threads=1)
    assert (graphs.in_arrays, others.in_arrays) == (True, False)
    has_weights = gives_weights(model)
    for search_config in (SearchConfig(beam=1), SearchConfig(beam=4, nbest=3), SearchConfig(no_repeat_ngram_size=2)):
        one, other = (
            search(
                OnnxEngine(each, has_weights),
                draw_sources(5, 7),
                search_config,
                max_length=MOST,
                need_alignment=has_weights,
            )
            for each in (graphs, others)
        )
        assert one == other
        for mine, its in zip(one, other, strict=True):
            assert [one.weights is None for one in mine] == [not has_weights] * len(mine)
            pairs = [(a.weights, b.weights) for a, b in zip(mine, its, strict=True)]
            assert all(np.array_equal(a, b) for a, b in pairs if a is not None and b is not None)


@pytest.mark.parametrize("name", NAMES)
def test_the_place_of_an_array_in_memory_changes_no_bit(exported: Make, name: str):
    """A loop over the middle of an array may begin where its address is even, and so sum in another order."""
    _, graphs = exported(name)
    engine = OnnxEngine(graphs)
    inputs = as_inputs(draw_sources(3, 7))
    feeds = graphs.run("encode", inputs.named_arrays()) | {"memory.lengths": inputs.num_positions}
    feeds |= {"tokens": np.full((3, 1), 4, dtype=np.int64)}
    names = graphs._inputs("step")
    found = []
    for shift in range(0, 64, 4):
        arrays = {key: moved(feeds[key], shift) for key in names}
        found.append(graphs.run("step", arrays, engine._outputs))
    for key, value in found[0].items():
        assert all(np.array_equal(value, other[key]) for other in found), key


def moved(array: np.ndarray, shift: int) -> np.ndarray:
    """Copy that begins a number of bytes after a multiple of 64."""
    shift -= shift % array.itemsize
    room = np.zeros(array.nbytes + 128, dtype=np.uint8)
    start = -room.ctypes.data % 64 + shift
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
