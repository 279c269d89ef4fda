# %% [markdown] lang="en"
# # 6 Hard, sparse, monotonic and structured attention
#
# **Soft attention** takes the weighted mean of all values. **Hard attention** takes one value, and there are two ways to choose it: the **best key**,
# $\mathrm{att}(x, q) = x_j$ with $j = \mathrm{argmax}_i \alpha_i$, or a **random draw**, with probability $\alpha_i$. The choice has no gradient. A drawn choice is learned by
# REINFORCE or by a relaxation (Gumbel–softmax).
#
# **Sparsemax** lies between: the nearest point of the simplex, with exact zeros,
#
# $$\mathrm{sparsemax}(z) = \max(z - \tau(z), 0), \qquad \sum_i \max(z_i - \tau(z), 0) = 1.$$
#
# **Monotonic attention** walks along the source and stops at each key with probability $p_j$; the weights are then $\alpha_j = p_j \prod_{k<j} (1 - p_k)$.
#
# **Structured attention** gives weights to whole structures, such as runs of neighbours or trees, and attends with their marginal probabilities.

# %% [markdown] lang="zh"
# # 6 硬性、稀疏、单调和结构化注意力
#
# **软性注意力**对所有值加权平均。**硬性注意力**只取一个值，有两种取法：**最大采样**，$\mathrm{att}(x, q) = x_j$，$j = \mathrm{argmax}_i\, \alpha_i$；或者在注意力分布上做**随机采样**，第 $i$ 个值的概率是 $\alpha_i$。选择没有梯度；采样可以用 REINFORCE 学习，也可以用连续松弛（Gumbel-softmax）。
#
# **稀疏**的 sparsemax 介于两者之间：取单纯形上离分数最近的点，有的权重恰好是零，
#
# $$\mathrm{sparsemax}(z) = \max(z - \tau(z), 0), \qquad \sum_i \max(z_i - \tau(z), 0) = 1.$$
#
# **单调**注意力沿着源句往前走，以概率 $p_j$ 停在第 $j$ 个键上，权重就是 $\alpha_j = p_j \prod_{k<j} (1 - p_k)$。
#
# **结构化注意力**给整个结构打分，例如相邻的一段、一棵树，再用各部分的边缘概率作为权重。

# %% [markdown] lang="en"
# ## From scratch

# %% [markdown] lang="zh"
# ## 从零实现

# %%
import itertools

import matplotlib.pyplot as plt
import torch

from heedful.attention import (
    Dot,
    Entmax,
    Hard,
    LinearChain,
    Monotonic,
    Sampled,
    Softmax,
    Sparsemax,
    attend,
)
from heedful.course import check

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
z = torch.tensor([1.6, 1.3, 0.4, 0.2, -0.6, -1.5])
values = torch.randn(6, 3)


def sparsemax(z):
    ordered = z.sort(descending=True).values
    excess = ordered.cumsum(0) - 1
    size = int(
        (ordered * torch.arange(1, len(z) + 1) > excess).sum()
    )  # number of keys that keep a weight
    return (z - excess[size - 1] / size).clamp(min=0)


def hard(z):
    return torch.nn.functional.one_hot(z.argmax(), len(z)).double()


def monotonic(p):
    passed = torch.cat(
        (torch.ones(1), (1 - p).cumprod(0)[:-1])
    )  # none of the keys before was chosen
    return p * passed


def chain(
    z, transition
):  # each key is on or off; marginals by summing over all 2^n choices
    total, marginals = 0.0, torch.zeros(len(z))
    for states in itertools.product((0, 1), repeat=len(z)):
        on = torch.tensor(states)
        energy = (z * on).sum() + sum(
            transition[a, b] for a, b in itertools.pairwise(states)
        )
        total, marginals = total + energy.exp(), marginals + energy.exp() * on
    return marginals / total


# %% [markdown] lang="en"
# ## The same with heedful

# %% [markdown] lang="zh"
# ## 用 heedful 再算一遍


