"""What a kernel knows of a score: how query-key pairs make numbers, without the parameters that made them."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class DotPairs:
    """scores[i, j] = query[i] . key[j]; scale and temperature are folded into `query`."""

    query: Tensor
    """[*batch, query, depth]"""
    key: Tensor
    """[*batch, key, depth]"""


@dataclass(frozen=True)
class AdditivePairs:
    """scores[i, j] = vector . tanh(query[i] + key[j]); temperature is folded into `vector`."""

    query: Tensor
    """[*batch, query, hidden]"""
    key: Tensor
    """[*batch, key, hidden]"""
    vector: Tensor
    """[hidden]"""


Pairs = DotPairs | AdditivePairs
