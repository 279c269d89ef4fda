"""Failures of a GPU, simulated: too little memory for a batch, and a device that is gone."""

from pathlib import Path

import pytest
import torch
from torch import nn

from heedful.errors import ResourceError
from tests.models.tiny import CONFIGS, changed
from tests.training.test_loop import Run, end_of, make_run

KIND = changed(CONFIGS["transformer-post"], dropout=0.0, attention_dropout=0.0)
"""Parts of a batch draw other dropout than the whole."""
SGD = {"kind": "sgd", "learning_rate": 0.1}
"""Adam would divide gradients that are nothing but rounding by their size."""


def hold(run: Run, num_rows: int) -> list[int]:
    """Let the device hold so many rows; returns the numbers of rows of all calls in training."""
    rows = list[int]()

    def count(module: nn.Module, inputs: tuple[object, ...]) -> None:
        if module.training:
            target_in = inputs[1]
            assert isinstance(target_in, torch.Tensor)
            rows.append(len(target_in))
            if len(target_in) > num_rows:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    run.model.register_forward_pre_hook(count)
    return rows


def test_a_batch_that_memory_does_not_hold_is_computed_in_parts(tmp_path: Path):
    """The weights are those of the whole batches."""
    whole, parts = (
        make_run(tmp_path / name, KIND, max_steps=11, batch_tokens=64, optimizer=SGD) for name in ("whole", "parts")
    )
    whole.trainer().run()
    rows = hold(parts, 2)
    parts.trainer().run()
    assert max(rows) > 4
    assert max(rows[len(rows) // 2 :]) <= 2
    assert all(warning.startswith("out of memory on cpu at step ") for warning in parts.warned)
    assert parts.warned[-1].endswith("each batch is computed in 8 parts, whose gradients add up to the same")
    for name, weights in end_of(whole).items():
        torch.testing.assert_close(end_of(parts)[name], weights, rtol=1e-4, atol=1e-5)


def test_a_single_example_that_memory_does_not_hold_is_one_line(tmp_path: Path):
    run = make_run(tmp_path, max_steps=2)
    hold(run, 0)
    with pytest.raises(
        ResourceError, match=r"out of memory on cpu: it does not hold a step of one example; .*--device cpu"
    ):
        run.trainer().run()
    assert run.kept == []


@pytest.mark.parametrize("message", ["CUDA error: unspecified launch failure\nCompile with...", "cuDNN error: gone"])
def test_a_device_that_is_gone_leaves_a_checkpoint(tmp_path: Path, message: str):
    run = make_run(tmp_path, max_steps=11)
    calls = list[int]()

    def fail(module: nn.Module, inputs: object) -> None:
        if module.training:
            calls.append(1)
            if len(calls) == 7:
                raise RuntimeError(message)

    handle = run.model.register_forward_pre_hook(fail)
    with pytest.raises(ResourceError) as caught:
        run.trainer().run()
    assert str(caught.value).startswith(
        f"cpu failed at step 7: {message.partition(chr(10))[0]}; the last checkpoint is of"
    )
    assert "--device cpu" in str(caught.value)
    handle.remove()
    # What the same command does on a CPU.
    again = Run(tmp_path, run.config, run.model)
    assert again.trainer().run().step == 11
    straight = make_run(tmp_path / "straight", max_steps=11)
    straight.trainer().run()
    for name, weights in end_of(straight).items():
        assert torch.equal(end_of(again)[name], weights), name


def test_another_error_is_not_called_a_failure_of_the_device(tmp_path: Path):
    run = make_run(tmp_path, max_steps=2)

    def fail(module: nn.Module, inputs: object) -> None:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    run.model.register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError, match="mat1"):
        run.trainer().run()
