from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from heedful.cpu import concrete
from heedful.cpu.concrete import is_exporting


def seen(numbers: Tensor) -> Tensor:
    return numbers + int(is_exporting())


class Seen(torch.nn.Module):
    def forward(self, numbers: Tensor) -> Tensor:
        return seen(numbers)


@pytest.mark.compiled
def test_what_dynamo_compiles_is_not_exported(monkeypatch: pytest.MonkeyPatch):
    """PyTorch before 2.13 says otherwise."""
    program = torch.export.export(Seen(), (torch.zeros(1),), strict=False).module()
    assert program(torch.zeros(1)).item() == 1
    older = SimpleNamespace(
        is_exporting=lambda: torch.compiler.is_compiling(),
        is_dynamo_compiling=torch.compiler.is_dynamo_compiling,
    )
    monkeypatch.setattr(concrete, "torch", SimpleNamespace(compiler=older))
    assert torch.compile(seen, backend="eager", fullgraph=True)(torch.zeros(1)).item() == 0
