"""Value norms: attention weights times the lengths of the vectors that they weigh.

Kobayashi et al. 2020, arXiv:2004.10102.
"""

import torch
from torch import Tensor

from heedful.inspection.measures.sublayers import AttentionSublayer


def value_norms(sublayer: AttentionSublayer) -> Tensor:
    """Compute |weights[h, i, j] f_h(x_j)| of each head, eq. 4, as shares of each query's sum.

    Returns:
        [head, query, key] shares, which sum to 1 over the keys; zeros where all norms are zero.

    Cost: no more than the recording of the sub-layer.
    """
    norms = sublayer.weights * sublayer.values.norm(dim=-1)[:, None]
    return shares(norms)


def summed_value_norms(sublayer: AttentionSublayer) -> Tensor:
    """Compute |sum_h weights[h, i, j] f_h(x_j)| of all heads together, section 2.2, as shares of each query's sum.

    Returns:
        [query, key] shares, which sum to 1 over the keys; zeros where all norms are zero.

    Cost: query * key * size numbers of memory.
    """
    summed = torch.einsum("hqk,hks->qks", sublayer.weights, sublayer.values)
    return shares(summed.norm(dim=-1))


def shares(amounts: Tensor) -> Tensor:
    """Divide amounts by their sum over the last axis.

    Args:
        amounts: [*, key] numbers of 0 or more.

    Returns:
        [*, key] shares; zeros where all amounts are zero.
    """
    total = amounts.sum(dim=-1, keepdim=True)
    return amounts / total.where(total > 0, total.new_ones(()))
