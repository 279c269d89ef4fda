"""Generated expressions: both notations have one value, and the heads are a projective tree."""

import math

import pytest

from heedful.errors import UsageError
from heedful.synthetic.trees import Expression, generate


def value_of_prefix(tokens: list[str]) -> int:
    """Value of an expression in prefix notation; consumes its tokens."""
    if (token := tokens.pop(0)) != "(":
        return int(token)
    operator, operands = tokens.pop(0), []
    while tokens[0] != ")":
        operands.append(value_of_prefix(tokens))
    tokens.pop(0)
    assert len(operands) in (2, 3)
    return sum(operands) if operator == "+" else math.prod(operands)


def is_tree(expression: Expression) -> bool:
    """Whether the heads are a projective tree in which brackets and operands depend on their operator."""
    tokens, heads = expression.prefix.split(), expression.heads
    operators = [place for place, token in enumerate(tokens, start=1) if token in "+*"]
    if len(tokens) != len(heads) or heads.count(0) != 1 or heads.index(0) + 1 != operators[0]:
        return False
    arcs = [(min(word, head), max(word, head)) for word, head in enumerate(heads, start=1) if head]
    crosses = any(a < c < b < d for a, b in arcs for c, d in arcs)
    brackets = [(heads[place - 2], place) for place in operators]
    return not crosses and set(heads) <= {0, *operators} and all(head == place for head, place in brackets)


@pytest.mark.parametrize("depth", [1, 2, 4, 6])
def test_both_notations_have_one_value(depth: int):
    for expression in generate(200, (depth,), seed=depth):
        tokens = expression.prefix.split()
        assert value_of_prefix(tokens) == eval(expression.infix)
        assert not tokens
        nesting = [expression.prefix[:end].count("(") - expression.prefix[:end].count(")") for end in range(400)]
        assert max(nesting) == expression.depth == depth
        assert is_tree(expression)


def test_other_heads_are_no_tree():
    expression = next(generate(1, (3,), seed=1))
    heads = (expression.heads[0] + 1, *expression.heads[1:])
    assert not is_tree(Expression(expression.prefix, expression.infix, 3, heads))


def test_more_expressions_begin_with_the_same_ones_and_other_seeds_with_others():
    first, more, other = (list(generate(n, (2, 3, 4), seed)) for n, seed in ((50, 1), (80, 1), (50, 2)))
    assert more[:50] == first
    assert not {each.prefix for each in first} & {each.prefix for each in other}
    assert {each.depth for each in first} == {2, 3, 4}


@pytest.mark.parametrize(
    ("number", "depths", "message"), [(-1, (2,), "num_expressions"), (1, (), "depths"), (1, (2, 11), "depths")]
)
def test_what_cannot_be_generated_is_refused(number: int, depths: tuple[int, ...], message: str):
    with pytest.raises(UsageError, match=message):
        generate(number, depths, seed=1)
