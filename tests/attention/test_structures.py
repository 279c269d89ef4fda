"""Distributions over chains and trees against the enumeration of all structures, in float64."""

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from heedful.attention.structured_tree import projective_tree_marginals
from heedful.attention.structures import ChainDistribution, TreeDistribution
from heedful.errors import ShapeError, UsageError
from tests.attention.test_structured_tree import projective_trees

Structure = tuple[int, ...]
Distribution = ChainDistribution | TreeDistribution
NUM_SAMPLES = 20_000


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def chain_scores(chain: ChainDistribution) -> dict[Structure, float]:
    """Score of every sequence of one chain, which has no batch axis; -1 at masked positions."""
    num_positions, num_states = chain.unary.shape
    allowed = [True] * num_positions if chain.allowed is None else chain.allowed.tolist()
    start, stop = (torch.zeros(num_states) if end is None else end for end in (chain.start, chain.stop))
    scores: dict[Structure, float] = {}
    for states in itertools.product(range(num_states), repeat=sum(allowed)):
        remaining = iter(states)
        sequence = tuple(next(remaining) if here else -1 for here in allowed)
        positions = [position for position, here in enumerate(allowed) if here]
        total = sum(float(chain.unary[position, sequence[position]]) for position in positions)
        for one, two in itertools.pairwise(positions):
            table = chain.transition
            if table.dim() > 2:
                table = table[0 if len(table) == 1 else two - 1]
            total += float(table[sequence[one], sequence[two]])
        if positions:
            total += float(start[sequence[positions[0]]]) + float(stop[sequence[positions[-1]]])
        scores[sequence] = total
    return scores


def tree_scores(tree: TreeDistribution) -> dict[Structure, float]:
    """Score of every tree of one sentence, which has no batch axis, as heads of all nodes."""
    num_nodes = len(tree.scores)
    num_words = num_nodes - 1 if tree.lengths is None else int(tree.lengths)
    padding = (-1,) * (num_nodes - 1 - num_words)
    return {
        (-1, *heads, *padding): sum(float(tree.scores[head, word]) for word, head in enumerate(heads, start=1))
        for heads in projective_trees(num_words)
        if not tree.is_single_root or num_words == 0 or heads.count(0) == 1
    }


def probabilities(distribution: Distribution) -> dict[Structure, float]:
    """All structures with a probability above 0."""
    chain = isinstance(distribution, ChainDistribution)
    scores = chain_scores(distribution) if chain else tree_scores(distribution)
    total = math.fsum(math.exp(score) for score in scores.values())
    return {structure: math.exp(score) / total for structure, score in scores.items() if score > -math.inf}


TABLE = torch.tensor([[0.4, -1.0, 0.2], [-torch.inf, 0.7, 0.0], [0.3, 0.1, -0.8]], dtype=torch.float64)
ENDS = draw(3, seed=8), draw(3, seed=9)
MASK = torch.tensor([False, True, True, False, True, False])
NOT_ALL = draw(5, 5).masked_fill(torch.rand(5, 5, generator=torch.Generator().manual_seed(4)) < 0.3, -torch.inf)
CASES: Mapping[str, Distribution] = {
    "chain of no position": ChainDistribution(draw(0, 3), TABLE),
    "chain of one position": ChainDistribution(draw(1, 3), TABLE, None, *ENDS),
    "chain of two positions": ChainDistribution(draw(2, 3), TABLE),
    "chain with ends": ChainDistribution(draw(5, 3), TABLE, None, *ENDS),
    "chain with steps of its own": ChainDistribution(draw(5, 3), draw(4, 3, 3, seed=2), None, *ENDS),
    "masked chain": ChainDistribution(draw(6, 3), TABLE, MASK, *ENDS),
    "masked chain with steps of its own": ChainDistribution(draw(6, 3), draw(5, 3, 3, seed=2), MASK, *ENDS),
    "chain masked whole": ChainDistribution(draw(3, 3), TABLE, torch.zeros(3, dtype=torch.bool)),
    "chain of one state": ChainDistribution(draw(3, 1), torch.zeros(1, 1, dtype=torch.float64)),
    "binary chain": ChainDistribution(torch.stack([torch.zeros(7), draw(7)], -1).double(), draw(2, 2, seed=5)),
    "tree over no word": TreeDistribution(draw(1, 1)),
    "tree over one word": TreeDistribution(draw(2, 2)),
    "tree over two words": TreeDistribution(draw(3, 3)),
    "tree": TreeDistribution(draw(5, 5)),
    "short tree": TreeDistribution(draw(6, 6), torch.tensor(3)),
    "empty tree": TreeDistribution(draw(4, 4), torch.tensor(0)),
    "tree without some arcs": TreeDistribution(NOT_ALL),
    "tree with a single root": TreeDistribution(draw(5, 5), is_single_root=True),
    "tree over one word with a single root": TreeDistribution(draw(2, 2), is_single_root=True),
    "tree over no word with a single root": TreeDistribution(draw(1, 1), is_single_root=True),
    "short tree with a single root": TreeDistribution(draw(6, 6), torch.tensor(4), is_single_root=True),
    "tree with a single root, without some arcs": TreeDistribution(NOT_ALL, is_single_root=True),
}


