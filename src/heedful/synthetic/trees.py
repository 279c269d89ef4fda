"""Generated tree transduction: expressions in prefix notation, and the same in infix notation.

    ( * ( + ( + 15 7 ) 1 8 ) ( + 19 0 11 ) )        ( ( 15 + 7 ) + 1 + 8 ) * ( 19 + 0 + 11 )

The task of Kim et al. 2017, arXiv:1702.00887, section 4.1, with random trees of our own: an operator has two or three
operands, and at least one branch is as deep as the tree. All expressions are a function of the seed, on every machine
and in every version of Python.
"""

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

from heedful.errors import UsageError

OPERATORS: Final = ("+", "*")
NUMBERS: Final = tuple(str(number) for number in range(20))
_SHARE_OF_NUMBERS: Final = 0.7
"""Share of numbers among the operands that need not be deep."""


@final
@dataclass(frozen=True)
class Expression:
    """Expression in two notations, whose tokens are separated by spaces."""

    prefix: str
    infix: str
    depth: int
    """Number of operators on the longest way from the root to a number, 1 or more."""
    heads: tuple[int, ...]
    """Head of each token of `prefix`, 1-based, 0 = the root: operands and brackets depend on their operator."""


def generate(num_expressions: int, depths: tuple[int, ...], seed: int) -> Iterator[Expression]:
    """Generate expressions, with equal other arguments the first ones of more expressions.

    Args:
        num_expressions: number of expressions, 0 or more.
        depths: depths that are drawn from uniformly, each 1 to 10.
        seed: any whole number.

    Returns:
        The expressions; repeated ones are possible.

    Raises:
        UsageError: `num_expressions` is below 0, or a depth is out of range.

    Example:
        >>> expression = next(generate(1, (2,), seed=1))
        >>> expression.prefix, expression.infix
        ('( + 5 19 ( + 3 19 ) )', '5 + 19 + ( 3 + 19 )')
    """
    if num_expressions < 0:
        raise UsageError(f"num_expressions is {num_expressions}: give 0 or more")
    if not depths or not all(1 <= depth <= 10 for depth in depths):
        raise UsageError(f"depths are {depths}: give some from 1 to 10")
    name = f"trees/{depths}/{seed}".encode()
    source = random.Random(int.from_bytes(hashlib.blake2b(name, digest_size=16).digest(), "big"))
    return (_expression(source, source.choice(depths)) for _ in range(num_expressions))


_Tree = str | tuple[str, list["_Tree"]]
"""Number, or an operator and its operands."""


def _expression(source: random.Random, depth: int) -> Expression:
    tree = _tree(source, depth)
    heads: list[int] = []
    prefix = " ".join(_prefix(tree, 0, heads))
    return Expression(prefix, " ".join(_infix(tree, is_outermost=True)), depth, tuple(heads))


def _tree(source: random.Random, depth: int) -> _Tree:
    if depth == 0:
        return source.choice(NUMBERS)
    operator, number = source.choice(OPERATORS), source.choice((2, 3))
    deep = source.randrange(number)
    operands: list[_Tree] = []
    for index in range(number):
        is_number = index != deep and source.random() < _SHARE_OF_NUMBERS
        operands.append(_tree(source, depth - 1 if index == deep else 0 if is_number else source.randint(0, depth - 1)))
    return operator, operands


def _prefix(tree: _Tree, head: int, heads: list[int]) -> Iterator[str]:
    """Tokens of a tree; appends the head of each to `heads`."""
    if isinstance(tree, str):
        heads.append(head)
        yield tree
        return
    operator, operands = tree
    operator_position = len(heads) + 2
    heads += [operator_position, head]
    yield from ("(", operator)
    for operand in operands:
        yield from _prefix(operand, operator_position, heads)
    heads.append(operator_position)
    yield ")"


def _infix(tree: _Tree, is_outermost: bool = False) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
        return
    operator, operands = tree
    if not is_outermost:
        yield "("
    for index, operand in enumerate(operands):
        if index:
            yield operator
        yield from _infix(operand)
    if not is_outermost:
        yield ")"
