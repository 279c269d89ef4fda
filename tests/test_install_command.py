"""Install hints name what was installed: a folder, a wheel, a repository, or heedful from the package index."""

import json
import re
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from heedful import errors as installation
from heedful.errors import MissingExtra, _of_program_runner, install_command
from tests.architecture.package import ROOT

REQUIREMENTS = ["numpy>=2.1", "torch>=2.11; extra == 'train'", 'numba>=0.63; extra == "train"', "ray; extra == 'ray'"]


class Installed:
    """Distribution with these files beside its metadata."""

    requires = REQUIREMENTS

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files

    def read_text(self, name: str) -> str | None:
        return self._files.get(name)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    def record(direct_url: dict[str, Any] | None, installer: str = "pip\n") -> None:
        files = {"INSTALLER": installer} | ({"direct_url.json": json.dumps(direct_url)} if direct_url else {})
        monkeypatch.setattr(metadata, "distribution", lambda name: Installed(files))

    return record


def test_from_an_index(install: Any):
    install(None)
    assert install_command("train") == "pip install 'heedful[train]'"
    assert install_command() == "pip install heedful"
    install(None, "uv")
    assert install_command("train") == "uv pip install 'heedful[train]'"


def test_from_a_folder(install: Any, tmp_path: Path):
    folder = tmp_path / "with space"
    folder.mkdir()
    install({"url": folder.as_uri(), "dir_info": {"editable": True}})
    assert install_command("gpu") == f"pip install --editable '{folder}[gpu]'"
    install({"url": folder.as_uri(), "dir_info": {}})
    assert install_command("gpu") == f"pip install '{folder}[gpu]'"


def test_from_a_wheel(install: Any, tmp_path: Path):
    wheel = tmp_path / "heedful-0.1.0-py3-none-any.whl"
    wheel.touch()
    install({"url": wheel.as_uri(), "archive_info": {}})
    assert install_command("train") == f"pip install '{wheel}[train]'"
    wheel.unlink()
    assert install_command("train") == "pip install 'torch>=2.11' 'numba>=0.63'"
    assert install_command() == "pip install 'numpy>=2.1'"


@pytest.mark.parametrize(
    ("facts", "address"),
    [
        ({"url": "https://host/heedful.whl", "archive_info": {}}, "https://host/heedful.whl"),
        (
            {"url": "https://host/heedful.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "git+https://host/heedful.git@abc",
        ),
        (
            {"url": "ssh://host/h", "vcs_info": {"vcs": "git", "commit_id": "abc", "requested_revision": "main"}},
            "git+ssh://host/h@main",
        ),
    ],
)
def test_from_elsewhere(install: Any, facts: dict[str, Any], address: str):
    install(facts)
    assert install_command("train") == f"pip install 'heedful[train] @ {address}'"


def test_sources_that_were_never_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    folder = Path(installation.__file__).parents[2]
    assert install_command("train") == f"pip install --editable '{folder}[train]'"
    monkeypatch.setattr(installation, "__file__", str(tmp_path / "site" / "heedful" / "errors.py"))
    assert install_command("train") == "pip install 'heedful[train]'"


def test_a_missing_extra_says_the_command():
    assert str(MissingExtra("gensim", "vectors", "this")) == f"this needs gensim: {install_command('vectors')}"


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("/home/me/.local/share/pipx/venvs/heedful", "pipx install --force 'heedful[train]'"),
        ("/home/me/.local/share/pipx/.cache/0f3a", "pipx run --spec 'heedful[train]' heedful"),
        ("/home/me/.local/share/uv/tools/heedful", "uv tool install 'heedful[train]'"),
        ("/home/me/.cache/uv/archive-v0/x1", "uvx --from 'heedful[train]' heedful"),
        ("/home/me/uv/project/.venv", ""),
    ],
)
def test_tools_that_run_programs_have_their_own_command(prefix: str, command: str):
    assert _of_program_runner(Path(prefix), "heedful[train]") == command


@pytest.mark.parametrize("name", ["README.md", "README.zh.md", "docs/start.md", "docs/start.zh.md"])
def test_pages_begin_with_the_same_commands(install: Any, name: str):
    text = (ROOT / name).read_bytes().decode("utf-8")
    install(None)
    runner = _of_program_runner(Path("/home/me/.local/share/pipx/.cache/0f3a"), "heedful[train]")
    lines = [install_command(), install_command("train").removesuffix("]'"), f"{runner} demo"]
    places = [text.find(line) for line in lines]
    assert min(places) > 0
    assert max(places) < text.find("heedful translate")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert {extra for named in re.findall(r"heedful\[([\w,]+)\]", text) for extra in named.split(",")} <= {*extras}
