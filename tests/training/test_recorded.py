"""Training steps that are recorded and replayed learn what training steps learn."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from heedful.errors import UsageError
from heedful.layers.positions import Positions
from heedful.models.interface import Seq2Seq
from heedful.text.vocabulary import PAD
from heedful.training import train_state as learner
from heedful.training.loss import TrainingStep
from heedful.training.recorded import RecordedStep, pad_to_shape
from tests.models.tiny import CONFIGS, changed, make_model
from tests.tape import Tapes, Watch, without_autocast, without_compiled_loops
from tests.training.test_loop import Run, make_config
from tests.training.test_loss import batch

BATCHES = [batch((6, 3, 5, 1)), batch((2, 6, 6, 4))]


@pytest.fixture(autouse=True)
def recordable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out loops for a CPU, which no tape sees."""
    without_compiled_loops(monkeypatch)
    without_autocast(monkeypatch)


def recorded(model: Seq2Seq, tapes: Tapes) -> RecordedStep:
    return RecordedStep(TrainingStep(model, 0.1, is_packed=False), "float32", tapes)


def gradients(model: Seq2Seq, tensors: tuple[Tensor, ...], divisor: float) -> tuple[Tensor, list[Tensor]]:
    """Of the plain step."""
    loss = TrainingStep(model, 0.1)(*tensors).total / divisor
    return loss.detach(), list(
        torch.autograd.grad(loss, list(model.parameters()), allow_unused=True, materialize_grads=True)
    )


@pytest.mark.parametrize("name", CONFIGS)
def test_replayed_gradients_are_those_of_the_plain_step(name: str):
    model = make_model(name)
    tapes = Tapes()
    step = recorded(model, tapes)
    for tensors in (*BATCHES, BATCHES[0]):
        wanted_loss, wanted = gradients(model, tensors, 7.0)
        step.begin()
        loss = step.add(list(tensors), 7.0)
        assert float(loss) == pytest.approx(float(wanted_loss), abs=1e-12)
        for parameter, grad in zip(model.parameters(), wanted, strict=True):
            assert parameter.grad is not None
            assert float((parameter.grad - grad).abs().max()) <= 1e-12
        # Weights change between steps, in their places.
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
    assert tapes.num_recorded == 1


def test_batches_of_a_step_add_up_with_divisors_of_their_own():
    model = make_model("rnnsearch")
    step = recorded(model, Tapes())
    for _ in range(2):
        step.begin()
        losses = [float(step.add(list(tensors), divisor)) for tensors, divisor in zip(BATCHES, (3.0, 5.0), strict=True)]
    found = [gradients(model, tensors, divisor) for tensors, divisor in zip(BATCHES, (3.0, 5.0), strict=True)]
    assert losses == pytest.approx([float(loss) for loss, _ in found], abs=1e-12)
    for parameter, *parts in zip(model.parameters(), *(grads for _, grads in found), strict=True):
        assert parameter.grad is not None
        assert float((parameter.grad - sum(parts)).abs().max()) <= 1e-12


def test_each_shape_is_recorded_once():
    model = make_model("transformer-pre")
    tapes = Tapes()
    step = recorded(model, tapes)
    source, lengths, target_in, target_out = BATCHES[0]
    wide = [torch.cat((part, torch.zeros(4, 5, dtype=torch.int64)), dim=1) for part in (target_in, target_out)]
    step.begin()
    losses = [float(step.add([source, lengths, target_in, target_out], 1.0)) for _ in range(2)]
    losses.append(float(step.add([source, lengths, *wide], 1.0)))
    assert tapes.num_recorded == 2
    assert losses == pytest.approx([losses[0]] * 3, abs=1e-11)


@pytest.mark.parametrize("name", ["transformer-pre", "rnnsearch"])
def test_dropout_is_a_function_of_the_seed_alone(name: str):
    """Whether a shape is new when a step comes, as after resuming, or old, changes nothing."""

    def run(steps: list[int]) -> list[float]:
        model = make_model(name).train()
        step = recorded(model, Tapes())
        found: list[float] = []
        for seed in steps:
            torch.manual_seed(seed)
            step.begin()
            found.append(float(step.add(list(BATCHES[0]), 1.0)))
        return found

    one, two, three = run([1, 2, 3])
    assert len({one, two, three}) == 3
    assert run([3, 1]) == [three, one]


