"""Proof that unmodified clients of LibreTranslate, Hugging Face Inference and OpenAI work with the server.

Run it with `make prove-clients`. The clients are installed in a folder of their own from PyPI and npm.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from shutil import which
from typing import Any, Final

from heedful.predictors.answerer import Answerer
from heedful.predictors.captioner import Captioner
from heedful.predictors.classifier import Classifier
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.text.stories import Story
from tests.cli.conftest import Trained
from tests.prove import serving_attacks as attacks
from tests.serving.task_models import TaskModels, train_task_models

PACKAGES: Final = (
    "libretranslatepy==2.1.4",
    "libretranslate-aio==0.1.3",
    "deep-translator==1.11.4",
    "transpolibre==0.8.15",
    "wagtail-localize==1.14.5",
    "Weblate==5.14.3",
)
NEEDED: Final = (
    "requests",
    "httpx",
    "beautifulsoup4",
    "polib",
    "python-dotenv",
    "pycmarkgfm",
    "Django>=5.2,<6",
    "huggingface_hub==2.4.0",
    "openai==3.57.0",
    "numpy",
)
"""What these need to send requests; the rest of Wagtail and Weblate takes long to install, and is not used."""
NPM_PACKAGES: Final = ("libretranslate@1.0.1", "translate@3.1.0")
HERE: Final = Path(__file__).parent / "clients"


def install(folder: Path) -> None:
    """Install the clients, where they are not installed yet."""
    if not (folder / "bin" / "python").exists():
        venv.create(folder, with_pip=True)
    pip = (str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    subprocess.run([*pip, *NEEDED], check=True)
    subprocess.run([*pip, "--no-deps", *PACKAGES], check=True)
    if which("npm") and not (folder / "node_modules").exists():
        subprocess.run(["npm", "install", "--prefix", str(folder), "--silent", *NPM_PACKAGES], check=True)


def trained_models(folder: Path) -> tuple[TaskModels, Path]:
    """Small models of every task, trained on the first call."""
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        train_task_models(folder)
        Trained(folder)
        (folder / "done").touch()
    names = ("reviews", "stories", "notices", "scenes")
    return TaskModels(*(folder / f"{name}.model" for name in names)), folder / "words.model"


def known_results(models: TaskModels, translation: Path) -> dict[str, Any]:
    """What the models say in Python."""
    classifier, finder = load(models.classifier, kind=Classifier), load(models.finder, kind=Answerer)
    text, context, question = "A clean room. Rude staff.", "Ada went to the attic and slept.", "Where did Ada go?"
    picture = min((models.captioner.parent / "scenes").glob("*.png"))
    return {
        "classifier": {
            "model": models.classifier.name,
            "text": text,
            "labels": [*classifier.classify([text])[0].probabilities.items()],
            "vector": classifier.encode([text])[0].tolist(),
        },
        "finder": {
            "model": models.finder.name,
            "context": context,
            "question": question,
            "answer": finder.answer([Story((context,), question)])[0].answer,
        },
        "captioner": {
            "model": models.captioner.name,
            "path": str(picture),
            "caption": load(models.captioner, kind=Captioner).caption([picture])[0].text,
        },
        "translator": {
            "model": translation.name,
            "text": "fade cab",
            "output": load(translation, kind=Translator).translate(["fade cab"])[0].text,
        },
    }


async def prove_task_clients(folder: Path) -> list[str]:
    """Run the clients of all tasks against `heedful serve`.

    Returns:
        A line for each client.
    """
    models, translation = trained_models(folder / "models")
    expected = folder / "expected.json"
    expected.write_text(json.dumps(known_results(models, translation)), encoding="utf-8")
    words = ["serve", *map(str, (*models, translation)), "--port", "0", "--api-key", "secret"]
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "heedful", *words, stderr=asyncio.subprocess.PIPE
    )
    assert server.stderr is not None
    try:
        line = ""
        while "serving on" not in line:
            line = (await server.stderr.readline()).decode()
            assert line, "the server has ended"
        url = line.split()[2]
        surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        program = (str(folder / "bin" / "python"), str(HERE / "task_clients.py"), url, str(expected))
        process = await asyncio.create_subprocess_exec(*program, stdout=subprocess.PIPE, env=surroundings)
        output, _ = await process.communicate()
        return output.decode("utf-8").splitlines()
    finally:
        server.terminate()
        await server.wait()


async def prove_clients(folder: Path) -> bool:
    """Run every client against a server that needs a key, and print what came of each."""
    lines: list[str] = []
    async with attacks.running(api_key="secret") as server:
        url = f"http://127.0.0.1:{server.port}"
        programs = [(str(folder / "bin" / "python"), str(HERE / "python_clients.py"), url)]
        if which("node"):
            programs.append(("node", str(HERE / "javascript_clients.mjs"), url, str(folder)))
        surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        for program in programs:
            process = await asyncio.create_subprocess_exec(*program, stdout=subprocess.PIPE, env=surroundings)
            output, _ = await process.communicate()
            lines += output.decode("utf-8").splitlines()
    lines += await prove_task_clients(folder)
    for line in lines:
        print(line.replace("\t", ": "))
    if not which("node"):
        print("npm: skipped, there is no Node.js here")
    return len(lines) >= 14 and all(line.endswith("\tright") for line in lines)


def main() -> int:
    """Install the clients and run them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, default=Path("build/clients"))
    folder = parser.parse_args().folder.resolve()
    install(folder)
    return 0 if asyncio.run(prove_clients(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
