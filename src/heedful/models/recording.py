"""Recordings of work on a GPU, done again at the price of one launch: CUDA graphs.

A recording is a list of operations on places in memory. Whatever is to differ from time to time must come from tensors
that stay where they are: sizes, Python's numbers and branches are as they were while recording, and nothing may wait
for the device or copy from the host.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, final

import torch

WARM_UPS: Final = 2
"""Times that work is done before it is recorded: libraries make plans, and programs are compiled, the first time."""


class Recorder(ABC):
    """Recorder of work that is done often."""

    @abstractmethod
    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        """Do some work a few times, and return a function that does it again.

        Args:
            work: reads and writes tensors that stay where they are; may be done any number of times.

        Returns:
            Function that does the same operations on the same tensors. What `work` made is valid after it, until it, or
            other work of this recorder, is done again.

        Raises:
            RuntimeError: the work cannot be recorded.
        """


@final
class CudaGraphs(Recorder):
    """CUDA graphs that share the memory of intermediate results."""

    def __init__(self, device: torch.device) -> None:
        """Start with nothing recorded.

        Args:
            device: device that computes; recordings take what is launched on the present one alone.
        """
        self._device: Final = device
        self._pool: Any = None

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        with torch.cuda.device(self._device):
            return self._record(work)

    def _record(self, work: Callable[[], None]) -> Callable[[], None]:
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM_UPS):
                work()
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        # Other threads may use the device meanwhile.
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            work()
        return graph.replay


def make_recorder(device: torch.device) -> Recorder | None:
    """Make the recorder of a device.

    Args:
        device: device of a model.

    Returns:
        The recorder; None where operations cannot be recorded.
    """
    return CudaGraphs(device) if device.type == "cuda" else None
