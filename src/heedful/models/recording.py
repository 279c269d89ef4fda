"""Work on a GPU recorded once and done again at the price of one launch: CUDA graphs.

What is recorded is a list of operations on places in memory. So whatever shall differ from time to time must come from
tensors that stay where they are: sizes, numbers of Python and branches are as they were while recording, and nothing
may wait for the device or copy from the host.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, final

import torch

from heedful.errors import UsageError

WARM_UPS: Final = 2
"""Times that work is done before it is recorded: libraries make plans and programs are compiled the first time."""


class Recorder(ABC):
    """Turns work into something that can be done again quickly."""

    @abstractmethod
    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        """Do some work a few times, and make a function that does it again.

        Args:
            work: reads and writes tensors that stay where they are; may be done any number of times.

        Returns:
            What does the same operations on the same tensors. What `work` made is valid after it, until it or other
            work of this recorder is done again.
        """


@final
class CudaGraphs(Recorder):
    """Records CUDA graphs, which share the memory of what they make on the way and leave to nobody.

    Where a device or driver refuses, it warns, and the work is done operation by operation.
    """

    def __init__(self, device: torch.device) -> None:
        """Begin with nothing recorded.

        Args:
            device: of all work.

        Raises:
            UsageError: it is no CUDA device.
        """
        if device.type != "cuda":
            raise UsageError(
                f'CUDA graphs need a CUDA device, and the model is on "{device}"; set training.execution to "eager"'
            )
        self._pool: Any = None

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM_UPS):
                work()
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        try:
            # Other threads may use the device meanwhile.
            with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                work()
        except RuntimeError as error:
            reason = str(error).partition("\n")[0]
            warnings.warn(f"a step is not recorded as a CUDA graph, and runs slower: {reason}", stacklevel=2)
            return work
        return graph.replay
