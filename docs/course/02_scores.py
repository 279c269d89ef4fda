# %% [markdown] lang="en"
# # 2 Scores: how a query is compared with a key
#
# In **higher dimensions** queries and keys become vectors. The **attention score** $a(q, k)$ says how well they match; a softmax over all keys turns scores into
# weights, and the values are averaged with them:
#
# $$f(q) = \sum_i \mathrm{softmax}_i(a(q, k_i))\, v_i .$$
#
# Nearly all papers use one of four **score functions**.
#
# - **Additive attention**: $a(k, q) = v^T \tanh(W_k k + W_q q)$. Query and key are joined and enter a **network with a single hidden layer**,
#   of size $h$, and one output. They may differ in size.
# - **Dot product**: $a(q, k) = q^T k$. No parameters, equal sizes.
# - **Scaled dot product**: $a(q, k) = \langle q, k \rangle / \sqrt{d}$.
# - **Bilinear form**: $a(q, k) = q^T W k$, a dot product after a map of the query.
#
# The picture shows the way from a query and a key to their score.

# %% [markdown] lang="zh"
# # 2 打分函数：查询和键怎样比较
#
# 现在拓展到高维度，查询和键都是向量。**注意力分数** $a(q, k)$ 表示两者的匹配度；对所有键做 softmax 得到权重，再对值加权平均：
#
# $$f(q) = \sum_i \mathrm{softmax}_i(a(q, k_i))\, v_i .$$
#
# **打分函数**常见的有四种形式。
#
# - **加性模型**（Additive Attention）：$a(k, q) = v^T \tanh(W_k k + W_q q)$。等价于将键和查询合并起来，放入一个隐藏大小为 $h$、输出大小为 1 的**单隐藏层 MLP**。两者的长度可以不同。
# - **点积模型**：$a(q, k) = q^T k$。没有参数，长度必须相同。
# - **缩放点积模型**（Scaled Dot-Product Attention）：$a(q, k) = \langle q, k \rangle / \sqrt{d}$。
# - **双线性模型**：$a(q, k) = q^T W k$，先把查询变换一下再做点积。
#
# 下面的图画出查询和键怎样一步步变成分数。

# %% picture="forms" alt="Four diagrams from a query and a key to a number: the dot product joins them at once; the scaled one divides by a root behind it; the bilinear form maps the query first; the additive score maps both, adds them, and has a tanh and a vector behind it" alt_zh="四种打分函数的示意图，从查询和键到一个数：点积直接相乘；缩放点积再除以根号 d；双线性先变换查询；加性模型两个都变换，相加之后经过 tanh 和向量 v"
import math
import time

import matplotlib.pyplot as plt

from heedful.course.diagram import arrow, box, canvas

BLUE, ORANGE, GREY = "#d6e6f7", "#f8e3cf", "#f1f1f1"
FORMS = {  # steps of the query alone, of the key alone, and of both
    "dot product": ((), (), ("product",)),
    "scaled dot product": ((), (), ("product", "/ √d")),
    "bilinear form": (("map W",), (), ("product",)),
    "additive: one hidden layer": (("map Wq",), ("map Wk",), ("+, tanh", "times v")),
}
figure, axis = plt.subplots(figsize=(9, 3.4))
canvas(axis, 92, 34)
for place, (name, (of_query, of_key, of_both)) in enumerate(FORMS.items()):
    x = 11 + 23.5 * place
    axis.text(x, 32, name, ha="center", fontsize=8)
    for side, letter, steps in ((-5, "q", of_query), (5, "k", of_key)):
        box(axis, x + side, 2, letter, width=7, colour=BLUE)
        for step in steps:
            arrow(axis, (x + side, 3.5), (x + side, 6.5))
            box(axis, x + side, 8, step, width=8, colour=ORANGE)
        arrow(axis, (x + side, 9.5 if steps else 3.5), (x + side, 13.5))
    for number, step in enumerate(of_both):
        box(axis, x, 15 + 6 * number, step, width=17, colour=ORANGE)
        arrow(axis, (x, 16.5 + 6 * number), (x, 19.5 + 6 * number))
    box(axis, x, 15 + 6 * len(of_both), "score a(q, k)", width=17, colour=GREY)
