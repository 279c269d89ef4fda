"""Exceptions of heedful with their exit codes, and the command that installs a missing extra.

HeedfulError          1    base class; the code of an error without a more specific class
├── UsageError          2    the command, its options or the configuration are wrong
│   ├── ConfigError     2    a configuration key or value; the message names its dotted path
│   └── DataError       2    a data file; the message names file:line where there is one
├── FileRefused         3    a model or checkpoint is corrupt, unsafe, foreign or incompatible
│   ├── DamagedFile     3    a file cannot be what heedful wrote: a pipe, too large, not UTF-8, not JSON
│   └── NewerFormat     3    a file was made by a newer heedful; it is left as it is
├── NonFiniteError      4    the loss or a gradient is not finite
├── ResourceError       5    out of disk, memory or device
│   └── LostProcess     5    another process of the same training died or does not respond
├── MissingExtra        6    an optional dependency is not installed; the message prints the install line
├── ShapeError          2    tensor axes that must agree differ (Python interface)
├── NeedError           2    the normalizer or kernel cannot provide a requested attention summary
├── KernelUnsupported   2    a kernel chosen by name cannot compute the request
├── CaptureChanged      2    a model computes other outputs while its attention is recorded
├── EndedElsewhere      *    another process ended the training and prints the reason; exit code of that process
└── Stopped           130    a signal ended the run after saving; 143 for SIGTERM

A message is one line that says what is wrong, where, and what to do.
"""

import json
import os
import shlex
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, Final


class HeedfulError(Exception):
    """Base of all exceptions that heedful raises on purpose.

    Example:
        >>> HeedfulError("a bug").exit_code
        1
    """

    exit_code: ClassVar[int] = 1


class UsageError(HeedfulError):
    """Wrong command, option or argument.

    Example:
        >>> UsageError("no such file").exit_code
        2
    """

    exit_code = 2


class ConfigError(UsageError):
    """Wrong configuration key or value.

    Example:
        >>> ConfigError("model.size: 0").exit_code
        2
    """


class DataError(UsageError):
    """Missing, empty or malformed data file.

    Example:
        >>> DataError("pairs.tsv:3: no tab").exit_code
        2
    """


class ShapeError(UsageError, ValueError):
    """Tensor axes or types that must agree but differ; the message gives those of both.

    Example:
        >>> ShapeError("sizes differ").exit_code
        2
    """


class NeedError(UsageError, ValueError):
    """Request for an attention summary that the normalizer or kernel cannot provide.

    Example:
        >>> NeedError("no weights").exit_code
        2
    """


class CaptureChanged(UsageError):
    """Outputs of a model that differ while its attention is recorded.

    Example:
        >>> CaptureChanged("outputs differ").exit_code
        2
    """


class KernelUnsupported(UsageError, ValueError):
    """Kernel chosen by name that cannot compute the request.

    Example:
        >>> KernelUnsupported("sdpa: no").exit_code
        2
    """


class FileRefused(HeedfulError):
    """Model or checkpoint that is corrupt, unsafe, foreign or incompatible.

    Example:
        >>> FileRefused("model.pkl: a pickle").exit_code
        3
    """

    exit_code = 3


class DamagedFile(FileRefused):
    """File whose content cannot be read: no regular file, too large, not UTF-8 or not JSON.

    Example:
        >>> DamagedFile("config.toml: cut off").exit_code
        3
    """


class NewerFormat(FileRefused):
    """File in a newer format than this heedful reads; it is never treated as damaged, changed or deleted.

    Example:
        >>> NewerFormat("made by a newer heedful").exit_code
        3
    """


class NonFiniteError(HeedfulError):
    """Loss or gradient that is infinite or not a number.

    Example:
        >>> NonFiniteError("step 10: the loss is NaN").exit_code
        4
    """

    exit_code = 4


