"""Generated files of a demonstration, in the folder of its training run."""

from collections.abc import Mapping
from pathlib import Path

from heedful.errors import UsageError
from heedful.files.atomic_write import atomic_write


def write_examples(out: Path, texts: Mapping[str, str], noun: str) -> list[Path]:
    """Write files into the run's folder, unless they are there already.

    Args:
        out: the model's folder.
        texts: content of each file, by name.

    Returns:
        The paths, in the order of `texts`.

    Raises:
        UsageError: the folder holds files of another run, or another process is training in it.
    """
    from heedful.data.same_data import has_begun
    from heedful.engines.folder import claim
    from heedful.training.lock import locked

    folder = out / "run"
    claim(out)
    with locked(folder):
        for name, text in texts.items():
            path = folder / name
            if path.is_file() and path.read_bytes() == text.encode():
                continue
            if has_begun(out):
                raise UsageError(f"{out}: holds a training on other {noun}; choose another --out")
            with atomic_write(path) as stream:
                stream.write(text)
    return [folder / name for name in texts]
