"""Proof that unmodified clients of LibreTranslate work with the server.

Run it with `make prove-clients`. The clients are installed in a folder of their own from PyPI and npm.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import venv
from pathlib import Path
from shutil import which
from typing import Final

from tests.prove import serving_attacks as attacks

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
    for line in lines:
        print(line.replace("\t", ": "))
    if not which("node"):
        print("npm: skipped, there is no Node.js here")
    return len(lines) >= 7 and all(line.endswith("\tright") for line in lines)


def main() -> int:
    """Install the clients and run them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, default=Path("build/clients"))
    folder = parser.parse_args().folder.resolve()
    install(folder)
    return 0 if asyncio.run(prove_clients(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
