"""Workflows of continuous integration, run dry: what they name exists, and their shell lines parse and run."""

import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, Final

import pytest

from heedful.version import __version__
from tests.architecture.package import ROOT

yaml = pytest.importorskip("yaml")
WORKFLOWS: Final = sorted((ROOT / ".github/workflows").glob("*.yml"))
INSTALLED_BY_STEPS: Final = {"pip", "build", "twine", "pytest"}
ON_EVERY_SYSTEM: Final = ("ubuntu-latest", "macos-latest", "windows-latest")


def jobs_of(text: str) -> dict[str, dict[str, Any]]:
    """Jobs of a workflow by name."""
    return yaml.safe_load(text)["jobs"]


def shell_lines(job: dict[str, Any]) -> Iterator[str]:
    """Lines of a job that a shell runs."""
    for step in job["steps"]:
        yield from step.get("run", "").splitlines()


def faults(text: str) -> list[str]:
    """Names in a workflow that nothing has."""
    jobs = jobs_of(text)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    missing: list[str] = []
    for name, job in jobs.items():
        needs = job.get("needs", [])
        missing += [
            f"{name}: job {need}" for need in ([needs] if isinstance(needs, str) else needs) if need not in jobs
        ]
        matrix = job.get("strategy", {}).get("matrix", {})
        used = re.findall(r"\$\{\{ *matrix\.(\w+) *\}\}", yaml.safe_dump(job))
        missing += [f"{name}: matrix.{key}" for key in used if key not in matrix]
        missing += [f"{name}: {step['uses']}" for step in job["steps"] if "@" not in step.get("uses", "@")]
        for line in shell_lines(job):
            words = shlex.split(line)
            missing += [
                f"{name}: extra {each}"
                for part in re.findall(r"\[([\w,]+)\]", line)
                for each in part.split(",")
                if each not in extras
            ]
            if words[:1] == ["make"]:
                missing += [f"{name}: make {word}" for word in words[1:] if word not in targets]
            elif words[:2] == ["python", "-m"]:
                missing += [f"{name}: module {words[2]}"] * (
                    words[2] not in INSTALLED_BY_STEPS and find_spec(words[2]) is None
                )
            elif words[:1] == ["python"]:
                missing += [f"{name}: {words[1]}"] * (words[1] != "-c" and not (ROOT / words[1]).is_file())
    return missing


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_what_a_workflow_names_exists(workflow: Any):
    assert faults(workflow.read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("make lint", "make lnt"),
        ("train,serve,onnx,dev", "train,serve,onxn,dev"),
        ("python -m pytest", "python -m pytset"),
        ("matrix.system }}", "matrix.sytem }}"),
    ],
)
def test_a_misspelt_name_is_noticed(before: str, after: str):
    text = (ROOT / ".github/workflows/tests.yml").read_text("utf-8")
    assert before in text
    assert len(faults(text.replace(before, after))) == 1


def test_tests_run_on_three_systems():
    assert jobs_of((ROOT / ".github/workflows/tests.yml").read_text("utf-8"))["test"]["strategy"]["matrix"][
        "system"
    ] == [*ON_EVERY_SYSTEM]


@pytest.mark.skipif(os.name == "nt", reason="the step runs in a shell of Unix")
@pytest.mark.parametrize(("tag", "code"), [(f"v{__version__}", 0), ("v0.0.1", 1)])
def test_a_release_is_of_the_version_that_its_tag_names(tag: str, code: int):
    steps = jobs_of((ROOT / ".github/workflows/release.yml").read_text("utf-8"))["build"]["steps"]
    (step,) = [step for step in steps if step.get("name") == "The tag is the version"]
    done = subprocess.run(
        ["bash", "-ec", step["run"]], cwd=ROOT, env={**os.environ, "GITHUB_REF_NAME": tag}, check=False
    )
    assert done.returncode == code


def test_each_system_and_version_tries_a_release_as_make_does():
    job = jobs_of((ROOT / ".github/workflows/release.yml").read_text("utf-8"))["try"]
    lines = [*shell_lines(job)]
    assert lines == ["python -m tests.prove.prove_release --built python"]
    used = [step["uses"].partition("@")[0] for step in job["steps"] if "uses" in step]
    assert used == ["actions/checkout", "actions/setup-python", "actions/download-artifact"]  # dist/ after the sources
    assert job["strategy"]["matrix"] == {"system": [*ON_EVERY_SYSTEM], "python": ["3.11", "3.12", "3.13", "3.14"]}


def test_the_site_is_checked_between_its_building_and_its_publication():
    steps = jobs_of((ROOT / ".github/workflows/docs.yml").read_text("utf-8"))["build"]["steps"]
    done = [step.get("run", step.get("uses", "")).strip() for step in steps]
    assert done[-3:-1] == ["python docs/make_site.py", "python -m tests.prove.prove_site --links"]
    assert done[-1].startswith("actions/upload-pages-artifact@")


def hooks() -> list[dict[str, Any]]:
    """Hooks of pre-commit."""
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    return local["hooks"]


def test_hooks_before_a_commit_run_on_every_system_with_the_pinned_tools():
    pinned = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    for hook in hooks():
        assert hook["language"] == "python"
        assert hook["entry"].startswith("python -"), "a path in .venv differs between systems"
        assert {*hook["additional_dependencies"]} <= {*pinned}
    assert [hook["id"] for hook in hooks()] == ["format", "lint", "imports"]


def test_only_the_step_that_publishes_may_identify_itself():
    """Publishing is trusted: no job has a token, and none but that of the last step may ask for one."""
    jobs = jobs_of((ROOT / ".github/workflows/release.yml").read_text("utf-8"))
    assert [name for name, job in jobs.items() if job.get("permissions", {}).get("id-token") == "write"] == ["publish"]
    assert jobs["publish"]["needs"] == "try"
    assert not any("secrets." in path.read_text("utf-8") for path in WORKFLOWS)
