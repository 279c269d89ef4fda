"""Attention in ten lines: three queries look for their keys, and a map shows what they found.

python examples/attention_in_ten_lines.py
"""

import torch

from heedful.attention.dispatch import attend
from heedful.attention.masks import padding
from heedful.attention.scores import ScaledDot
from heedful.inspection.plot import text_heat_map

torch.manual_seed(1)
source, target = "the cat sat down <pad>".split(), ["猫", "坐", "下"]
memory = 3 * torch.randn(1, 5, 16)  # [batch, key, size]: what an encoder makes of the source
query = memory[:, [1, 2, 3]] + torch.randn(
    1, 3, 16
)  # [batch, query, size]: decoder states that look for cat, sat, down
real = padding(torch.tensor([4]))  # the fifth key is padding
attended = attend(query, memory, memory, score=ScaledDot(16, 16), mask=real, need=["weights"])
print("contexts:", list(attended.context.shape), "made by kernel", attended.kernel)
if attended.weights is not None:
    print(text_heat_map(source, target, attended.weights[0]))