plt.show()

# %% [markdown] lang="en"
# ## From scratch
#
# All queries at once: with $Q\in R^{n\times d}$, $K\in R^{m\times d}$ and $V\in R^{m\times v}$ the scaled dot product is two matrix
# products, $f = \mathrm{softmax}(QK^T/\sqrt{d})\,V \in R^{n \times v}$. This is the vectorised form.

# %% [markdown] lang="zh"
# ## 从零实现
#
# **向量化版本**一次算完所有查询：$Q\in R^{n\times d}$，$K\in R^{m\times d}$，$V\in R^{m\times v}$，缩放点积就是两次矩阵乘法，$f = \mathrm{softmax}(QK^T/\sqrt{d})\,V \in R^{n \times v}$。

# %%
import torch
from torch.nn import functional

from heedful.attention import (
    SCORES,
    Additive,
    Dot,
    General,
    ScaledDot,
    Softmax,
    attend,
    padding,
)
from heedful.course import check

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
Q, K, V = torch.randn(3, 8), torch.randn(5, 8), torch.randn(5, 4)


def scaled_dot(Q, K, V):
    scores = Q @ K.T / math.sqrt(Q.shape[1])  # [query, key]
    return torch.softmax(scores, dim=-1) @ V  # softmax row by row


def additive(Q, K, W_q, W_k, v):
    hidden = torch.tanh(
        (Q @ W_q.T)[:, None] + (K @ W_k.T)[None]
    )  # [query, key, hidden]
    return hidden @ v


scaled_dot(Q, K, V).shape

# %% [markdown] lang="en"
# ## The same with heedful
#
# Every score is a module, and `attend` is the same call for all of them.

# %% [markdown] lang="zh"
# ## 用 heedful 再算一遍
#
# 每种打分函数都是一个模块，`attend` 的用法都相同。

# %%
assert (
    abs(attend(Q, K, V, score=ScaledDot(8, 8)).context - scaled_dot(Q, K, V)).max()
    < 1e-6
)

score = Additive(8, 8, hidden_size=16)
print({name: list(parameter.shape) for name, parameter in score.named_parameters()})
with torch.no_grad():
    scores = additive(
        Q, K, score.query_projection.weight, score.key_projection.weight, score.vector
    )
by_hand = torch.softmax(scores, -1) @ V
assert abs(attend(Q, K, V, score=score).context - by_hand).max() < 1e-6

bilinear = General(8, 8)
by_hand = torch.softmax(Q @ bilinear.weight @ K.T, -1) @ V
assert abs(attend(Q, K, V, score=bilinear).context - by_hand).max() < 1e-6
print("all scores of heedful:", *SCORES)

# %% [markdown] lang="en"
# ## Sentences of different lengths
#
# In a batch, shorter sentences are filled up with **padding**, which must not be attended to. **Masked softmax** puts $-\infty$ in the place of its scores, before the softmax, so
# that the real keys share the whole weight. (A large negative number does the same as long as there is one real key; without any, it gives weight to
# padding, and $-\infty$ gives NaN. heedful gives zeros.) Code that computes a little too much and masks it is faster than a loop over sentences: `@` multiplies the matrices of all sentences at once, $[s, n, d]$ times $[s, d, m]$ to $[s, n, m]$ for $s$ sentences.

# %% [markdown] lang="zh"
# ## 长短不一的句子
#
# 一个批次里，短的句子用**填充符**（padding）补齐，注意力不应该落在填充符上。**带掩码的 softmax** 在 softmax 之前把这些分数换成 $-\infty$，全部权重由真正的键来分。（换成绝对值很大的负数也行，只要至少有一个真正的键；一个都没有时，它会把权重给填充符，$-\infty$ 则得到 NaN。heedful 给出零。）多算一点再遮住，比对句子逐个循环要快：`@` 一次乘完 $s$ 个句子的矩阵，$[s, n, d]$ 乘 $[s, d, m]$ 得到 $[s, n, m]$，即批量矩阵乘法。

