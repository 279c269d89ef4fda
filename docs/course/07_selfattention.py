# %% [markdown] lang="en"
# # 7 Self-attention: order, cost, and what came before
#
# In **self-attention** a sequence $x_1, …, x_n$ asks itself: each $x_i$ is query, key and value at once, and $y_i = f(x_i, (x_1, x_1), …, (x_n, x_n))$. Nothing is decoded; what comes
# out represents what went in. Three learned matrices make it more than a comparison of a vector with itself,
#
# $$Q = X W_Q, \quad K = X W_K, \quad V = X W_V, \qquad \mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left(\frac{Q K^T}{\sqrt{d_k}}\right) V,$$
#
# so it is not true that $K = Q = V$: all three are **linear maps** of the same $X$. $QK^T$ is an $n \times n$ table of **strengths of attention** between words; each row of the output $Z$ is the weighted sum of all values.
#
# **Multi-head attention** runs $h$ of them side by side, each with its own maps, say one for **near relations** and one for **far relations**; the results are **concatenated** and mapped:
#
# $$\mathrm{MultiHead}(X) = \mathrm{Concat}(Z_1, …, Z_h)\, W_O .$$
#
# (Some notes call **several query vectors** $q_1, …, q_M$ heads, each of which looks at another part of the input; their results are concatenated as well.)
#
# **Position.** Self-attention alone does not know the order of words: shuffle them, and the outputs are shuffled in the same way (a **bag of words**). So a
# **position encoding** $P$ is added to the input, $X + P$: a learned table, or
#
# $$p_{i,2j} = \sin\left(\frac{i}{10000^{2j/d}}\right), \qquad p_{i,2j+1} = \cos\left(\frac{i}{10000^{2j/d}}\right).$$
#
# The formula also gives positions for **sentences longer than any of the training**, and **relative positions** are linear: with $\omega_j = 1/10000^{2j/d}$ the pair at $i + \delta$ is the pair at $i$ turned by a
# **projection matrix** that does not depend on $i$,
#
# $$\begin{pmatrix} \cos(\delta\omega_j) & \sin(\delta\omega_j) \\ -\sin(\delta\omega_j) & \cos(\delta\omega_j) \end{pmatrix} \begin{pmatrix} p_{i,2j} \\ p_{i,2j+1} \end{pmatrix} = \begin{pmatrix} p_{i+\delta,2j} \\ p_{i+\delta,2j+1} \end{pmatrix}.$$

# %% [markdown] lang="zh"
# # 7 自注意力：次序、代价，与 CNN、RNN 对比
#
# 在**自注意力**里，序列 $x_1, …, x_n$ 向自己提问：每个 $x_i$ 同时当做 key、value、query，$y_i = f(x_i, (x_1, x_1), …, (x_n, x_n))$。这里**没有解码器**，输出就是输入的表示，解决的是**表征问题**。有了三个可学习的矩阵，就不只是自己和自己比，
#
# $$Q = X W_Q, \quad K = X W_K, \quad V = X W_V, \qquad \mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left(\frac{Q K^T}{\sqrt{d_k}}\right) V,$$
#
# 所以“自注意力就是 **K=Q=V**”的说法不对：三者是同一个 $X$ 的不同**线性变换**。$QK^T$ 是 $n \times n$ 的矩阵，表示单词之间的 **attention 强度**；**输出矩阵Z** 的每一行是所有值的加权和。
#
# **多头注意力**同时做 $h$ 个，每个头各有自己的变换，希望抽取不同的信息，例如**短距离关系**和**长距离关系**；结果**拼接**起来再做一次线性变换：
#
# $$\mathrm{MultiHead}(X) = \mathrm{Concat}(Z_1, …, Z_h)\, W_O .$$
#
# 有的笔记里，多头的“头”指**多个查询向量** $q_1, …, q_M$，各关注输入的不同部分，再把结果拼接；两种说法要区分。
#
# **位置编码。** 自注意力没有记录位置信息：把词的次序打乱，输出只是跟着打乱，这就成了**词袋模型**。所以把**位置编码矩阵** $P$ 加到输入上，$X + P$ 就是单词的**表示向量**。$P$ 可以**训练得到**，也可以用公式：
#
# $$p_{i,2j} = \sin\left(\frac{i}{10000^{2j/d}}\right), \qquad p_{i,2j+1} = \cos\left(\frac{i}{10000^{2j/d}}\right).$$
#
# 用公式能适应**比训练集里面所有句子更长的句子**；**相对位置信息**也是线性的：设 $\omega_j = 1/10000^{2j/d}$，位置 $i+\delta$ 处的编码可以由位置 $i$ 处的编码线性投影得到，**投影矩阵**跟 $i$ 无关，
#
# $$\begin{pmatrix} \cos(\delta\omega_j) & \sin(\delta\omega_j) \\ -\sin(\delta\omega_j) & \cos(\delta\omega_j) \end{pmatrix} \begin{pmatrix} p_{i,2j} \\ p_{i,2j+1} \end{pmatrix} = \begin{pmatrix} p_{i+\delta,2j} \\ p_{i+\delta,2j+1} \end{pmatrix}.$$