@dataclass(frozen=True)
class Answers:
    """Results of a distribution, so that wrong ones can be planted."""

    entropy: Callable[[Distribution], Tensor] = lambda each: each.entropy()
    best: Callable[[Distribution], Tensor] = lambda each: each.best()
    sample: Callable[[Distribution, int], Tensor] = lambda each, number: each.sample(
        number, torch.Generator().manual_seed(1)
    )
    log_prob: Callable[[Distribution, Tensor], Tensor] = lambda each, structures: each.log_prob(structures)


def check_entropy(answers: Answers, case: Distribution) -> None:
    expected = -math.fsum(p * math.log(p) for p in probabilities(case).values())
    assert answers.entropy(case).item() == pytest.approx(expected, abs=1e-12)


def check_best(answers: Answers, case: Distribution) -> None:
    expected = probabilities(case)
    assert expected[tuple(answers.best(case).tolist())] == max(expected.values())


def check_log_prob(answers: Answers, case: Distribution) -> None:
    expected = probabilities(case)
    structures = torch.tensor([*expected], dtype=torch.int64).reshape(len(expected), -1)
    result = answers.log_prob(case, structures)
    torch.testing.assert_close(
        result.exp(), torch.tensor([*expected.values()], dtype=torch.float64), atol=1e-12, rtol=0
    )


def check_samples(answers: Answers, case: Distribution) -> None:
    expected = probabilities(case)
    counts = dict.fromkeys(expected, 0)
    for structure in answers.sample(case, NUM_SAMPLES).tolist():
        counts[tuple(structure)] += 1
    # Pearson's statistic has one degree of freedom less than structures; rare ones are counted together.
    rare = [structure for structure, p in expected.items() if p * NUM_SAMPLES < 5]
    cells = [(counts[each], p) for each, p in expected.items() if p * NUM_SAMPLES >= 5]
    cells.append((sum(counts[each] for each in rare), sum(expected[each] for each in rare)))
    statistic = sum((count - NUM_SAMPLES * p) ** 2 / (NUM_SAMPLES * p) for count, p in cells if p)
    freedom = max(len(cells) - 1, 1)
    assert statistic < freedom + 5 * math.sqrt(2 * freedom) + 10


CHECKS = [check_entropy, check_best, check_log_prob, check_samples]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", CASES)
def test_enumeration_agrees(check: Callable[[Answers, Distribution], None], name: str):
    check(Answers(), CASES[name])


def _heads_of_marginals(case: Distribution) -> Tensor:
    """The best head of each word by itself, or the best state of each position."""
    weights = case.marginals().weights
    return (
        weights.argmax(-1)
        if isinstance(case, ChainDistribution)
        else weights.argmax(-2).index_fill(0, torch.tensor([0]), -1)
    )


