"""Disk cache of compiled numba kernels.

Numba's own cache knows a kernel by its own file and type only: after a change in a module whose functions are inlined,
it runs old machine code on new buffers; it trusts what it reads; and of two processes that compile a kernel for two
types at once, one may later read the code of the other. So each kernel and signature has a file of its own here. Its
name holds a digest of all that shapes the machine code (`_kernel_facts`), its content starts with a digest of the name
and the rest, and it is renamed into place. A file that is missing, or not as it was written, is compiled again.

The content is machine code in Numba's own form, so whoever can write a file of the cache can run code. Only folders are
used that nobody but the user, or whoever installed the package, can write to.
"""

import ast
import os
import pickle
import platform
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple, final

from heedful.version import IMPORTED_AT

SUFFIX: Final = ".kernel"
NUM_KEPT: Final = 16
"""Files kept of one kernel, for its signatures and for several versions that share a folder."""
LOCK_SECONDS: Final = 60.0
"""Longest wait for another process that is compiling."""
_DIGEST_BYTES: Final = 32
_SETTINGS_WITHOUT_EFFECT: Final = frozenset(
    {"CACHE_DIR", "CACHE_LOCATOR_CLASSES", "NUMBA_DEFAULT_NUM_THREADS", "NUMBA_NUM_THREADS", "COLOR_SCHEME"}
)


def cached_njit(*flags: str, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function on its first call, or load it from the disk cache.

    Args:
        flags: LLVM's fast-math flags.
        options: further options of `numba.njit`.

    Returns:
        A decorator. The function releases the interpreter lock, and division by zero gives infinity. Without a folder
        for the cache that only the user can write to, each process compiles it.

    Cost: 0.2 to 3 s to compile, 10 ms to load.
    """
    from numba import njit

    def decorated(function: Callable[..., Any]) -> Any:
        chosen: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": set(flags), **options}
        dispatcher: Any = njit(**chosen)(function)
        # Without a compiler there is nothing to keep; what a closure holds is no part of the key.
        sources = source_digest(function.__module__) if function.__closure__ is None else ""
        if sources and hasattr(dispatcher, "_cache"):
            kernels = _KernelCache(dispatcher, sources)
            dispatcher._cache, dispatcher.compile = kernels, partial(_compile, dispatcher, kernels)
        return dispatcher

    return decorated


def folders() -> list[Path]:
    """Return the folders of the cache; each is read, and the first one that can be written is written.

    Returns:
        One in `NUMBA_CACHE_DIR` if it is set; else one beside this file, then one of the user.
    """
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return [Path(chosen) / "heedful"]
    paths = [Path(__file__).parent / "__pycache__" / "kernels"]
    with suppress(RuntimeError):  # no home
        paths.append(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "heedful" / "kernels")
    return paths


def refusal(folder: Path) -> str:
    """Say why a folder is not used, although it exists: others could put code into it.

    Returns:
        Such as "others can write to it"; empty if it is used, or does not exist.
    """
    if os.name == "nt":
        return ""  # no modes there; the folders of a user are the user's
    try:
        status = folder.stat()
    except OSError:
        return ""
    if status.st_uid not in _owners():
        return "it belongs to another user"
    return "others can write to it" if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else ""


def _owners() -> frozenset[int]:
    """The system, the user, and whoever can change the package itself."""
    return frozenset((0, os.geteuid(), Path(__file__).stat().st_uid))


class CacheReport(NamedTuple):
    """State of a folder of the cache."""

    folder: Path
    num_files: int
    num_bytes: int
    num_damaged: int
    """Files that are not as they were written; they are compiled again when they are needed."""
    refusal: str
    """Why the folder is not used; empty if it is."""


def examine() -> list[CacheReport]:
    """Read all files of the cache.

    Returns:
        A report for each folder that has any, or is not used.
    """
    reports: list[CacheReport] = []
    for folder in folders():
        if reason := refusal(folder):
            reports.append(CacheReport(folder, 0, 0, 0, reason))
            continue
        with suppress(OSError):
            if paths := [path for path in folder.iterdir() if path.suffix == SUFFIX]:
                num_damaged = sum(_read(path) is None for path in paths)
                size = sum(path.stat().st_size for path in paths)
                reports.append(CacheReport(folder, len(paths), size, num_damaged, ""))
    return reports


@cache
def source_digest(name: str) -> str:
    """Compute the digest of the source of a module and of all that it imports of its own package, and so on.

    Returns:
        sha256; empty if a source cannot be read, or changed after this process began, which may have the older one.

    Cost: 2 ms for each module.
    """
    digest = sha256()
    package, waiting, known = name.partition(".")[0], [name], {name}
    while waiting:
        module = sys.modules[waiting.pop()]
        file = getattr(module, "__file__", None)
        if file is None and module.__name__ != name:
            continue  # a folder without code
        path = Path(file or "")
        try:
            source, is_newer = path.read_bytes(), _changed_at(path) >= IMPORTED_AT
        except OSError:
            return ""
        if is_newer or path.suffix != ".py":
            return ""
        digest.update(f"{len(source)} ".encode() + source)
        for imported in _imports(ast.parse(source), module):
            if imported.partition(".")[0] == package and imported in sys.modules and imported not in known:
                known.add(imported)
                waiting.append(imported)
    return digest.hexdigest()


def _changed_at(path: Path) -> float:
    """Time of the last change of a file, in seconds since 1970, by the clock that nobody sets back.

    Raises:
        OSError: there is no such file.
    """
    status = path.stat()
    return status.st_mtime if os.name == "nt" else status.st_ctime


def _imports(tree: ast.Module, module: ModuleType) -> Iterator[str]:
    """Names that the top of a module imports; some may be no modules."""
    parent = module.__package__ or ""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(parent.split(".")[: 1 - node.level or None]) if node.level else ""
            name = ".".join(part for part in (base, node.module) if part)
            yield name
            yield from (f"{name}.{alias.name}" for alias in node.names)


def _kernel_facts(dispatcher: Any, sources: str, signature: Any) -> str:
    """All that the machine code of a kernel depends on."""
    import llvmlite
    import numba
    import numpy as np
    from numba.core import config

    function, codegen = dispatcher.py_func, dispatcher.targetctx.codegen()
    options = sorted(
        (name, sorted(value) if isinstance(value, set | frozenset) else value)
        for name, value in dispatcher.targetoptions.items()
    )
    settings = [
        (name, str(value))
        for name, value in sorted(vars(config).items())
        if name.isupper()
        and name not in _SETTINGS_WITHOUT_EFFECT
        and isinstance(value, str | int | float | tuple | None)
    ]
    versions = (numba.__version__, llvmlite.__version__, np.__version__, sys.version, platform.platform())
    origin = (function.__module__, function.__qualname__, function.__code__.co_firstlineno)
    return repr((origin, sources, str(signature), codegen.magic_tuple(), options, settings, versions))


@final
class _KernelCache:
    """Cache of one kernel for all its signatures; Numba calls these methods."""

    cache_path = None

    def __init__(self, dispatcher: Any, sources: str) -> None:
        self._dispatcher = dispatcher
        self._sources = sources

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        from numba.core.compiler import CompileResult

        target_context.refresh()
        content = self.find(sig)
        rebuild: Any = getattr(CompileResult, "_rebuild")  # noqa: B009 - Numba has no public name for it
        return None if content is None else rebuild(target_context, *pickle.loads(content))

    def save_overload(self, sig: Any, data: Any) -> None:
        from numba.core.serialize import dumps

        if not data.library.has_dynamic_globals:
            _write(self._name(sig), dumps(data._reduce()))

    def find(self, signature: Any) -> bytes | None:
        """Content of the file for a signature; None if there is none that is whole."""
        name = self._name(signature)
        trusted = (folder for folder in folders() if not refusal(folder))
        return next((content for folder in trusted if (content := _read(folder / name)) is not None), None)

    def _name(self, signature: Any) -> str:
        function = self._dispatcher.py_func
        facts = _kernel_facts(self._dispatcher, self._sources, signature)
        return "-".join((function.__name__, _short(function.__module__, 8), _short(facts, 32))) + SUFFIX

    def enable(self) -> None: ...

    def disable(self) -> None: ...

    def flush(self) -> None: ...


def _compile(dispatcher: Any, kernels: _KernelCache, signature: Any) -> Any:
    """Compile a kernel, or load it; processes that start together compile it once."""
    from numba.core.compiler_lock import global_compiler_lock

    compile_or_load = type(dispatcher).compile
    if kernels.find(signature) is not None:
        return compile_or_load(dispatcher, signature)
    with global_compiler_lock, _COMPILING:
        return compile_or_load(dispatcher, signature)


def _short(text: str, length: int) -> str:
    return sha256(text.encode()).hexdigest()[:length]


def _read(path: Path) -> bytes | None:
    """Content of a file of the cache; None if there is none, or not as it was written."""
    try:
        raw = path.read_bytes()
    except OSError:
        return None
    content = raw[_DIGEST_BYTES:]
    return content if raw[:_DIGEST_BYTES] == _checksum(path.name, content) else None


def _checksum(name: str, content: bytes) -> bytes:
    return sha256(name.encode() + b"\0" + content).digest()


def _prepare(folder: Path) -> None:
    """Create a folder of the cache that only the user can write to.

    Raises:
        OSError: the folder cannot be created.
        PermissionError: others can write to it.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o755, exist_ok=True)
    if reason := refusal(folder):
        raise PermissionError(f"{folder}: {reason}")


