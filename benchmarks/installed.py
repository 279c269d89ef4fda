"""Megabytes that heedful takes installed, without PyTorch, and which packages take most.

    python benchmarks/installed.py [--extras onnx,serve]

Installs this checkout into a fresh virtual environment, by pip and from where pip is set up to install from.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def megabytes(path: Path, but: str = "") -> float:
    if path.is_file():
        return path.stat().st_size / 1e6
    return sum(each.stat().st_size for each in path.rglob("*") if each.is_file() and each.suffix != (but or "/")) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extras", default="")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        environment = Path(temporary) / "environment"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
        what = f"{ROOT}[{given.extras}]" if given.extras else str(ROOT)
        pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), "install", "--quiet"]
        subprocess.run([*pip, what], check=True)
        (packages,) = environment.glob("lib/python3*/site-packages")
        if (packages / "torch").exists():
            raise SystemExit("PyTorch was installed")
        whole, lean = megabytes(packages), megabytes(packages, but=".pyc")
        print(f"{what}: {whole:.0f} MB, {lean:.0f} MB of it without compiled bytecode")
        for path in sorted(packages.iterdir(), key=megabytes, reverse=True)[:10]:
            print(f"  {path.name:24} {megabytes(path):6.1f} MB")


if __name__ == "__main__":
    main()