# %%
lengths = torch.tensor([2, 5, 0])  # the third sentence is empty
queries, keys, values = torch.randn(3, 1, 8), torch.randn(3, 5, 8), torch.randn(3, 5, 4)
real = torch.arange(5) < lengths[:, None, None]  # [sentence, query, key]
scores = (queries @ keys.mT / math.sqrt(8)).masked_fill(~real, -torch.inf)
weights = torch.softmax(scores, dim=-1)
by_heedful = attend(
    queries,
    keys,
    values,
    score=ScaledDot(8, 8),
    mask=padding(lengths),
    need=["weights"],
)
assert abs((weights @ values)[:2] - by_heedful.context[:2]).max() < 1e-6
print(weights[:, 0].numpy().round(2), by_heedful.weights[:, 0].numpy().round(2))

# %% [markdown] lang="en"
# In training some weights are often dropped at random (**dropout**), so that no answer hangs on a single key. The weights that stay are divided by the share that stays on average, and so the mean context remains the same.

# %% [markdown] lang="zh"
# 训练时常随机丢弃一部分权重（**dropout**），让输出不依赖单独一个键。留下的权重除以平均留下的比例，所以上下文向量的平均值不变。

# %%
keeps = 0.8
kept = (torch.rand(20_000, 5) < keeps) / keeps  # many draws for the second sentence
dropped = (weights[1] * kept) @ values[1]
print("one draw:", dropped[0].numpy().round(2))
print("mean:    ", dropped.mean(0).numpy().round(2))
print("without: ", (weights @ values)[1, 0].numpy().round(2))

# %% [markdown] lang="en"
# ## A picture: why the root
#
# If the components of $q$ and $k$ are independent with variance 1, then $q^T k$ has variance $d$. For large $d$ the scores are large,
# softmax puts nearly all weight on one key, and hardly any gradient passes through it. Division by the root of $d_k$ brings the variance
# back to 1, which **keeps the products from growing too large**.

# %% [markdown] lang="zh"
# ## 图解：为什么除以平方根
#
# 如果 $q$ 和 $k$ 的各分量相互独立、方差为 1，那么 $q^T k$ 的方差是 $d$。$d$ 很大时内积也很大，softmax 把几乎全部权重给了一个键，梯度几乎传不回来。为了**防止内积过大**，除以 $d_k$ 的平方根，方差就回到 1。

# %% picture="scaling" alt="Largest weights of ten keys for sizes 4 to 1024 by four scores: with dot product and bilinear form they gather on one key, with scaled dot product and additive score they stay as they are" alt_zh="向量长度从 4 到 1024 时十个键的权重，从大到小，四种打分函数：点积和双线性的集中到一个键，缩放点积和加性的保持不变"
figure, axes = plt.subplots(1, 4, sharey=True, figsize=(9, 2.7))
for d in (4, 32, 256, 1024):
    queries, keys = torch.randn(64, d), torch.randn(64, 10, d)
    W, U, v = torch.randn(d, d) / d**0.5, torch.randn(d, d) / d**0.5, torch.randn(d)
    hidden = torch.tanh((queries @ W)[:, None] + keys @ U)
    forms = {
        "dot product": (keys @ queries[:, :, None])[..., 0],
        "bilinear": (keys @ (queries @ W)[:, :, None])[..., 0],
        "scaled dot product": (keys @ queries[:, :, None])[..., 0] / math.sqrt(d),
        "additive": hidden @ v / math.sqrt(d),
    }
    for axis, (name, scores) in zip(axes, forms.items(), strict=True):
        weights = torch.softmax(scores, -1).sort(descending=True).values.mean(0)
        axis.plot(weights, ".-", label=f"d = {d}")
        axis.set_title(name, fontsize=9)
        axis.set_xlabel("key, best first")
axes[0].set_ylabel("weight")
axes[0].legend(fontsize=7)
plt.show()