class ResourceError(HeedfulError):
    """Lack of disk space, memory or device.

    Example:
        >>> ResourceError("disk full").exit_code
        5
    """

    exit_code = 5


class LostProcess(ResourceError):
    """Loss of another process of the same training, which died or does not respond.

    Example:
        >>> LostProcess("rank 1 was lost").exit_code
        5
    """


class MissingExtra(HeedfulError):
    """Optional dependency that is not installed.

    Example:
        >>> MissingExtra("torch", "train", "training").exit_code
        6
    """

    exit_code = 6

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}: {install_command(extra)}")


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error of Python, PyTorch or an engine means that memory is exhausted.

    Example:
        >>> is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"))
        True
    """
    words = str(error).lower()
    is_told = isinstance(error, RuntimeError | ResourceError) and (
        "can't allocate memory" in words or "out of memory" in words
    )
    # PyTorch need not be imported.
    return is_told or isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


_LOST_DEVICE: Final = ("CUDA error", "cuDNN error", "CUBLAS_STATUS", "CUDA driver error", "Triton Error [CUDA]")
"""Beginnings of messages after which a GPU computes nothing more in this process."""


def is_lost_device(error: BaseException) -> bool:
    """Tell whether an error of PyTorch means that the GPU cannot be used any more.

    Example:
        >>> is_lost_device(RuntimeError("CUDA error: unspecified launch failure"))
        True
    """
    is_memory = type(error).__name__ == "OutOfMemoryError"  # PyTorch need not be imported
    return isinstance(error, RuntimeError) and not is_memory and str(error).startswith(_LOST_DEVICE)


EXTRAS: Final = {
    "torch": "train",
    "numba": "train",
    "sacrebleu": "train",
    "matplotlib": "train",
    "jaxtyping": "train",
    "onnx": "train",
    "sklearn": "sklearn",
    "onnxscript": "train",
    "onnxruntime": "onnx",
    "ctranslate2": "ctranslate2",
    "gensim": "vectors",
    "PIL": "images",
    "timm": "backbones",
    "torchvision": "backbones",
    "fastapi": "serve",
    "starlette": "serve",
    "uvicorn": "serve",
    "python_multipart": "serve",
    "prometheus_client": "serve",
    "anywidget": "notebook",
    "panphon": "phones",
    "jieba": "phones",
    "traitlets": "notebook",
    "lxml": "documents",
    "translate": "documents",
}
"""Extra that installs each optional package."""


def missing_extra(error: ModuleNotFoundError, purpose: str) -> MissingExtra | None:
    """Turn a failed import of an optional package into an error with the install line.

    Returns:
        The error; None if the missing module is no optional package.

    Example:
        >>> str(missing_extra(ModuleNotFoundError(name="torch.nn"), "training")).partition(":")[0]
        'training needs PyTorch'
    """
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return None
    return MissingExtra("PyTorch" if package == "torch" else package, EXTRAS[package], purpose)


@contextmanager
def needed_for(purpose: str) -> Generator[None]:
    """Import optional packages with an error that says how to install them.

    Yields:
        Nothing.

    Raises:
        MissingExtra: an optional package is not installed.
        ModuleNotFoundError: another module is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (missing := missing_extra(error, purpose)) is not None:
            raise missing from None
        raise


class EndedElsewhere(HeedfulError):
    """End of the training by another process, which prints the reason; this one exits silently with the same code.

    Example:
        >>> EndedElsewhere(5).exit_code
        5
    """

    def __init__(self, exit_code: int) -> None:
        super().__init__("")
        self.exit_code = exit_code  # type: ignore[misc]


