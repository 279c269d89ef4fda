"""One class and one line in the table are a new score: the contracts find it there, as the list and the page do.

That `heedful list` and docs/attention.md find it too: tests/architecture/test_attention_page.py.
"""

from typing import final

import pytest
import torch
from torch import Tensor, nn

from heedful.attention.interface import PreparedKey, Score
from heedful.attention.lowered import LoweredDot
from heedful.attention.scores import SCORES
from tests.contracts.table import CONTRACTS, Contract
from tests.contracts.ways import Combination, Way, supported, ways


@final
class Diagonal(Score):
    """a(q, k) = sum_i w_i q_i k_i, w [size]: a bilinear score whose matrix is diagonal."""

    def __init__(self, query_size: int, key_size: int, hidden_size: int = 0) -> None:
        # As large as the smaller one, so that the table's sizes may differ.
        super().__init__(query_size, key_size, hidden_size)
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, min(query_size, key_size)))

    def prepare(self, key: Tensor) -> PreparedKey:
        return PreparedKey(key[..., : len(self.weight)])

    def lower(self, query: Tensor, prepared: PreparedKey, inverse_temperature: Tensor | float = 1.0) -> LoweredDot:
        return LoweredDot(query[..., : len(self.weight)] * self.weight * inverse_temperature, prepared.key)


@final
class Crowded(Score):
    """a(q, k_j) = q . (k_j * mean_i |k_i|): wrong, for keys that are masked change the scores of others."""

    def __init__(self, query_size: int, key_size: int, hidden_size: int = 0) -> None:
        super().__init__(query_size, key_size, hidden_size)

    def prepare(self, key: Tensor) -> PreparedKey:
        size = min(self.query_size, self.key_size)
        return PreparedKey(key[..., :size] * key[..., :size].abs().mean(dim=-2, keepdim=True))

    def lower(self, query: Tensor, prepared: PreparedKey, inverse_temperature: Tensor | float = 1.0) -> LoweredDot:
        return LoweredDot(query[..., : prepared.key.shape[-1]] * inverse_temperature, prepared.key)


def asked() -> dict[Contract, list[tuple[Way, Combination]]]:
    """What the contracts ask of the score `novel`: each of every kernel that takes it, in one combination."""
    taken = [(way, each) for way in ways() for each in supported(way) if each.score == "novel"]
    found: dict[Contract, dict[Way, Combination]] = {contract: {} for contract in CONTRACTS}
    for contract, combinations in found.items():
        for way, each in taken:
            if contract.applies(each):
                combinations.setdefault(way, each)
    return {contract: [*combinations.items()] for contract, combinations in found.items()}


def check(contract: Contract, found: list[tuple[Way, Combination]]) -> None:
    for way, combination in found:
        with torch.set_grad_enabled(contract.has_gradients):
            contract.check(way, combination)


def test_the_contracts_find_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(SCORES, "novel", Diagonal)
    for contract, found in asked().items():
        assert {"plain", "sdpa"} <= {way.kernel for way, _ in found} or len(found) > 2, contract
        check(contract, found)


def test_a_wrong_one_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(SCORES, "novel", Crowded)

    def keep_all() -> None:
        for contract, found in asked().items():
            check(contract, found)

    with pytest.raises(AssertionError):
        keep_all()