# %% [markdown] lang="en"
# How little gradient passes can be said exactly. For dot products with the keys as values, $f(q) = \sum_i \alpha_i k_i$, the derivative by the query is the
# **covariance** of the keys under the weights,
#
# $$\frac{\partial f}{\partial q} = \sum_i \alpha_i (k_i - f)(k_i - f)^T ,$$
#
# and if one key has nearly all the weight, nothing varies: the covariance is nearly zero.

# %% [markdown] lang="zh"
# 传回来的梯度有多小，可以精确地算出来。设用点积打分，键同时作值，$f(q) = \sum_i \alpha_i k_i$，它对查询的导数就是键在注意力分布下的**协方差**，
#
# $$\frac{\partial f}{\partial q} = \sum_i \alpha_i (k_i - f)(k_i - f)^T ,$$
#
# 如果几乎全部权重都在一个键上，协方差就接近零。


# %%
def pooled(q):
    return torch.softmax(K @ q, dim=0) @ K


for q in (Q[0], 20 * Q[0]):
    alpha, centred = torch.softmax(K @ q, dim=0), K - pooled(q)
    covariance = centred.T @ (alpha[:, None] * centred)
    derivative = torch.autograd.functional.jacobian(pooled, q)
    assert abs(derivative - covariance).max() < 1e-6
    print(
        f"largest weight {alpha.max():.3f}, norm of the derivative {derivative.norm():.3f}"
    )

# %% [markdown] lang="en"
# ## Where the dot product comes from
#
# The Gaussian kernel of lesson 1 compares by distance, and a distance is a dot product in disguise:
#
# $$-\tfrac12 \lVert q - k \rVert^2 = q \cdot k - \tfrac12 \lVert q \rVert^2 - \tfrac12 \lVert k \rVert^2 .$$
#
# The second term is the same for all keys, so the softmax cancels it. If all keys have about the same length, as after layer
# normalisation, the third cancels too, and the dot product alone remains: one product of matrices instead of all differences.

# %% [markdown] lang="zh"
# ## 点积从哪里来
#
# 第 1 课的高斯核按距离比较，而距离里就藏着点积：
#
# $$-\tfrac12 \lVert q - k \rVert^2 = q \cdot k - \tfrac12 \lVert q \rVert^2 - \tfrac12 \lVert k \rVert^2 .$$
#
# 第二项对所有的键都一样，softmax 会把它约掉。如果所有键的长度差不多（例如做过层归一化），第三项也会约掉，只剩点积：只要一次矩阵乘法，不必逐个算差。

# %%
q, k = torch.randn(3, 8), functional.normalize(torch.randn(6, 8), dim=-1)
by_distance = torch.softmax(-torch.cdist(q, k).square() / 2, -1)
by_product = torch.softmax(q @ k.T, -1)
assert abs(by_distance - by_product).max() < 1e-6
longer = k * torch.tensor([3.0, 1, 1, 1, 1, 1])[:, None]  # a long key: no longer
print(
    (
        torch.softmax(-torch.cdist(q, longer).square() / 2, -1)
        - torch.softmax(q @ longer.T, -1)
    )
    .abs()
    .max()
)

# %% [markdown] lang="en"
# ## Dot product or additive score?
#
# For $n$ queries and $m$ keys of $d$ numbers, dot products take $nmd$ multiplications and leave a table of $nm$ numbers. The additive score maps all queries and keys once, $(n + m)dh$ multiplications, and then takes a $\tanh$ of $h$ numbers for each
# *pair*: a table of $nmh$, which is written to memory and read again. The lengths are those of a sentence in lesson 4, where either will do; the Transformer of lesson 8 has attention in every layer and takes the product.

# %% [markdown] lang="zh"
# ## 点积还是加性？
#
# $n$ 个查询、$m$ 个键，每个 $d$ 维：点积要 $nmd$ 次乘法，得到 $nm$ 个数的表。加性模型先把所有的查询和键变换一次，$(n + m)dh$ 次乘法，然后对*每一对*查询和键算 $h$ 个 $\tanh$：$nmh$ 个数的表，要写进内存再读出来。第 4 课里长度不过是一个句子，用哪种都行；第 8 课的 Transformer 每一层都有注意力，就用点积。