# %%
def weights_of(normalizer):
    """Weights of keys whose scores are z."""
    return attend(
        torch.ones(1, 1),
        z[:, None],
        values,
        score=Dot(1, 1),
        normalizer=normalizer,
        need=["weights"],
    ).weights[0]


assert abs(weights_of(Softmax()) - torch.softmax(z, 0)).max() < 1e-6
assert abs(weights_of(Sparsemax()) - sparsemax(z)).max() < 1e-6
assert abs(weights_of(Entmax(alpha=2.0)) - sparsemax(z)).max() < 1e-6
assert abs(weights_of(Hard()) - hard(z)).max() < 1e-6
transition = torch.tensor([[0.2, -0.3], [-0.4, 0.9]])
assert (
    abs(weights_of(LinearChain(transition=transition)) - chain(z, transition)).max()
    < 1e-6
)

drawn = torch.stack([weights_of(Sampled(seed=seed)) for seed in range(2000)])
assert set(drawn.flatten().tolist()) == {0.0, 1.0}
print(
    "drawn:",
    drawn.mean(0).numpy().round(2),
    "softmax:",
    torch.softmax(z, 0).numpy().round(2),
)

# %% [markdown] lang="en"
# As the two rows show, later keys get what earlier ones left. (heedful adds noise to the scores in training, which drives the probabilities to 0 and 1; here it is off.)
# A model whose attention only moves forward, and whose likelihood sums over all such paths, is `heedful train --preset hard_attention`.

# %% [markdown] lang="zh"
# 从结果可以看出，后面的键只能分到前面剩下的权重。（训练时 heedful 给分数加噪声，让概率趋向 0 和 1；这里不加。）注意力只向前移动、似然对所有路径求和的模型，见 `heedful train --preset hard_attention`。

# %%
p = torch.sigmoid(z)
assert abs(weights_of(Monotonic(noise=0.0)) - monotonic(p)).max() < 1e-6
print(p.numpy().round(2), monotonic(p).numpy().round(2), sep="\n")

# %% [markdown] lang="en"
# ## A picture

# %% [markdown] lang="zh"
# ## 图解

# %% picture="normalizers" alt="Weights of six keys: softmax on all, entmax and sparsemax with zeros, hard on the best, a draw on one by chance, monotonic falling, linear chain on a run of neighbours" alt_zh="六个键的权重：softmax 每个键都有，entmax 和 sparsemax 有零，硬性注意力只有最大的一个，随机采样碰巧取到一个，单调注意力逐渐减少，线性链是相邻的一段"
forms = {
    "softmax": torch.softmax(z, 0),
    "entmax 1.5": weights_of(Entmax()),
    "sparsemax": sparsemax(z),
    "hard": hard(z),
    "a draw": weights_of(Sampled(seed=5)),
    "monotonic": monotonic(p),
    "linear chain": chain(z, transition),
}
figure, axes = plt.subplots(1, len(forms), sharey=True, figsize=(9, 2.2))
for axis, (name, weights) in zip(axes, forms.items(), strict=True):
    axis.bar(range(6), weights)
    axis.set_title(name, fontsize=9)
    axis.set_xticks(range(6))
axes[0].set(xlabel="key", ylabel="weight")
plt.show()

# %% [markdown] lang="en"
# ## Exercises
#
# 1. `hard.expected`: the weights are 0.2, 0.5, 0.3 and the values 10, 20, 40. What does drawing a key give on average?
# 2. `hard.sparsemax`: a function of `scores` (four numbers, NumPy) that gives their sparsemax.
# 3. `hard.monotonic`: a function of `p` that gives the weights of the first step of monotonic attention.

# %% [markdown] lang="zh"
# ## 练习
#
# 1. `hard.expected`：权重是 0.2、0.5、0.3，值是 10、20、40。随机采样，平均得到多少？
# 2. `hard.sparsemax`：用 NumPy 写一个函数，参数 `scores` 是四个数，给出它们的 sparsemax。
# 3. `hard.monotonic`：写一个函数，参数是 `p`，给出单调注意力第一步的权重。

# %%
check("hard.expected", ...)
check("hard.sparsemax", ...)
check("hard.monotonic", ...)