def _independent_entropy(case: Distribution) -> Tensor:
    weights = case.marginals().weights
    return -torch.special.xlogy(weights, weights).sum()


def _several_roots(case: Distribution) -> TreeDistribution:
    assert isinstance(case, TreeDistribution)
    return replace(case, is_single_root=False)


def _reversed(case: Distribution) -> TreeDistribution:
    assert isinstance(case, TreeDistribution)
    return replace(case, scores=-case.scores)


def _sharpened(case: Distribution) -> TreeDistribution:
    assert isinstance(case, TreeDistribution)
    return replace(case, scores=1.2 * case.scores)


PLANTED: list[tuple[Callable[[Answers, Distribution], None], Answers, str]] = [
    (check_entropy, Answers(entropy=_independent_entropy), "chain with ends"),
    (check_entropy, Answers(entropy=_independent_entropy), "tree"),
    (check_entropy, Answers(entropy=lambda each: _several_roots(each).entropy()), "tree with a single root"),
    (check_best, Answers(best=lambda each: _reversed(each).best()), "tree with a single root"),
    (check_best, Answers(best=lambda each: (each.best() + 1) % 3), "chain with ends"),
    (check_log_prob, Answers(log_prob=lambda each, s: _several_roots(each).log_prob(s)), "tree with a single root"),
    (check_log_prob, Answers(log_prob=lambda each, s: replace(each, stop=None).log_prob(s)), "chain with ends"),
    (check_samples, Answers(sample=lambda each, number: each.best().expand(number, -1)), "tree"),
    (check_samples, Answers(sample=lambda each, n: replace(each, start=None).sample(n)), "chain with ends"),
    (
        check_samples,
        Answers(sample=lambda each, n: _sharpened(each).sample(n)),
        "tree with a single root",
    ),
]


@pytest.mark.parametrize(("check", "planted", "name"), PLANTED)
def test_a_wrong_answer_is_refused(check: Callable[[Answers, Distribution], None], planted: Answers, name: str):
    with pytest.raises((AssertionError, KeyError)):
        check(planted, CASES[name])


def test_best_parts_need_not_be_the_best_whole():
    chains = [ChainDistribution(draw(5, 3, seed=seed), 2 * draw(3, 3, seed=seed + 50)) for seed in range(40)]
    trees = [TreeDistribution(draw(5, 5, seed=seed)) for seed in range(40)]
    for kind in (chains, trees):
        for each in kind:
            check_best(Answers(), each)
        assert any(not torch.equal(_heads_of_marginals(each), each.best()) for each in kind)


@pytest.mark.parametrize("is_single_root", [False, True])
def test_batches_of_trees_are_their_sentences(is_single_root: bool):
    lengths = torch.tensor([4, 2, 0, 1])
    trees = TreeDistribution(draw(4, 2, 5, 5), lengths, is_single_root)
    best, entropy, log_prob = trees.best(), trees.entropy(), trees.log_prob(trees.best())
    samples = trees.sample(3)
    assert samples.shape == (3, 4, 2, 5)
    sampled = trees.log_prob(samples)
    for row, head in itertools.product(range(4), range(2)):
        alone = TreeDistribution(trees.scores[row, head], lengths[row], is_single_root)
        assert torch.equal(best[row, head], alone.best())
        torch.testing.assert_close(entropy[row, head], alone.entropy())
        torch.testing.assert_close(log_prob[row, head], alone.log_prob(alone.best()))
        torch.testing.assert_close(sampled[:, row, head], alone.log_prob(samples[:, row, head]))