# %% [markdown] lang="en"
# ## From scratch

# %% [markdown] lang="zh"
# ## 从零实现

# %%
import math
import time

import matplotlib.pyplot as plt
import torch

from heedful.attention import ScaledDot, attend, causal
from heedful.course import check
from heedful.layers import LearnedPositions, MultiheadAttention, sinusoids

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
N, D, HEADS = 7, 16, 4
X = torch.randn(N, D)


def self_attention(X, W_Q, W_K, W_V):
    Q, K, V = X @ W_Q, X @ W_K, X @ W_V
    return torch.softmax(Q @ K.T / math.sqrt(K.shape[1]), -1) @ V


def multi_head(X, W, b, W_O, b_O):
    Q, K, V = (X @ W.T + b).chunk(3, dim=-1)
    heads = zip(*(part.chunk(HEADS, dim=-1) for part in (Q, K, V)), strict=True)
    Z = [torch.softmax(q @ k.T / math.sqrt(k.shape[1]), -1) @ v for q, k, v in heads]
    return torch.cat(Z, dim=-1) @ W_O.T + b_O


def positions(n, d):
    angle = torch.arange(n)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)


# %% [markdown] lang="en"
# ## The same by heedful

# %% [markdown] lang="zh"
# ## 用 heedful 再算一遍

# %%
W_Q, W_K, W_V = torch.randn(3, D, 8) / 3
parts = X @ W_Q, X @ W_K, X @ W_V
by_heedful = attend(*parts, score=ScaledDot(8, 8)).context
assert abs(self_attention(X, W_Q, W_K, W_V) - by_heedful).max() < 1e-6

layer = MultiheadAttention(D, HEADS, batch_first=True)
own = (
    layer.in_proj_weight,
    layer.in_proj_bias,
    layer.out_proj.weight,
    layer.out_proj.bias,
)
with torch.no_grad():
    together, _ = layer(X[None], X[None], X[None])
    assert abs(multi_head(X, *own) - together[0]).max() < 1e-6
    order = torch.randperm(N)  # without positions, shuffled words give shuffled outputs
    shuffled, _ = layer(X[order][None], X[order][None], X[order][None])
    assert abs(shuffled[0] - together[0][order]).max() < 1e-6

P = positions(50, 64)
assert abs(P - sinusoids(torch.arange(50), 64)).max() < 1e-6
assert abs(positions(60, 64)[:50] - P).max() < 1e-6  # longer sentences need nothing new
assert LearnedPositions(64, 50).weight.shape == P.shape  # a table to be learned instead
turn = torch.tensor([[math.cos(3), math.sin(3)], [-math.sin(3), math.cos(3)]])
assert abs(P[:-3, :2] @ turn.T - P[3:, :2]).max() < 1e-6  # j = 0: 3 positions on

# %% [markdown] lang="en"
# ## A picture: positions

# %% [markdown] lang="zh"
# ## 一幅图：位置编码

# %% picture="positions" alt="Left, the matrix of position codes, waves that slow down from left to right; right, products of the codes of two positions, which depend on their distance only" alt_zh="左：位置编码矩阵，波从左到右越来越慢；右：两个位置的编码的内积，只取决于距离"
figure, (left, right) = plt.subplots(1, 2, width_ratios=(3, 2))
left.imshow(P, aspect="auto", cmap="RdBu")
left.set(xlabel="dimension", ylabel="position")
right.imshow(P @ P.T)
right.set(xlabel="position", ylabel="position")
plt.show()