# %%
for n in (32, 128, 512):
    queries, keys = torch.randn(n, 64), torch.randn(n, 64)
    W, U, v = torch.randn(64, 64) / 8, torch.randn(64, 64) / 8, torch.randn(64)
    calls = {
        "dot product": lambda q=queries, k=keys: q @ k.T,
        "additive": lambda q=queries, k=keys, p=(W, U, v): additive(q, k, *p),
    }
    for name, call in calls.items():
        trials = []
        for _ in range(5):
            start = time.perf_counter()
            call()
            trials.append(time.perf_counter() - start)
        print(f"n = m = {n}, {name}: {1000 * min(trials):.2f} ms")

# %% [markdown] lang="en"
# ## Temperature
#
# $\mathrm{softmax}(z)_i = e^{z_i/\tau} / \sum_j e^{z_j/\tau}$ has a **temperature** $\tau$. A high one makes the weights more equal, a low one
# gathers them on the best key. Each row still sums to 1.

# %% [markdown] lang="zh"
# ## 温度
#
# $\mathrm{softmax}(z)_i = e^{z_i/\tau} / \sum_j e^{z_j/\tau}$ 里的 $\tau$ 是**温度参数**。$\tau$ 较大时权重趋向于均匀，较小时更集中在分数最大的键上；按行做 softmax，**每一行的和都变为 1**。

# %% picture="temperature" alt="Weights of six keys at temperatures 0.2, 1 and 5: nearly one key, a slope, nearly equal" alt_zh="温度 0.2、1、5 时六个键的权重：几乎只有一个键，一道斜坡，几乎相等"
z = torch.tensor([2.0, 1.2, 0.7, 0.1, -0.5, -1.0])
for place, tau in enumerate((0.2, 1.0, 5.0)):
    plt.bar(
        torch.arange(6) + place * 0.25,
        torch.softmax(z / tau, -1),
        0.25,
        label=f"τ = {tau}",
    )
eye = torch.eye(6)
by_heedful = attend(
    torch.ones(1, 1),
    z[:, None],
    eye,
    score=Dot(1, 1),
    normalizer=Softmax(temperature=5.0),
).context
assert abs(by_heedful[0] - torch.softmax(z / 5.0, -1)).max() < 1e-6
plt.xlabel("key")
plt.ylabel("weight")
plt.legend()
plt.show()

# %% [markdown] lang="en"
# ## Exercises
#
# 1. `scores.variance`: the components of $q$ and $k$ are independent with mean 0 and variance 1. What is the standard deviation of
#    $q^T k$ for vectors of 64 numbers?
# 2. `scores.additive`: a function of `query [3], key [5, 4], W [6, 3], U [6, 4], v [6]` that gives the five additive scores.
# 3. `scores.attention`: a function of `query, key, value` that gives the contexts of scaled dot-product attention, in NumPy.
# 4. `scores.masked`: a function of `scores [2, 5], lengths [2]` that gives the weights of two sentences of these lengths, in NumPy.
# 5. `scores.gradient`: a function of `query [3], key [5, 3]` that gives the derivative of the context by the query, for dot products with the keys as values.

# %% [markdown] lang="zh"
# ## 练习
#
# 1. `scores.variance`：$q$ 和 $k$ 的各分量相互独立，均值 0，方差 1。长度为 64 时，$q^T k$ 的标准差是多少？
# 2. `scores.additive`：写一个函数，参数是 `query [3], key [5, 4], W [6, 3], U [6, 4], v [6]`，给出五个加性分数。
# 3. `scores.attention`：用 NumPy 写一个函数，参数是 `query, key, value`，给出缩放点积注意力的上下文向量。
# 4. `scores.masked`：用 NumPy 写一个函数，参数是 `scores [2, 5], lengths [2]`，给出这两个长度的句子的权重。
# 5. `scores.gradient`：写一个函数，参数是 `query [3], key [5, 3]`，点积打分、键就是值，给出上下文向量对查询的导数。

# %%
check("scores.variance", ...)
check("scores.additive", ...)
check("scores.attention", ...)
check("scores.masked", ...)
check("scores.gradient", ...)