def test_batches_of_chains_are_their_rows():
    allowed = torch.rand(4, 1, 6, generator=torch.Generator().manual_seed(2)) < 0.6
    chains = ChainDistribution(draw(4, 2, 6, 3), TABLE, allowed, ENDS[0], draw(4, 2, 3, seed=6))
    best, entropy, samples = chains.best(), chains.entropy(), chains.sample(3)
    log_prob = chains.log_prob(samples)
    assert samples.shape == (3, 4, 2, 6)
    assert chains.stop is not None
    for row, head in itertools.product(range(4), range(2)):
        alone = ChainDistribution(chains.unary[row, head], TABLE, allowed[row, 0], ENDS[0], chains.stop[row, head])
        assert torch.equal(best[row, head], alone.best())
        torch.testing.assert_close(entropy[row, head], alone.entropy())
        torch.testing.assert_close(log_prob[:, row, head], alone.log_prob(samples[:, row, head]))


def test_what_is_impossible_has_no_structure():
    nowhere = torch.full((2, 2), -torch.inf, dtype=torch.float64)
    for each in (ChainDistribution(draw(3, 2), nowhere), TreeDistribution(torch.full((3, 3), -torch.inf).double())):
        assert each.best().eq(-1).all()
        assert each.sample(2).eq(-1).all()
        assert each.entropy().item() == 0.0
        assert each.log_prob(each.best()).item() == -math.inf


def test_a_single_root_may_be_impossible_where_several_are_not():
    arcs = torch.full((3, 3), -torch.inf, dtype=torch.float64)
    arcs[0, 1:] = 0.0
    assert TreeDistribution(arcs).best().tolist() == [-1, 0, 0]
    assert TreeDistribution(arcs, is_single_root=True).best().tolist() == [-1, -1, -1]
    tree = projective_tree_marginals(arcs, is_single_root=True)
    assert not tree.weights.any()
    assert tree.log_normalizer == -torch.inf


@pytest.mark.parametrize("is_single_root", [False, True])
def test_gradients_of_trees(is_single_root: bool):
    lengths, heads = torch.tensor([4, 2, 0]), TreeDistribution(draw(3, 5, 5), torch.tensor([4, 2, 0])).best()

    def results(scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        tree = TreeDistribution(scores, lengths, is_single_root)
        return tree.entropy(), tree.log_prob(heads), tree.marginals().weights

    assert gradcheck(results, draw(3, 5, 5).requires_grad_())


def test_gradients_of_chains():
    states = torch.tensor([[0, 1, 1, 2], [2, 0, 0, 1]])

    def results(unary: Tensor, transition: Tensor, stop: Tensor) -> tuple[Tensor, Tensor]:
        chain = ChainDistribution(unary, transition, torch.tensor([True, False, True, True]), None, stop)
        return chain.entropy(), chain.log_prob(states)

    inputs = (draw(2, 4, 3), draw(3, 3, seed=1), draw(3, seed=2))
    assert gradcheck(results, tuple(each.requires_grad_() for each in inputs))


def test_large_scores_and_half_precision():
    tree = TreeDistribution(100 * draw(12, 12).float())
    chain = ChainDistribution(100 * draw(300, 4).float(), draw(4, 4).float())
    exact_tree = TreeDistribution(tree.scores.double())
    exact_chain = ChainDistribution(chain.unary.double(), chain.transition.double())
    for each, exact in ((tree, exact_tree), (chain, exact_chain)):
        assert each.entropy().item() == pytest.approx(exact.entropy().item(), abs=1e-3)
        assert torch.equal(each.best(), exact.best())
        # The log probability is the difference of two sums of thousands.
        assert each.log_prob(each.best()).item() == pytest.approx(exact.log_prob(exact.best()).item(), abs=0.02)
    half = TreeDistribution(draw(5, 5).to(torch.bfloat16))
    assert half.entropy().dtype == torch.bfloat16


def test_what_does_not_fit_is_refused():
    with pytest.raises(ShapeError, match="transition"):
        ChainDistribution(draw(3, 2), TABLE).best()
    with pytest.raises(ShapeError, match="square"):
        TreeDistribution(draw(3, 2)).best()
    for each in (ChainDistribution(draw(3, 3), TABLE), TreeDistribution(draw(3, 3))):
        with pytest.raises(UsageError, match="num_samples"):
            each.sample(0)
