"""Decoding in slots, with steps that are recorded and replayed, gives what decoding step by step gives."""

import gc
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from heedful.attention.attention_inputs import tensors_of, with_tensors
from heedful.models import static_engine
from heedful.models.engine import TorchEngine
from heedful.models.inputs import TokenInputs
from heedful.models.interface import Seq2Seq
from heedful.models.recording import Recorder
from heedful.models.static_engine import GraphBufferPool, GraphBuffers, Size, StaticEngine
from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints
from heedful.search.inputs import TokenArrays
from heedful.search.interface import Engine, Hypothesis
from heedful.text.vocabulary import BOS, EOS
from tests.models.test_engine import ids_of, make_lively
from tests.models.tiny import CONFIGS, make_model, make_sources
from tests.tape import NotRecordable, Tapes, Watch, without_autocast, without_compiled_loops

MOST = 30


@pytest.fixture(autouse=True)
def recordable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out loops for a CPU, which no tape sees; and small slots, so that a short search needs several."""
    without_compiled_loops(monkeypatch)
    without_autocast(monkeypatch)
    monkeypatch.setattr(static_engine, "SOURCE_LENGTH", 2)
    monkeypatch.setattr(static_engine, "CAPACITY", 4)


def find(engine: Engine, sources: list[np.ndarray], need: bool = False, **settings: object) -> list[list[Hypothesis]]:
    config = SearchConfig(**({"max_length_ratio": 1.0, "max_length_offset": 6} | settings))  # type: ignore[arg-type]
    return search(engine, sources, config, max_length=MOST, need_alignment=need)


def agree(given: list[list[Hypothesis]], wanted: list[list[Hypothesis]]) -> None:
    assert [[one.token_ids for one in row] for row in given] == [[one.token_ids for one in row] for row in wanted]
    for row, others in zip(given, wanted, strict=True):
        for one, other in zip(row, others, strict=True):
            assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-11)
            if other.weights is not None:
                assert one.weights is not None
                assert np.abs(one.weights - other.weights).max() <= 1e-6


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("name", CONFIGS)
def test_replayed_steps_find_the_same(name: str, beam: int):
    model = make_lively(name)
    tapes = Tapes()
    slots = GraphBufferPool(model, tapes)
    need = bool(model.alignment)
    wanted = find(TorchEngine(model, need), ids_of(), need, beam=beam, nbest=beam)
    # The second time in slots that hold what the first left there.
    for _ in range(2):
        agree(find(StaticEngine(model, slots, MOST, need), ids_of(), need, beam=beam, nbest=beam), wanted)
    # Room for more tokens is another slot.
    assert tapes.num_recorded > (2 if name.startswith("transformer") else 1)


def test_slots_serve_other_batches_of_their_size():
    model = make_lively("transformer-pre")
    tapes = Tapes()
    slots = GraphBufferPool(model, tapes)
    batches = [ids_of((5, 2, 7, 1, 3, 6)), ids_of((7, 3, 4, 6, 2)), ids_of((8, 8, 8, 8, 8, 8, 8))]
    wanted = [find(TorchEngine(model), batch, beam=3) for batch in batches]
    first = find(StaticEngine(model, slots, MOST), batches[0], beam=3)
    num_recorded = tapes.num_recorded
    others = [find(StaticEngine(model, slots, MOST), batch, beam=3) for batch in batches[1:]]
    for given, want in zip([first, *others], wanted, strict=True):
        agree(given, want)
    # A longer batch may need more room for its outputs, or leave later, but the first slot serves all.
    sizes = [slot.size for slot in slots._free.values()]
    assert len(sizes) == len(set(sizes))
    assert tapes.num_recorded == 2 * len(sizes)
    assert num_recorded >= 4


@pytest.mark.parametrize("name", ["transformer-pre", "rnnsearch"])
def test_batches_side_by_side_do_not_meet(name: str):
    model = make_lively(name)
    slots = GraphBufferPool(model, Tapes())
    first, second = TokenArrays([np.array([5, 6, 7, EOS])]), TokenArrays([np.array([8, 4, 9, EOS])])
    steps = [np.array([[BOS, BOS]]), np.array([[4, 7]]), np.array([[5, 5]])]

    def alone(source: TokenArrays) -> list[np.ndarray]:
        engine = TorchEngine(model)
        state, found = engine.start(source, 2), []
        for tokens in steps:
            scores, state = engine.step(state, tokens, np.array([[1, 0]]), None)
            found.append(scores.full())
        return found

    wanted = alone(first), alone(second)
    # One slot is there already, for one of them.
    StaticEngine(model, slots, MOST).start(first, 2)
    gc.collect()
    engines = [StaticEngine(model, slots, MOST) for _ in range(2)]
    states = [engine.start(source, 2) for engine, source in zip(engines, (first, second), strict=True)]
    for place, tokens in enumerate(steps):
        for i in range(2):
            scores, states[i] = engines[i].step(states[i], tokens, np.array([[1, 0]]), None)
            assert np.abs(scores.full() - wanted[i][place]).max() <= 1e-12


def test_slots_come_back_and_are_dropped_where_they_are_too_large(monkeypatch: pytest.MonkeyPatch):
    model = make_lively("rnnsearch")
    slots = GraphBufferPool(model, Tapes())
    engine = StaticEngine(model, slots, MOST)
    state = engine.start(TokenArrays([np.array([5, EOS])]), 2)
    assert not slots._free
    del state
    gc.collect()
    (slot,) = slots._free.values()
    assert slot.num_bytes > 0
    monkeypatch.setattr(static_engine, "FREE_BYTES", 2 * slot.num_bytes)
    for length in (3, 5, 9):
        engine.start(TokenArrays([np.array([*[5] * (length - 1), EOS])]), 2)
        gc.collect()
    assert slot not in slots._free.values()
    assert sum(each.num_bytes for each in slots._free.values()) <= 2 * slot.num_bytes


@pytest.mark.parametrize(
    "settings",
    [
        {"beam": 3, "no_repeat_ngram_size": 1},
        {"beam": 4, "num_groups": 2, "diversity": 0.5},
        {"beam": 2, "min_length": 3, "forbid_unknown": True},
        {"method": "sampling", "beam": 1, "temperature": 1.0, "nbest": 2, "seed": 3},
        {"method": "sampling", "beam": 1, "top_k": 3, "nbest": 2, "seed": 3},
    ],
)
def test_every_way_to_search(settings: dict[str, object]):
    model = make_lively("transformer-pre")
    wanted = find(TorchEngine(model), ids_of(), **settings)
    agree(find(StaticEngine(model, GraphBufferPool(model, Tapes()), MOST), ids_of(), **settings), wanted)


def test_prefixes_and_phrases():
    model = make_lively("transformer-pre")
    config = SearchConfig(beam=3, max_length_ratio=1.0, max_length_offset=6)
    constraints = [Constraints(prefix=(5, 6)), *[Constraints()] * 4, Constraints(required=((7, 4),))]
    engines = TorchEngine(model), StaticEngine(model, GraphBufferPool(model, Tapes()), MOST)
    wanted, given = (search(each, ids_of(), config, max_length=MOST, constraints=constraints) for each in engines)
    agree(given, wanted)


def test_room_for_one_token_is_enough_to_record_in():
    model = make_lively("transformer-pre")
    config = SearchConfig(beam=2)
    engines = TorchEngine(model), StaticEngine(model, GraphBufferPool(model, Tapes()), max_length=1)
    wanted, given = (search(each, ids_of(), config, max_length=1) for each in engines)
    agree(given, wanted)


def test_room_ends_where_outputs_do():
    """A table of learned positions has 40 rows; room for an output of 30 is never rounded beyond it."""
    model = make_lively("transformer-learned")
    with torch.no_grad():
        model.output.weight[EOS] = 0.0
        model.output.weight *= 0.1
    sources = [np.array([*[5] * 20, EOS])]
    wanted = find(TorchEngine(model), sources, beam=2, max_length_offset=MOST)
    assert max(len(one.token_ids) for row in wanted for one in row) > 16
    agree(
        find(StaticEngine(model, GraphBufferPool(model, Tapes()), MOST), sources, beam=2, max_length_offset=MOST),
        wanted,
    )


class Waiting(torch.nn.Module):
    """A layer around another that asks the device for a number."""

    def __init__(self, inner: torch.nn.Module, fault: str) -> None:
        super().__init__()
        self.inner, self.fault = inner, fault

    @property
    def weight(self) -> Tensor:
        return self.inner.weight  # type: ignore[return-value]

    def forward(self, features: Tensor) -> Tensor:
        if self.fault == "waits" and float(features.sum()) > 1e30:
            return features
        if self.fault == "copies":
            features = features * torch.tensor(1.0, dtype=features.dtype)
        if self.fault == "masks":
            features = features[features[..., 0] < 1e30].reshape(features.shape)
        return self.inner(features)


@pytest.mark.parametrize(("fault", "message"), [("copies", "copies"), ("masks", "waits")])
def test_the_tape_refuses_what_a_graph_refuses(fault: str, message: str):
    model: Seq2Seq = make_model("rnnsearch")
    model.output = Waiting(model.output, fault)  # type: ignore[assignment]
    engine = StaticEngine(model, GraphBufferPool(model, Tapes()), MOST)
    with pytest.raises(NotRecordable, match=message):
        engine.start(TokenArrays([np.array([5, EOS])]), 1)


class Watched(Recorder):
    """Does the work once, on a device that has no numbers."""

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        with Watch("meta"):
            work()
        return work


def slot_without_numbers(model: Seq2Seq, need: bool) -> GraphBuffers:
    """A slot on a device that has no numbers, whose steps are watched."""
    source, lengths = make_sources()
    with torch.inference_mode():
        memory = model.encode(TokenInputs(source, lengths))
        state = model.reserve(model.start(memory, 2), 8)
        there = [with_tensors(part, [each.to("meta") for each in tensors_of(part)]) for part in (memory, state)]
        size = Size(len(source), 2, source.shape[1], 8, ("weights",) if need else ())
        return GraphBuffers(model.to("meta"), size, *there, Watched())  # type: ignore[arg-type]


@pytest.mark.parametrize("need", [False, True])
@pytest.mark.parametrize("name", CONFIGS)
def test_a_step_touches_nothing_on_the_host(name: str, need: bool):
    model = make_model(name)
    if need and not model.alignment:
        pytest.skip("has no attention")
    assert slot_without_numbers(model, need).num_bytes > 0


@pytest.mark.parametrize("fault", ["waits", "copies", "masks"])
def test_the_watch_refuses_what_a_graph_refuses(fault: str):
    model: Seq2Seq = make_model("rnnsearch")
    model.output = Waiting(model.output, fault)  # type: ignore[assignment]
    with pytest.raises((NotRecordable, RuntimeError), match=r"waits|copies|meta tensors"):
        slot_without_numbers(model, need=False)


def test_a_strange_state_is_refused():
    model = make_model("rnnsearch")
    with pytest.raises(TypeError, match="got a state of type object"):
        StaticEngine(model, GraphBufferPool(model, Tapes()), MOST).step(object(), np.array([[BOS]]), None, None)
