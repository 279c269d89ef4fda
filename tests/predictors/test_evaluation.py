"""`heedful.evaluate`: a path or an opened model, with data of every kind that training takes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heedful
from heedful.errors import DataError, UsageError
from tests.tasks.reviews import reviews, write_reviews
from tests.tasks.test_classification import Run


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluated")
    Run(write_reviews(folder / "reviews.tsv"), folder / "m", "training.max_steps=20", preset="bag").train()
    return folder / "m"


def test_data_of_every_kind_have_the_same_scores(model: Path):
    pairs = list(reviews(20, 5))
    texts, labels = map(list, zip(*pairs, strict=True))
    opened: Any = heedful.load(model)
    wanted = opened.evaluate(pairs).to_dict()
    rows = [{"text": text, "label": label} for text, label in pairs]
    for data in ((pairs,), (texts, labels), ((texts, labels),), (np.array(pairs),), (rows,), (model.parent / "d.tsv",)):
        if isinstance(data[0], Path):
            data[0].write_text("".join(f"{text}\t{label}\n" for text, label in pairs), encoding="utf-8")
        assert heedful.evaluate(opened, *data).to_dict() == wanted
    assert heedful.evaluate(model, rows, columns=("text", "label"), device="cpu").to_dict() == wanted


def test_what_cannot_be_evaluated_is_refused(model: Path, tmp_path: Path):
    with pytest.raises(UsageError, match="no data given"):
        heedful.evaluate(model)
    with pytest.raises(DataError, match="row 1"):
        heedful.evaluate(model, [("a", "good"), ("b", None)])
    with pytest.raises(UsageError, match="no such model"):
        heedful.evaluate(tmp_path / "nothing", [("a", "good")])
