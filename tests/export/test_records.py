from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from heedful.attention.interface import PreparedKey
from heedful.export.records import flatten, rebuild
from heedful.models.inputs import TokenInputs
from heedful.models.interface import Memory
from tests.models.tiny import CONFIGS, make_model, make_sources


@dataclass(frozen=True)
class _Nested(Memory):
    prepared: PreparedKey
    layers: tuple[tuple[Tensor, ...], ...]
    none: tuple[Tensor, ...] = ()
    size: int = 3


@pytest.mark.wrong_shapes  # any tensor stands for any
def test_names_tell_where_a_tensor_stands():
    lengths, key, one, two = (torch.full((1,), value) for value in range(4))
    record = _Nested(lengths, PreparedKey(key), ((one,), (two, one)))
    flat = flatten(record, "memory")
    assert list(flat) == [
        "memory.lengths",
        "memory.prepared",
        "memory.layers.0.0",
        "memory.layers.1.0",
        "memory.layers.1.1",
    ]
    assert [int(tensor) for tensor in flat.values()] == [0, 1, 2, 3, 2]


@pytest.mark.wrong_shapes  # any tensor stands for any
def test_other_tensors_take_the_same_places():
    record = _Nested(torch.zeros(1), PreparedKey(torch.zeros(1)), ((torch.zeros(1),), (torch.zeros(1),)))
    numbers = iter([torch.tensor([value]) for value in range(5)])
    built = rebuild(record, numbers)
    assert [int(tensor) for tensor in flatten(built, "").values()] == [0, 1, 2, 3]
    assert (built.none, built.size) == ((), 3)
    assert int(next(numbers)) == 4  # no more was taken than was needed


def test_memories_and_states_of_all_models_survive():
    for name in CONFIGS:
        model = make_model(name)
        memory = model.encode(TokenInputs(*make_sources()))
        for record in (memory, model.start(memory, 2)):
            flat = flatten(record, "it")
            again = flatten(rebuild(record, iter(flat.values())), "it")
            assert flat.keys() == again.keys()
            assert all(torch.equal(flat[key], again[key]) for key in flat)