def test_half_precision_products_are_recorded():
    model = make_model(changed(CONFIGS["transformer-pre"], dropout=0.0)).float()
    step = RecordedStep(TrainingStep(model, 0.1, is_packed=False), "bfloat16", Tapes())
    step.begin()
    loss = float(step.add(list(BATCHES[0]), 7.0))
    wide, _ = gradients(model, BATCHES[0], 7.0)
    assert loss == pytest.approx(float(wide), rel=0.02)
    assert loss != float(wide)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_step_touches_nothing_on_the_host(name: str):
    """On a device that has no numbers."""
    model = make_model(name).train()
    tensors = [part.to("meta") for part in pad_to_shape(*BATCHES[0])]
    for positions in (module for module in model.modules() if isinstance(module, Positions)):
        positions.codes(0, 16)
    step = TrainingStep(model.to("meta"), 0.1, is_packed=False)
    with Watch("meta"):
        loss = step(*tensors).total / torch.empty((), device="meta")
        torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)


def test_a_training_learns_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With gradients that are accumulated, clipped, and let go of after each update."""
    changes = {"max_steps": 6, "accumulate": 2, "clip_norm": 0.5}
    kind = changed(CONFIGS["rnnsearch-state"], dropout=0.0)  # it is drawn for padded shapes
    plain = Run(tmp_path / "plain", make_config(**changes), make_model(kind))
    plain.trainer().run()
    monkeypatch.setattr(learner, "CudaGraphs", lambda device: Tapes())
    config = make_config(**changes, execution="cuda_graphs")
    recorded_run = Run(tmp_path / "recorded", config, make_model(kind))
    recorded_run.trainer().run()
    for one, other in zip(plain.model.parameters(), recorded_run.model.parameters(), strict=True):
        assert float((one - other).detach().abs().max()) <= 1e-9


@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
def test_a_compiled_model_learns_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """By the tracer alone: what it hands to a compiler is PyTorch's business."""
    compile_with, traced = torch.compile, []

    def traced_only(function: Callable[..., object], **settings: bool) -> Callable[..., object]:
        traced.append(settings)
        return compile_with(function, backend="eager", **settings)

    monkeypatch.setattr(torch, "compile", traced_only)
    kind = changed(CONFIGS["transformer-pre"], dropout=0.0)
    runs = [
        Run(tmp_path / execution, make_config(max_steps=4, execution=execution), make_model(kind))
        for execution in ("eager", "compiled")
    ]
    for run in runs:
        run.trainer().run()
    assert traced == [{"dynamic": True}]
    for one, other in zip(*(run.model.parameters() for run in runs), strict=True):
        assert float((one - other).detach().abs().max()) <= 1e-9


def test_without_a_device_it_is_refused_in_one_line(tmp_path: Path):
    run = Run(tmp_path, make_config(execution="cuda_graphs"), make_model("rnnsearch"))
    with pytest.raises(UsageError, match=r'need a CUDA device, and the model is on "cpu"; set training\.execution'):
        run.trainer()


@pytest.mark.parametrize("changes", [{"alignment_weight": 1.0}, {"parallel": "sharded"}])
def test_settings_that_do_not_go_together_are_refused(changes: dict[str, object]):
    with pytest.raises(ValidationError, match="cuda_graphs need steps of one shape"):
        make_config(execution="cuda_graphs", **changes)


def test_what_is_padded_counts_for_nothing():
    source, lengths, target_in, target_out = BATCHES[0]
    padded = pad_to_shape(source, lengths, target_in, target_out)
    assert [tuple(part.shape) for part in padded] == [(8, 8), (8,), (8, 8), (8, 8)]
    assert torch.equal(padded[0][:4, :7], source)
    assert padded[1].tolist() == [*lengths.tolist(), 1, 1, 1, 1]
    assert int((padded[3] != PAD).sum()) == int((target_out != PAD).sum())
    again = pad_to_shape(*padded)
    assert all(torch.equal(one, other) for one, other in zip(padded, again, strict=True))