# %% [markdown] lang="en"
# ## What it costs
#
# |  | CNN (width $k$) | RNN | self-attention |
# | --- | --- | --- | --- |
# | cost | $O(knd^2)$ | $O(nd^2)$ | $O(n^2d)$ |
# | steps that can run side by side | $O(n)$ | $O(1)$ | $O(n)$ |
# | longest path between two words | $O(n/k)$ | $O(n)$ | $O(1)$ |
#
# Self-attention is fully parallel and any two words are one step apart; for long sequences its cost grows with the square. As times on this
# machine:

# %% [markdown] lang="zh"
# ## 跟 CNN、RNN 对比
#
# |  | CNN（窗口 $k$） | RNN | 自注意力 |
# | --- | --- | --- | --- |
# | **计算复杂度** | $O(knd^2)$ | $O(nd^2)$ | $O(n^2d)$ |
# | **并行度** | $O(n)$ | $O(1)$ | $O(n)$ |
# | **最长路径** | $O(n/k)$ | $O(n)$ | $O(1)$ |
#
# 自注意力完全并行，任意两个词只隔一步；但对长序列计算复杂度高，随长度的平方增长。在这台机器上计时：

# %% picture="cost" alt="Time of a layer by length, on logarithmic axes: recurrent and convolutional layers grow in proportion, self-attention twice as steep" alt_zh="一层所用的时间随长度的变化，对数坐标：循环层和卷积层成比例增长，自注意力的斜率是两倍"
torch.set_default_dtype(torch.float32)
d, lengths = 64, (64, 128, 256, 512, 1024, 2048)
layers = {
    "CNN, k = 3": torch.nn.Conv1d(d, d, 3, padding=1),
    "RNN": torch.nn.RNN(d, d, batch_first=True),
}
calls = {
    "CNN, k = 3": lambda x: layers["CNN, k = 3"](x.mT),
    "RNN": lambda x: layers["RNN"](x),
    "self-attention": lambda x: attend(x, x, x, score=ScaledDot(d, d), kernel="plain"),
}
for name, call in calls.items():
    times = []
    for n in lengths:
        x, trials = torch.randn(1, n, d), []
        with torch.no_grad():
            for _ in range(4):
                start = time.perf_counter()
                call(x)
                trials.append(time.perf_counter() - start)
        times.append(1000 * min(trials))
    plt.loglog(lengths, times, "o-", label=name)
plt.xlabel("length n")
plt.ylabel("milliseconds")
plt.legend()
plt.show()

# %% [markdown] lang="en"
# ## Masks
#
# A decoder must not see words after its own. **Masked** self-attention computes $x_i$ as if the sequence ended there: scores above the diagonal are
# taken out **before the softmax**, so that every row still sums to 1.

# %% [markdown] lang="zh"
# ## 掩码
#
# 解码器输出某个元素时，不应该考虑该元素之后的元素。**有掩码的多头注意力**计算 $x_i$ 的输出时，假装当前序列长度为 $i$：**Mask 矩阵**把每个词之后的信息遮住，操作在 **Softmax 之前**，所以每一行的和仍是 1。

# %% picture="mask" alt="Weights of seven words over each other: all, and below the diagonal only" alt_zh="七个词相互的权重：左边是全部，右边只有对角线及其下方"
figure, axes = plt.subplots(1, 2)
for axis, mask in zip(axes, (None, causal()), strict=True):
    weights = attend(
        *(p.double() for p in parts), score=ScaledDot(8, 8), mask=mask, need=["weights"]
    ).weights
    assert abs(weights.sum(-1) - 1).max() < 1e-6
    axis.imshow(weights)
    axis.set(xlabel="key", ylabel="query", title="masked" if mask else "all words")
plt.show()

# %% [markdown] lang="en"
# ## Exercises
#
# 1. `selfattention.cost`: how many multiply-adds do the scores of one head take for $n = 100$ words of $d = 512$ numbers?
# 2. `selfattention.positions`: a function of `n, d` that gives the position codes, in NumPy.
# 3. `selfattention.rotation`: which matrix turns the pair $(\sin i, \cos i)$ into the pair of position $i + 2$?

# %% [markdown] lang="zh"
# ## 练习
#
# 1. `selfattention.cost`：$n = 100$ 个词，$d = 512$，一个头的分数要多少次乘加？
# 2. `selfattention.positions`：用 NumPy 写一个函数，参数是 `n, d`，给出位置编码矩阵。
# 3. `selfattention.rotation`：哪个矩阵把 $(\sin i, \cos i)$ 变成位置 $i + 2$ 的那一对？

# %%
check("selfattention.cost", ...)
check("selfattention.positions", ...)
check("selfattention.rotation", ...)
