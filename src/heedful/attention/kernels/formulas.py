"""Formulas of scores as papers write them, in PyTorch's operations: the plain kernel, and what others derive from."""

from torch import Tensor, tanh


def additive_formula(query: Tensor, key: Tensor, vector: Tensor) -> Tensor:
    """Compute vector . tanh(query_i + key_j).

    Args:
        query: [*batch, query, hidden].
        key: [*batch, key, hidden].
        vector: [hidden].

    Returns:
        [*batch, query, key].

    Cost: query * key * hidden numbers in memory.
    """
    inner = tanh(query.unsqueeze(-2) + key.unsqueeze(-3))
    # A matrix of one column: by a vector, ONNX Runtime multiplies row after row, ten times as slowly.
    return (inner @ vector.unsqueeze(-1)).squeeze(-1)
