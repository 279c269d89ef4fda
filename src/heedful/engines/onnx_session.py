"""Session of ONNX Runtime for graphs of strangers: a run that fails or never ends is no fault of the program."""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, final

from heedful.errors import FileRefused, MissingExtra, ResourceError

MOST_SECONDS: Final = 600.0
"""Longest run of a graph: a step of a search takes milliseconds, a batch of long documents a minute."""
_LOOK_SECONDS: Final = 1.0
_EXHAUSTED: Final = ("Failed to allocate memory", "bad_alloc", "bad allocation")
"""Words of ONNX Runtime where memory is exhausted."""


@final
class Session:
    """Loaded graph."""

    def __init__(self, path: Path, session: Any) -> None:
        """Wrap a session.

        Args:
            path: file of the graph, for messages.
            session: `onnxruntime.InferenceSession`.
        """
        self._path: Final = path
        self._session: Final = session
        self.input_names: Final[list[str]] = [each.name for each in session.get_inputs()]
        self.output_names: Final[list[str]] = [each.name for each in session.get_outputs()]

    def output_shape(self, index: int) -> Sequence[Any]:
        """Return the shape of an output: numbers, and names of axes of any size."""
        return self._session.get_outputs()[index].shape

    def run(self, names: Sequence[str] | None, feeds: Mapping[str, Any]) -> list[Any]:
        """Run the graph.

        Args:
            names: outputs; None = all.
            feeds: array of each input.

        Returns:
            Arrays of the outputs.

        Raises:
            FileRefused: it fails, or takes longer than `MOST_SECONDS`.
            ResourceError: memory is exhausted.
        """
        return self._limited(self._session.run, names, feeds)

    def run_tensors(self, names: Sequence[str], feeds: Mapping[str, Any]) -> list[Any]:
        """Run the graph on tensors of ONNX Runtime; all else as `run`."""
        return self._limited(self._session.run_with_ort_values, names, feeds)

    def _limited(
        self, run: Callable[..., list[Any]], names: Sequence[str] | None, feeds: Mapping[str, Any]
    ) -> list[Any]:
        """Results of a run that ends at the limit.

        Raises:
            FileRefused: it was ended there, or failed.
            ResourceError: memory is exhausted.
        """
        # No context managers: a search runs a small graph thousands of times a second.
        key, options = _WATCH.begin()
        try:
            return run(names, feeds, options)
        except Exception as error:  # ONNX Runtime raises many exception classes that it does not export
            if options.terminate:
                raise FileRefused(
                    f"{self._path}: the graph ran for {MOST_SECONDS:.0f} s and was stopped; it may never end"
                ) from None
            reason = str(error).partition("\n")[0]
            if any(words in reason for words in _EXHAUSTED):
                raise ResourceError(f"{self._path}: out of memory; use smaller batches: --batch-tokens") from None
            raise FileRefused(f"{self._path}: the graph failed: {reason:.200}; export the model again") from error
        finally:
            _WATCH.end(key)


@final
class _Watch:
    """Watch over running graphs, in a thread that ends when none runs."""

    def __init__(self) -> None:
        self._running: Final[dict[object, tuple[float, Any]]] = {}
        self._lock: Final = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self) -> tuple[object, Any]:
        """Watch over a run.

        Returns:
            Key of the run for `end`, and its options, by which the watch ends it at the limit.
        """
        import onnxruntime

        key, options = object(), onnxruntime.RunOptions()
        with self._lock:
            self._running[key] = time.monotonic() + MOST_SECONDS, options
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._look, name="heedful-onnx", daemon=True)
                self._thread.start()
        return key, options

    def end(self, key: object) -> None:
        """End the watch over a run."""
        with self._lock:
            del self._running[key]

    def _look(self) -> None:
        while True:
            time.sleep(_LOOK_SECONDS)
            with self._lock:
                if not self._running:
                    self._thread = None
                    return
                for until, options in self._running.values():
                    if time.monotonic() > until:
                        options.terminate = True


_WATCH: Final = _Watch()


def open_session(path: Path, threads: int) -> Session:
    """Load a graph.

    Args:
        threads: number of threads; 0 = ONNX Runtime's own choice.

    Raises:
        FileRefused: the file is missing or damaged, or takes longer than `MOST_SECONDS` to load.
    """
    onnxruntime = import_runtime()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # Without spinning, because idle threads of one graph would take processor time from the next graph.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Constants are computed while a graph is loaded, in a thread, because nothing else ends a wait for it.
    loaded: list[Any] = []

    def load() -> None:
        try:
            loaded.append(onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]))
        except Exception as error:  # ONNX Runtime raises many exception classes that it does not export
            loaded.append(error)

    thread = threading.Thread(target=load, name="heedful-onnx-load", daemon=True)
    thread.start()
    thread.join(MOST_SECONDS)
    if not loaded:
        raise FileRefused(
            f"{path}: loading the graph took over {MOST_SECONDS:.0f} s and was given up; export the model again"
        )
    if isinstance(loaded[0], Exception):
        raise FileRefused(f"{path}: not readable: {first_line(loaded[0])}; export the model again")
    return Session(path, loaded[0])


def import_runtime() -> Any:
    """Import ONNX Runtime.

    Returns:
        The module `onnxruntime`.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        import onnxruntime
    except ModuleNotFoundError:
        raise MissingExtra("onnxruntime", "onnx", "running ONNX models") from None
    return onnxruntime


def num_threads(threads: int) -> int:
    """Choose the number of threads for a graph.

    Args:
        threads: number of threads; 0 = OMP_NUM_THREADS.

    Returns:
        The number of threads; 0 = ONNX Runtime's own choice.
    """
    num_threads = os.environ.get("OMP_NUM_THREADS", "")
    return threads or (int(num_threads) if num_threads.isdecimal() else 0)


def first_line(error: Exception) -> str:
    """Return the first line of a message, which names the fault."""
    return str(error).partition("\n")[0]
