"""Recordings of work on a GPU, done again at the price of one launch: CUDA graphs.

A recording is a list of operations on places in memory. Whatever is to differ from time to time must come from tensors
that stay where they are: sizes, Python's numbers and branches are as they were while recording, and nothing may wait
for the device or copy from the host.
"""

import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, final

import torch

WARM_UPS: Final = 2
"""Times that work is done before it is recorded: libraries make plans, and programs are compiled, the first time."""


_recording: Final = threading.Lock()
"""Lock of all recordings: each gives unused memory back first, which is refused while another is made."""


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
        self._stream: Any = None
        self._pool: Any = None
        self._graphs: Final = weakref.WeakSet[Any]()

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        with _recording, torch.cuda.device(self._device):
            return self._record(work)

    def _record(self, work: Callable[[], None]) -> Callable[[], None]:
        if not self._graphs:  # a pool ends with its last graph, and refuses others
            self._pool = torch.cuda.graph_pool_handle()
        # PyTorch's own stream of recordings is one of the device that was present the first time. Work that is done on
        # the stream first leaves the workspaces of libraries outside of the pool.
        self._stream = self._stream or torch.cuda.Stream()
        current = torch.cuda.current_stream()
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            for _ in range(WARM_UPS):
                work()
        current.wait_stream(self._stream)
        graph = torch.cuda.CUDAGraph()
        # Other threads may use the device meanwhile.
        recording = torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local")
        try:
            with recording:
                work()
        finally:
            torch.cuda.set_stream(current)  # a recording that fails leaves its own
        self._graphs.add(graph)
        return graph.replay


def give_memory_back() -> None:
    """Give the unused memory of the device back, as soon as no recording is under way."""
    with _recording:
        torch.cuda.empty_cache()


def make_recorder(device: torch.device) -> Recorder | None:
    """Make the recorder of a device.

    Args:
        device: device of a model.

    Returns:
        The recorder; None where operations cannot be recorded.
    """
    return CudaGraphs(device) if device.type == "cuda" else None
