"""Validations of every task in batches that memory holds: decoding or labelling, and the loss."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from heedful.layers.embedding import Embedding
from tests.tasks.reviews import write_reviews
from tests.tasks.scenes import write_scenes
from tests.tasks.test_captioning import Run as CaptioningRun
from tests.tasks.test_classification import Run

MOST_ROWS = 2


def reviews(folder: Path) -> Any:
    return Run(write_reviews(folder / "reviews.tsv"), folder / "model", "training.max_steps=2", preset="bag")


def scenes(folder: Path) -> Any:
    data = write_scenes(folder / "scenes.tsv", 40)
    return CaptioningRun(data, folder / "model", "training.max_steps=2", preset="show_attend_tell")


@pytest.mark.parametrize("make", [reviews, scenes])
def test_a_validation_that_memory_does_not_hold_is_divided(make: Callable[[Path], Any], tmp_path: Path):
    rows = list[int]()

    def hold_few(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        if module.training or not isinstance(module, Embedding | nn.Conv2d):
            return
        assert isinstance(inputs[0], Tensor)
        rows.append(len(inputs[0]))
        if rows[-1] > MOST_ROWS:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    found = list[float]()
    for name in ("whole", "divided"):
        (tmp_path / name).mkdir()
        run = make(tmp_path / name)
        hook = register_module_forward_pre_hook(hold_few) if name == "divided" else None
        try:
            run.train()
        finally:
            if hook is not None:
                hook.remove()
        (scores,) = (each.validation.scores for each in run.watched if each.validation)
        found.append(scores["loss"])
    assert max(rows) > MOST_ROWS >= rows[-1]
    assert found[1] == pytest.approx(found[0], abs=1e-4)
