"""The checks of shapes are on, see a wrong shape of an argument or a result, and leave other functions as they are."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from jaxtyping import Float, TypeCheckError
from torch import Tensor

from heedful.attention.dispatch import attend
from heedful.attention.scores import Dot
from heedful.layers.feedforward import FeedForward
from tests.shapes import annotated_modules, check_shapes, has_shape, install

TOY = """
from jaxtyping import Float
from torch import Tensor

def transposed(scores: Float[Tensor, "query key"]) -> Float[Tensor, "key query"]:
    return scores.T

def wrongly_transposed(scores: Float[Tensor, "query key"]) -> Float[Tensor, "query key"]:
    return scores.T

def plain(number: int) -> str:
    return number
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "toy_of_shapes.py").write_text(TOY, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    finder = install(["toy_of_shapes"])
    yield importlib.import_module("toy_of_shapes")
    sys.meta_path.remove(finder)
    del sys.modules["toy_of_shapes"]


def test_a_result_of_the_wrong_shape_is_caught(toy: Any):
    scores = torch.zeros(2, 3)
    assert toy.transposed(scores).shape == (3, 2)
    with pytest.raises(TypeCheckError, match=r"return value of toy_of_shapes.wrongly_transposed"):
        toy.wrongly_transposed(scores)
    with pytest.raises(TypeCheckError, match=r"parameters of toy_of_shapes.transposed"):
        toy.transposed(torch.zeros(2))


@pytest.mark.wrong_shapes
def test_a_marker_leaves_them_unchecked(toy: Any):
    assert toy.wrongly_transposed(torch.zeros(2, 3)).shape == (3, 2)


def test_other_annotations_are_not_checked(toy: Any):
    assert toy.plain(3) == 3
    assert not hasattr(toy.plain, "__wrapped__")

    def plain(number: int) -> str:
        return str(number)

    assert check_shapes(plain) is plain


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (Float[Tensor, "query key"], True),
        (Float[Tensor, "query key"] | None, True),
        (tuple[Float[Tensor, " query"], int], True),
        (Tensor, False),
        (int | None, False),
        (Callable[[Tensor], Tensor], False),
    ],
)
def test_shapes_are_found_in_annotations(hint: object, expected: bool):
    assert has_shape(hint) == expected


def test_they_are_on_for_attention_and_layers():
    modules = annotated_modules()
    assert {"heedful.attention.dispatch", "heedful.attention.interface", "heedful.layers.multihead"} <= {*modules}
    query = torch.zeros(2, 3, 4)
    with pytest.raises(TypeCheckError, match=r"parameters of heedful.attention.dispatch.attend"):
        attend(query, torch.zeros(2, 5, 4), torch.zeros(2, 6, 4), score=Dot(4, 4))
    with pytest.raises(TypeCheckError, match="FeedForward"):
        FeedForward(4, 8)(torch.zeros(2, 3, 4, dtype=torch.int64))
