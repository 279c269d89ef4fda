"""Proof that a training goes on with the data that it began with."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from heedful.errors import DataError
from heedful.files import written_whole
from heedful.formats import DATA_FORMAT

FINGERPRINTS: Final = "run/data.json"


def claim_data(folder: Path, fingerprints: Mapping[str, Any], is_begun: bool) -> None:
    """Note the data of a training in its folder, or refuse other data than the training began with.

    Args:
        folder: the model's.
        fingerprints: of each part of the data, as JSON can hold them.
        is_begun: whether anything was trained in the folder.

    Raises:
        DataError: the data changed.
    """
    path = folder / FINGERPRINTS
    if not is_begun:
        # What a refused or interrupted try left of other data or settings must not be used.
        shutil.rmtree(folder / "run" / "data", ignore_errors=True)
        with written_whole(path) as stream:
            json.dump(DATA_FORMAT.stamp(fingerprints), stream, indent=1)
        return
    before, now = DATA_FORMAT.strip(path, json.loads(path.read_text(encoding="utf-8"))), dict(fingerprints)
    if changed := sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name)):
        raise DataError(
            f"{folder}: was trained on other data ({', '.join(changed)} changed); "
            "choose another --out, or delete the folder to start over"
        )
