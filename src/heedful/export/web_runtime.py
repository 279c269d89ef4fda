"""ONNX Runtime for browsers: one script and one WebAssembly module, made of the npm package `onnxruntime-web`.

The package is not ours, so it is no part of the sources: `make runtime` puts what is needed of it into
`heedful/js/runtime`, and a wheel that was built there contains it (docs/decisions/0040-pages-with-a-model-inside.md).
"""

import gzip
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Final, final

from heedful.errors import FileRefused, UsageError

VERSION: Final = "1.22.0"
_SCRIPT: Final = "dist/ort.wasm.min.js"
_LOADER: Final = "dist/ort-wasm-simd-threaded.mjs"
_WASM: Final = "dist/ort-wasm-simd-threaded.wasm"
_HASHES: Final = {
    _SCRIPT: "65e09376df69107e881b5c34d2d37aed333a366b6d941073ec518168e269b87d",
    _LOADER: "30dd851d9c00622940500f71ddd2ff8820c5cb65270816080175b958705385a8",
    _WASM: "71aef04959c5c1b6de461b6538e2058e306610034a85aad2742d0c7fd4533fe4",
}
_IMPORT: Final = "(await import(/*webpackIgnore:true*/e)).default"
"""Expression of the script that loads the loader from a file of its own."""
_EXPORT: Final = "export default ortWasmThreaded;"
STORED: Final = ("ort.js", "ort.wasm.gz", "LICENSE")
"""Files in `heedful/js/runtime`."""
LICENSE: Final = f"""ONNX Runtime {VERSION}, https://onnxruntime.ai
Copyright (c) Microsoft Corporation. All rights reserved.

MIT License

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""
"""Licence of the runtime, which accompanies every copy: a file beside it in a wheel, and a part of each page."""


@final
@dataclass(frozen=True)
class WebRuntime:
    """ONNX Runtime for browsers."""

    script: str
    """Module that exports the runtime as `ort`."""
    wasm: bytes
    """WebAssembly module, in gzip."""


def has_runtime() -> bool:
    """Tell whether the runtime is installed with heedful."""
    folder = files("heedful").joinpath("js", "runtime")
    return all(folder.joinpath(name).is_file() for name in STORED)


def read_runtime(package: Path | None = None) -> WebRuntime:
    """Read the runtime.

    Args:
        package: the npm package `onnxruntime-web`, as a folder or as the archive that `npm pack` writes; None = the
            runtime that is installed with heedful.

    Raises:
        UsageError: none is installed, or there is no such package.
        FileRefused: a file of the package is missing, or it is of another version.
    """
    if package is not None:
        return _made(_reader(package))
    if not has_runtime():
        raise UsageError(
            "export: this installation of heedful has no runtime for browsers; in its sources, run: make runtime; or: "
            f"npm pack onnxruntime-web@{VERSION}, and add --runtime onnxruntime-web-{VERSION}.tgz"
        )
    folder = files("heedful").joinpath("js", "runtime")
    return WebRuntime(folder.joinpath(STORED[0]).read_text("utf-8"), folder.joinpath(STORED[1]).read_bytes())


def store_runtime(package: Path, folder: Path) -> None:
    """Put the runtime into a folder, with its licence.

    Args:
        package: as for `read_runtime`.

    Raises:
        UsageError: there is no such package.
        FileRefused: a file of the package is missing, or it is of another version.
    """
    runtime = read_runtime(package)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in zip(STORED, (runtime.script.encode(), runtime.wasm, LICENSE.encode()), strict=True):
        (folder / name).write_bytes(content)


def _made(read: Callable[[str], bytes]) -> WebRuntime:
    content: dict[str, bytes] = {}
    for name, expected in _HASHES.items():
        content[name] = read(name)
        if sha256(content[name]).hexdigest() != expected:
            raise FileRefused(f"{name}: is not that of onnxruntime-web {VERSION}; npm pack onnxruntime-web@{VERSION}")
    loader = content[_LOADER].decode().partition(_EXPORT)[0]
    script = content[_SCRIPT].decode().replace(_IMPORT, "ortWasmThreaded").rpartition("\n//# sourceMappingURL")[0]
    return WebRuntime(f"{loader}\n{script}\nexport {{ ort }};\n", gzip.compress(content[_WASM], 9, mtime=0))


def _reader(package: Path) -> Callable[[str], bytes]:
    """Function that reads a file of the package.

    Raises:
        UsageError: there is no such package.
    """
    if not package.exists():
        raise UsageError(f"{package}: no such file or folder; make it with: npm pack onnxruntime-web@{VERSION}")

    def read(name: str) -> bytes:
        try:
            if package.is_dir():
                return (package / name).read_bytes()
            with tarfile.open(package) as archive:
                file = archive.extractfile(f"package/{name}")
                return file.read() if file else b""
        except (OSError, KeyError, tarfile.TarError, EOFError) as error:
            raise FileRefused(f"{package}: {name}: not readable: {error}") from None

    return read


if __name__ == "__main__":
    store_runtime(Path(sys.argv[1]), Path(str(files("heedful").joinpath("js", "runtime"))))