def _write(name: str, content: bytes) -> None:
    """Write a file into the first folder that takes it."""
    for folder in folders():
        temporary = folder / f"{name}.{os.getpid()}.unfinished"
        try:
            _prepare(folder)
            temporary.write_bytes(_checksum(name, content) + content)
            temporary.replace(folder / name)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            continue
        _remove_old(folder, name)
        return


def _remove_old(folder: Path, name: str) -> None:
    """Remove all but the newest files of the same kernel."""
    family = name.rpartition("-")[0]
    with suppress(OSError):
        paths = [path for path in folder.iterdir() if path.name.startswith(f"{family}-")]
        for path in sorted(paths, key=lambda path: path.stat().st_mtime)[:-NUM_KEPT]:
            path.unlink()


@final
class _Compiling:
    """Lock among the processes that compile. Nothing depends on it but time.

    It is entered again where a kernel compiles another. Numba compiles in one thread at a time.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._descriptor: int | None = None

    def __enter__(self) -> None:
        self._depth += 1
        if self._depth == 1:
            self._descriptor = _locked()

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0 and self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _locked() -> int | None:
    """Lock a file of the first folder that has locks."""
    try:
        import fcntl
    except ImportError:
        return None
    for folder in folders():
        try:
            _prepare(folder)
            descriptor = os.open(folder / "compiling.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError:
            continue
        until = time.monotonic() + LOCK_SECONDS
        while time.monotonic() < until:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.02)
            except OSError:
                break
            else:
                return descriptor
        os.close(descriptor)
        return None
    return None


_COMPILING: Final = _Compiling()
