"""Recorded steps of decoders find what launched ones find, and wait for nothing on a device."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from heedful.attention import dispatch
from heedful.attention.tensor_tree import map_leaves
from heedful.errors import UsageError
from heedful.layers.positions import Positions
from heedful.models import engine, recorded_decoder
from heedful.models.engine import TorchEngine, torch_backend
from heedful.models.inputs import TokenInputs
from heedful.models.interface import Seq2Seq
from heedful.models.recorded_decoder import ROOM, DecoderShape, RecordedDecoder
from heedful.models.recording import Recorder
from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.search.inputs import TokenArrays
from heedful.search.interface import Hypothesis
from heedful.text.vocabulary import BOS, EOS
from tests.attention.kernels.watch import Watch, without_autocast
from tests.models.test_engine import ids_of, make_lively
from tests.models.tiny import CONFIGS, changed, make_model, make_sources
from tests.requests import void
from tests.thorough import thinned
from tests.training.tape import Tapes, without_cpu_loops

LENGTHS = (5, 2, 7, 1, 3, 6, 11)
LAUNCHED = {"transformer-relative", "transformer-local"}
"""Windows and biases of self-attention count from the last key."""
FEW = ["transformer-pre", "rnnsearch", "luong"]


@pytest.fixture(autouse=True)
def _recordable(monkeypatch: pytest.MonkeyPatch):
    without_cpu_loops(monkeypatch)


def find(
    made: TorchEngine, lengths: tuple[int, ...] = LENGTHS, with_weights: bool = False, **settings: Any
) -> list[list[Hypothesis]]:
    given: dict[str, Any] = {"max_length_ratio": 1.0, "max_length_offset": 6, **settings}
    return search(made, ids_of(lengths), SearchConfig(**given), max_length=39, need_alignment=with_weights)


def agree(
    model: Seq2Seq,
    decoder: RecordedDecoder,
    lengths: tuple[int, ...] = LENGTHS,
    with_weights: bool = False,
    **settings: Any,
) -> None:
    launched = find(TorchEngine(model, with_weights), lengths, with_weights, **settings)
    replayed = find(TorchEngine(model, with_weights, recorded=decoder), lengths, with_weights, **settings)
    for one, other in zip(launched, replayed, strict=True):
        assert [each.token_ids for each in one] == [each.token_ids for each in other]
        for each, again in zip(one, other, strict=True):
            assert again.token_log_probs == pytest.approx(each.token_log_probs, abs=1e-11)
            if with_weights:
                assert each.weights is not None
                assert again.weights is not None
                assert np.abs(each.weights - again.weights).max() <= 1e-6


@pytest.mark.parametrize("name", thinned(CONFIGS, 4))
def test_replayed_searches_find_the_same(name: str):
    model, tapes = make_lively(name), Tapes()
    decoder = RecordedDecoder(model, (), tapes)
    agree(model, decoder, beam=3, nbest=3)
    agree(model, decoder, beam=1)
    assert len(tapes.lengths) == (0 if name in LAUNCHED else 2)


@pytest.mark.parametrize("name", FEW)
def test_weights_and_room_for_long_outputs(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(recorded_decoder, "ROOM", 2)
    model, tapes = make_model(name, seed=3), Tapes()
    with torch.no_grad():
        model.output.weight[EOS] -= 3.0  # outputs go on to their limit
    agree(model, RecordedDecoder(model, ("weights",), tapes), beam=2, min_length=10, with_weights=True)
    assert len(tapes.lengths) == (4 if name == "transformer-pre" else 1)  # room for 2, 4, 8 and 16 steps


def test_shapes_are_few_and_memory_is_given_back(monkeypatch: pytest.MonkeyPatch):
    model, tapes = make_lively("rnnsearch"), Tapes()
    decoder = RecordedDecoder(model, (), tapes)
    for lengths in ((3, 2, 5), (8, 1, 2), (9, 16, 4, 2), (15, 7, 2)):
        agree(model, decoder, lengths, beam=2)
    assert len(tapes.lengths) == 1
    agree(model, decoder, (17, 2, 3), beam=2)
    assert len(tapes.lengths) == 2
    (shape, *_), _ = decoder._shapes.values()  # pyright: ignore[reportPrivateUsage]
    held = weakref.ref(shape)
    del shape
    monkeypatch.setattr(recorded_decoder, "MOST_SHAPES", 2)
    agree(model, decoder, (3, 2), beam=2)
    gc.collect()
    assert held() is None


def test_weights_that_change_are_those_that_decode():
    """In their places, as by an optimizer, or in others, as by an average that takes their places."""
    model, tapes = make_lively("luong"), Tapes()
    decoder = RecordedDecoder(model, (), tapes)
    agree(model, decoder)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(-1.5)
    agree(model, decoder)
    assert len(tapes.lengths) == 1
    originals = [parameter.data for parameter in model.parameters()]
    for parameter in model.parameters():
        parameter.data = 0.5 * parameter.data
    agree(model, decoder)
    assert len(tapes.lengths) == 2  # a graph reads the places where the weights were
    for parameter, data in zip(model.parameters(), originals, strict=True):
        parameter.data = data
    agree(model, decoder)
    assert len(tapes.lengths) == 3


def test_two_searches_at_a_time_have_shapes_of_their_own():
    model = make_lively("luong")
    made = TorchEngine(model, recorded=RecordedDecoder(model, (), Tapes()))
    plain = TorchEngine(model)
    begun = [made.start(TokenArrays(ids_of(lengths)), 1) for lengths in ((5, 2), (4, 7))]
    wanted = [plain.start(TokenArrays(ids_of(lengths)), 1) for lengths in ((5, 2), (4, 7))]
    tokens = np.full((2, 1), BOS)
    for _ in range(3):
        for number in (0, 1):
            scores, begun[number] = made.step(begun[number], tokens, None, None)
            plain_scores, wanted[number] = plain.step(wanted[number], tokens, None, None)
            assert np.abs(scores.full() - plain_scores.full()).max() <= 1e-12
            assert scores.vocab_size == plain_scores.vocab_size
        tokens = np.array([[4], [5]])


class Frozen(Recorder):
    """Computes nothing anew."""

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        work()
        return lambda: None


class Disordered(Recorder):
    """Leaves every hypothesis where it was."""

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        shape = work.__self__  # type: ignore[attr-defined]

        def again() -> None:
            shape.ids[1].copy_(torch.arange(shape.size[1]).expand(shape.size))
            work()

        return again


class Broken(Recorder):
    """Gives no numbers."""

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        shape = work.__self__  # type: ignore[attr-defined]
        return lambda: void((work(), shape.best.fill_(float("nan"))))


class Refusing(Recorder):
    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        raise RuntimeError("operation not permitted when stream is capturing\nmore of it")


@pytest.mark.parametrize(
    ("recorder", "reason"),
    [
        (Frozen(), "log probabilities of a replayed step differ by"),
        (Broken(), "log probabilities of a replayed step differ by nan"),
        (Disordered(), "log probabilities of a replayed step differ by"),
        (Refusing(), "operation not permitted when stream is capturing"),
    ],
)
def test_a_wrong_recording_is_given_up(recorder: Recorder, reason: str):
    model = make_lively("transformer-pre")
    decoder = RecordedDecoder(model, (), recorder)
    with pytest.warns(RuntimeWarning, match=f"steps of decoding are not recorded as CUDA graphs.*: {reason}"):
        agree(model, decoder, beam=2)
    assert decoder.is_given_up
    agree(model, decoder, beam=2)  # without another word


def test_memory_of_other_shapes_is_given_back_first():
    model, tapes = make_lively("rnnsearch"), Tapes()
    decoder = RecordedDecoder(model, (), tapes)
    agree(model, decoder, (3, 2))
    full = list[int]()

    def fill(module: object, inputs: object) -> None:
        if not full:
            full.append(1)
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    model.get_submodule("target_embedding").register_forward_pre_hook(fill)
    find(TorchEngine(model, recorded=decoder), (40, 2))
    assert full
    # With nothing to give back, smaller batches are asked for.
    full.clear()
    with pytest.raises(torch.OutOfMemoryError):
        find(TorchEngine(model, recorded=RecordedDecoder(model, (), tapes)), (40, 2))


def test_an_output_beyond_the_last_position_is_refused_as_ever():
    model = make_model(changed(CONFIGS["transformer-learned"], max_positions=12))
    with torch.no_grad():
        model.output.weight[EOS] -= 9.0
    for recorded in (None, RecordedDecoder(model, (), Tapes())):
        with pytest.raises(UsageError, match="learned positions: 13 tokens, but the table has 12"):
            find(TorchEngine(model, recorded=recorded), (3, 2), min_length=20, max_length_offset=30)


def test_whoever_watches_attention_sees_every_step():
    model, seen = make_lively("luong"), list[object]()
    token = dispatch.observer.set(lambda score, attended: seen.append(attended))
    find(TorchEngine(model, recorded=RecordedDecoder(model, (), Tapes())), beam=1)
    dispatch.observer.reset(token)
    assert seen


def test_backends_record_where_the_device_does(monkeypatch: pytest.MonkeyPatch):
    model, tapes = make_lively("transformer-pre"), Tapes()
    monkeypatch.setattr(engine, "make_recorder", lambda device: tapes)
    backend = torch_backend(model, 20)
    for _ in range(2):
        assert isinstance(backend.make_engine(True), TorchEngine)
        backend.decode(ids_of((3, 2)), SearchConfig(beam=2))
        backend.decode(ids_of((3, 2)), SearchConfig(beam=2), need_alignment=True)
    assert len(tapes.lengths) == 2  # without weights, and with them


class Count(TorchDispatchMode):
    """Number of operations."""

    def __init__(self) -> None:
        super().__init__()
        self.names = list[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def test_a_step_hands_a_few_operations_to_the_device():
    model = make_lively("transformer-pre")
    made = TorchEngine(model, recorded=RecordedDecoder(model, (), Tapes()))
    state = made.start(TokenArrays(ids_of(LENGTHS)), 2)
    assert isinstance(state, recorded_decoder.RecordedSearch)
    state.shape.replay = lambda: None  # one launch
    with Count() as count:
        scores, state = made.step(state, np.full((7, 2), BOS), np.zeros((7, 2), dtype=np.int64), None)
        scores.top(4)
    assert len(count.names) <= 20, count.names
    assert count.names.count("_to_copy") + count.names.count("copy_") <= 4


@pytest.mark.parametrize("name", thinned([name for name in CONFIGS if name not in LAUNCHED], 3))
def test_a_step_touches_nothing_on_the_host(name: str, monkeypatch: pytest.MonkeyPatch):
    """On PyTorch's device without numbers, which takes the branches of a GPU."""
    without_autocast(monkeypatch)
    monkeypatch.setattr(dispatch, "concrete", lambda *tensors: True)
    model = make_model(name)
    for positions in (module for module in model.modules() if isinstance(module, Positions)):
        positions.codes(0, 16)
    with torch.inference_mode():
        source, lengths = make_sources((16, 9, 4))
        memory = model.encode(TokenInputs(source, lengths))
        fixed = model.fixed_state(model.start(memory, 3), ROOM)
        assert fixed is not None
        tensors = (model.prepare_steps(memory), fixed[0])
        memory, state = map_leaves(tensors, lambda tensor: tensor.to("meta"))
        shape = DecoderShape(model.to("meta"), memory, state, ("weights",) if model.alignment else ())
        with Watch("meta"):
            shape.work()


def test_sources_that_are_padded_beyond_the_last_position_are_launched():
    model, tapes = make_lively("rnnsearch-convolutional"), Tapes()
    agree(model, RecordedDecoder(model, (), tapes), (18, 3))
    assert not tapes.lengths
