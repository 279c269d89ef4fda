"""Convert the formulas of the manual to MathML, so that its offline pages need no converter: `docs/formulas.json`.

`python docs/make_formulas.py` after a formula has changed; with `--check` it lists what is stale, and writes nothing.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from heedful.pages.manual import DOCUMENTS, FORMULA

FOLDER: Final = Path(__file__).resolve().parent
OUT: Final = FOLDER / "formulas.json"


def converted() -> str:
    """MathML of every formula by its TeX, as the file holds it."""
    sys.path.insert(0, str(FOLDER / "site"))
    display = import_module("hooks").display
    paths = (FOLDER / f"{name}{suffix}.md" for name in DOCUMENTS for suffix in ("", ".zh"))
    texts = (path.read_text(encoding="utf-8") for path in paths if path.is_file())
    sources = sorted({source for text in texts for source in FORMULA.findall(text)})
    return json.dumps({source: display(source) for source in sources}, ensure_ascii=False, indent=1) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the file, or tell whether it is stale.

    Returns:
        The exit code: 1 if something is stale, else 0.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="tell whether the file is stale, and write nothing")
    text = converted()
    if parser.parse_args(arguments).check:
        is_stale = not OUT.is_file() or OUT.read_text(encoding="utf-8") != text
        print(f"{OUT}: stale; run python docs/make_formulas.py" * is_stale)
        return int(is_stale)
    OUT.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
