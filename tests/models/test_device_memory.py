"""Batches as large as memory allows."""

import pytest
import torch

from heedful.models.device_memory import GROWTH, as_memory_allows


def test_batches_are_halved_until_memory_holds_them():
    tried = list[int]()

    def work(tokens: int) -> str:
        tried.append(tokens)
        if tokens > 300:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return "done"

    assert as_memory_allows(work, 100, torch.device("cuda")) == "done"
    assert tried == [GROWTH * 100, GROWTH * 50, GROWTH * 25, 200]
    assert as_memory_allows(work, 100, torch.device("cpu")) == "done"
    assert tried[-1] == 100
    tried.clear()
    with pytest.raises(torch.OutOfMemoryError):
        as_memory_allows(lambda tokens: work(tokens + 300), 4, torch.device("cpu"))
    assert tried == [304, 302, 301]
