"""Fingerprints that keep a training from resuming with other data."""

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
    """Record the fingerprints of a training's data, or refuse data that differ from the recorded ones.

    Args:
        folder: the model folder.
        fingerprints: JSON values by part of the data.
        is_begun: whether training has begun in the folder.

    Raises:
        DataError: the data changed.
    """
    path = folder / FINGERPRINTS
    if not is_begun:
        # Remains of a refused or interrupted attempt with other data must not be used.
        shutil.rmtree(folder / "run" / "data", ignore_errors=True)
        with written_whole(path) as stream:
            json.dump(DATA_FORMAT.stamp(fingerprints), stream, indent=1)
        return
    before, now = DATA_FORMAT.strip(path, json.loads(path.read_text(encoding="utf-8"))), dict(fingerprints)
    if changed := sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name)):
        raise DataError(
            f"{folder}: trained on other data ({', '.join(changed)} changed); "
            "choose another --out, or delete the folder to start over"
        )
