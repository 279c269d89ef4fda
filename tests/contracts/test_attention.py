"""Every score, mask and normalizer keeps the contracts on every kernel, whole and in tiles.

That contracts refuse what is wrong: test_attention_planted.py.
"""

import random
from collections.abc import Sequence
from functools import cache

import pytest
import torch
from _pytest.mark import ParameterSet

from heedful.attention.dispatch import KERNELS
from heedful.attention.normalizers import NORMALIZERS
from heedful.attention.scores import SCORES
from tests.attention.cases import MASKS
from tests.attention.kernels.interpreter import DEVICE, quiet
from tests.contracts.nonfinite import hidden_nan_and_infinity_reach_nothing
from tests.contracts.table import CONTRACTS, Contract
from tests.contracts.ways import Combination, Way, covering, supported, ways
from tests.thorough import sampled, thorough


@cache
def few(contract: Contract, way: Way) -> list[Combination]:
    """Combinations in which everything occurs once that a contract is asked of a kernel."""
    return covering([each for each in cached(way) if contract.applies(each)], 1)


def kept(contract: Contract, way: Way) -> list[Combination]:
    """What a contract is asked of a kernel: few combinations, in which everything occurs that the kernel takes."""
    if "triton" in way.kernel and DEVICE != "cpu" and contract.check is hidden_nan_and_infinity_reach_nothing:
        return []  # numbers are not looked at on a device, as `attend` says
    candidates = [each for each in cached(way) if contract.applies(each)]
    # Pairs of masks and normalizers are the driver's business, which tries them with plain scores; in the interpreter
    # the same scores take a thousand times as long.
    is_seen = way.is_tiled or way.kernel == "additive_triton"
    if contract.is_crossed and not is_seen:
        pairs = {(each.score, each.normalizer): each for each in random.Random(0).sample(candidates, len(candidates))}
        return [*pairs.values(), *few(contract, way)]
    return covering(candidates, 1 if is_seen else contract.strength)


cached = cache(supported)
PLAIN_TILES = Way("plain", is_tiled=True)
KEPT = [(contract, way, each) for contract in CONTRACTS for way in ways() for each in kept(contract, way)]


def asked(contract: Contract, way: Way) -> list[Combination]:
    """What the gate asks of a kernel: crossed combinations take minutes, and of dear contracts every mask does too."""
    candidates = [each for each in cached(way) if contract.applies(each)]
    return covering(candidates, 1, (0, 2)) if contract.is_dear else few(contract, way)


def case(contract: Contract, way: Way) -> ParameterSet:
    marks = [quiet] if "triton" in way.kernel else []
    # Tiles of the window are those of the plain kernel, and of dear contracts one of the two is enough.
    return pytest.param(contract, way, marks=[*marks, thorough] if contract.is_dear and way == PLAIN_TILES else marks)


def check(contract: Contract, way: Way, combinations: Sequence[Combination]) -> None:
    for combination in combinations:
        torch.manual_seed(0)
        try:
            with torch.set_grad_enabled(contract.has_gradients):
                contract.check(way, combination)
        except Exception as error:
            error.add_note(f"in {combination}")
            raise


PAIRS = [(contract, way) for contract in CONTRACTS for way in ways() if kept(contract, way)]


@sampled(3)
@pytest.mark.parametrize(("contract", "way"), [case(*each) for each in PAIRS], ids=str)
def test_kept(contract: Contract, way: Way):
    check(contract, way, kept(contract, way) if not (contract.is_crossed or contract.is_dear) else asked(contract, way))


@thorough
@pytest.mark.parametrize(
    ("contract", "way"), [case(*each) for each in PAIRS if each[0].is_crossed or each[0].is_dear], ids=str
)
def test_kept_by_all(contract: Contract, way: Way):
    check(contract, way, [each for each in kept(contract, way) if each not in asked(contract, way)])


@pytest.mark.parametrize("contract", CONTRACTS, ids=str)
def test_nothing_is_left_out(contract: Contract):
    tried = [(way, each) for one, way, each in KEPT if one is contract]
    possible = [(way, each) for way in ways() for each in cached(way) if contract.applies(each)]
    for part in range(3):
        assert {each[part] for _, each in tried} == {each[part] for _, each in possible}
    assert {way.kernel for way, _ in tried} == {way.kernel for way, _ in possible}


def test_every_entry_of_the_tables_is_tried():
    tried = [each for _, _, each in KEPT]
    assert {each.score for each in tried} == set(SCORES)
    assert {each.normalizer for each in tried} == set(NORMALIZERS)
    assert {each.mask for each in tried} == set(MASKS)


def test_every_kernel_is_tried():
    if missing := {kernel.name for kernel in KERNELS} - {way.kernel for _, way, _ in KEPT}:
        pytest.skip(f"take nothing on this machine: {', '.join(sorted(missing))}")
