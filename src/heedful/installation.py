"""Command that installs an optional dependency in the way in which heedful itself was installed."""

import json
import os
import shlex
from pathlib import Path
from typing import Any


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