class Stopped(HeedfulError):
    """End of a run by a signal, after everything was saved.

    Example:
        >>> Stopped("stopped", 2).exit_code
        130
    """

    exit_code = 130

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.signal_number = signal_number
        self.exit_code = 128 + signal_number  # type: ignore[misc]  # per instance, as in EndedElsewhere


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint such as ``; did you mean 'small'?``, or a list of the accepted words.

    Returns:
        A clause that starts with ``;`` and can be appended to an error message.

    Example:
        >>> did_you_mean("smal", ["tiny", "small"])
        "; did you mean 'small'?"
        >>> did_you_mean("x", ["tiny", "small"])
        '; known: tiny, small'
    """
    names = list(known)
    close = get_close_matches(name, names, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(names)}"


def install_command(extra: str = "") -> str:
    """Return the command that installs heedful with an extra.

    An editable folder, a folder, a wheel or a repository is named again, as recorded by the installer (PEP 610); where
    it is gone, the packages of the extra are named. Sources that were never installed are installed editable.

    Args:
        extra: name of the extra; empty = none.

    Returns:
        Such as ``pip install 'heedful[train]'``.
    """
    # Slow imports, which every command would pay for.
    from importlib import metadata
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        distribution = metadata.distribution("heedful")
    except metadata.PackageNotFoundError:
        return _from_folder("pip install", Path(__file__).parents[2], extra)
    tool = "uv pip install" if (distribution.read_text("INSTALLER") or "").strip() == "uv" else "pip install"
    name = _with_extra("heedful", extra)
    if command := _of_program_runner(Path(sys.prefix), name):
        return command
    recorded = distribution.read_text("direct_url.json")
    if recorded is None:
        return f"{tool} {_quoted(name)}"
    facts: dict[str, Any] = json.loads(recorded)
    url = str(facts["url"])
    if not url.startswith("file:"):
        return f"{tool} {_quoted(f'{name} @ {_revision(facts, url)}')}"
    path = Path(url2pathname(urlsplit(url).path))
    if path.exists():
        option = "--editable " if facts.get("dir_info", {}).get("editable") else ""
        return f"{tool} {option}{_quoted(_with_extra(str(path), extra))}"
    return " ".join([tool, *map(_quoted, _requirements(distribution.requires or [], extra))])


def _of_program_runner(prefix: Path, name: str) -> str:
    """Command of the tool that keeps an environment for this program alone; empty for any other environment."""
    match [part for part in prefix.parts if part in {"pipx", "venvs", "uv", "tools", "archive-v0"}]:
        case ["pipx", "venvs"]:
            return f"pipx install --force {_quoted(name)}"
        case ["pipx"]:
            return f"pipx run --spec {_quoted(name)} heedful"
        case ["uv", "tools"]:
            return f"uv tool install {_quoted(name)}"
        case ["uv", "archive-v0"]:
            return f"uvx --from {_quoted(name)} heedful"
        case _:
            return ""


def _from_folder(tool: str, folder: Path, extra: str) -> str:
    if not (folder / "pyproject.toml").is_file():
        return f"{tool} {_quoted(_with_extra('heedful', extra))}"
    return f"{tool} --editable {_quoted(_with_extra(str(folder), extra))}"


def _with_extra(name: str, extra: str) -> str:
    return f"{name}[{extra}]" if extra else name


def _revision(facts: dict[str, Any], url: str) -> str:
    """Address of a repository or archive in pip's form."""
    if "vcs_info" not in facts:
        return url
    repository = facts["vcs_info"]
    revision = repository.get("requested_revision") or repository["commit_id"]
    return f"{repository['vcs']}+{url}@{revision}"


def _requirements(requirements: list[str], extra: str) -> list[str]:
    """Requirements of an extra, or without one those of heedful itself, without their markers."""
    split = [text.partition(";") for text in requirements]
    marked = [(name.strip(), marker) for name, _, marker in split]
    wanted = {f"extra == {quote}{extra}{quote}" for quote in "'\""}
    return [
        name for name, marker in marked if (any(each in marker for each in wanted) if extra else "extra" not in marker)
    ]


def _quoted(text: str) -> str:
    return f'"{text}"' if os.name == "nt" else shlex.quote(text)
