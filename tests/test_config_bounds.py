"""Bounds of every number of every configuration: what passes can be computed with, or is at least a number."""

import math
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from annotated_types import Ge, Gt, Le, Lt

from heedful.config.base import Config, _config_classes, validate
from heedful.errors import ConfigError
from heedful.export.marian import MarianSettings
from heedful.models.luong import LuongConfig
from heedful.models.table import MODELS
from heedful.tasks.experiment import Experiment
from heedful.text.word2vec import Word2VecConfig


def _fields(config: type[Config]) -> Iterator[tuple[str, Any]]:
    for name, info in config.model_fields.items():
        inner = _config_classes(info.annotation)
        for each in inner:
            yield from _fields(each)
        if not inner and ({int, float} & {info.annotation, *get_args(info.annotation)}):
            yield f"{config.__name__}.{name}", info


CONFIGS = [Experiment, MarianSettings, Word2VecConfig, *MODELS.values()]
FIELDS = dict(field for config in CONFIGS for field in _fields(config))


@pytest.mark.parametrize("name", FIELDS)
def test_every_number_has_an_upper_and_a_lower_bound(name: str):
    bounds = FIELDS[name].metadata
    assert any(isinstance(each, Ge | Gt) for each in bounds), "no lower bound"
    assert any(isinstance(each, Le | Lt) for each in bounds), "no upper bound"


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1e300, 10**30])
def test_numbers_that_are_none_are_refused(value: float):
    with pytest.raises(ConfigError, match=r"model\.init_range"):
        validate(LuongConfig, {"init_range": value}, "model")
    with pytest.raises(ConfigError, match=r"model\.hidden_size"):
        validate(LuongConfig, {"hidden_size": value}, "model")
