# %% [markdown] lang="en"
# # 7 Self-attention: order, cost, and what came before
#
# In **self-attention** a sequence $x_1, …, x_n$ asks itself: each $x_i$ is query, key and value at once, and $y_i = f(x_i, (x_1, x_1), …, (x_n, x_n))$. There is **no decoder**: the output is a **representation of the input**. (Cheng et al. 2016 and Lin et al. 2017 had it above a recurrent network; without one it is the next lesson.) Three learned matrices make it more than a comparison of a vector with itself,
#
# $$Q = X W_Q, \quad K = X W_K, \quad V = X W_V, \qquad \mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left(\frac{Q K^T}{\sqrt{d_k}}\right) V,$$
#
# so it is not true that $K = Q = V$: all three are **linear maps** of the same $X$. $QK^T$ is an $n \times n$ table of **strengths of attention** between words; each row of the **output matrix** $Z$ is the weighted sum of all values.
#
# **Multi-head attention** runs $h$ of them side by side, each with its own maps, say one for **near relations** and one for **far relations**; the results are **concatenated** and mapped. A head has $d/h$ numbers, so that all of them cost as much as a single one of $d$:
#
# $$Z_i = \mathrm{Attention}(X W_Q^{(i)}, X W_K^{(i)}, X W_V^{(i)}), \qquad \mathrm{MultiHead}(X) = \mathrm{Concat}(Z_1, …, Z_h)\, W_O .$$
#
# (Notes 4 of [this course](README.md) call **several query vectors** $q_1, …, q_M$ heads, each of which looks at another part of the input; their results are concatenated as well. Lesson 9 has two such queries.)
#
# **Position encoding.** Self-attention alone does not know the order of words: shuffle them, and the outputs are shuffled in the same way (a **bag of words**). So a
# **matrix of position encodings** $P$ is added to the input, $X + P$: a learned table, or
#
# $$p_{i,2j} = \sin\left(\frac{i}{10000^{2j/d}}\right), \qquad p_{i,2j+1} = \cos\left(\frac{i}{10000^{2j/d}}\right).$$
#
# The formula also gives positions for **sentences longer than any in the training set**, and **relative positions** are linear: with $\omega_j = 1/10000^{2j/d}$ the pair at $i + \delta$ is the pair at $i$ turned by a
# **projection matrix** that does not depend on $i$,
#
# $$\begin{pmatrix} \cos(\delta\omega_j) & \sin(\delta\omega_j) \\ -\sin(\delta\omega_j) & \cos(\delta\omega_j) \end{pmatrix} \begin{pmatrix} p_{i,2j} \\ p_{i,2j+1} \end{pmatrix} = \begin{pmatrix} p_{i+\delta,2j} \\ p_{i+\delta,2j+1} \end{pmatrix}.$$

# %% [markdown] lang="zh"
# # 7 自注意力：次序、代价，以及跟 CNN、RNN 对比
#
# 在**自注意力**里，序列 $x_1, …, x_n$ 向自己提问：每个 $x_i$ 同时当做键、值和查询，$y_i = f(x_i, (x_1, x_1), …, (x_n, x_n))$。这里**没有解码器**，输出就是输入的表示，解决的是**表征问题**。（Cheng 等（2016）、Lin 等（2017）把它放在循环网络之上；完全不用循环网络的，下一课再讲。）有了三个可学习的矩阵，就不只是自己和自己比，
#
# $$Q = X W_Q, \quad K = X W_K, \quad V = X W_V, \qquad \mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left(\frac{Q K^T}{\sqrt{d_k}}\right) V,$$
#
# 所以“自注意力就是 **K=Q=V**”的说法不对：三者是同一个 $X$ 的不同**线性变换**。$QK^T$ 是 $n \times n$ 的矩阵，表示单词之间的 **attention 强度**；**输出矩阵 Z** 的每一行是所有值的加权和。
#
# **多头注意力**同时做 $h$ 个，每个头各有自己的变换，希望抽取不同的信息，例如**短距离关系**和**长距离关系**；各个头的结果**拼接**起来，再做一次线性变换。每个头只有 $d/h$ 维，所以全部的头合起来，代价和一个 $d$ 维的头一样：
#
# $$Z_i = \mathrm{Attention}(X W_Q^{(i)}, X W_K^{(i)}, X W_V^{(i)}), \qquad \mathrm{MultiHead}(X) = \mathrm{Concat}(Z_1, …, Z_h)\, W_O .$$
#
# 在[本课程](README.md)的笔记 4 里，多头的“头”指**多个查询向量** $q_1, …, q_M$，各关注输入的不同部分，再把结果拼接，第 9 课的图像就有两个这样的查询；两种说法要区分。
#
# **位置编码**。自注意力没有记录位置信息：把词的次序打乱，输出只是跟着打乱，这就成了**词袋模型**。所以把**位置编码矩阵** $P$ 加到输入上，$X + P$ 就是单词的**表示向量**。$P$ 可以**训练得到**，也可以用公式：
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
from heedful.course.diagram import arrow, box, canvas
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
# ## The same with heedful

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
# ## A picture: several heads
#
# With $d = 16$ and four heads each map gives 4 numbers a word, and the four results side by side are 16 again. A program makes the maps of all heads in one product and cuts the result into heads. Any score will do within a head.

# %% [markdown] lang="zh"
# ## 图解：多个头
#
# $d = 16$、四个头时，每个头的变换给每个词 4 个数，四个结果拼接起来又是 16 个。程序把所有头的变换合成一次矩阵乘法，再把结果切成各个头。头里面用哪种打分函数都可以。

# %% picture="multihead" alt="The input goes into four heads; in each, three linear maps give query, key and value of four numbers, which go into attention; the four results are joined to 16 numbers and mapped to the output" alt_zh="输入进入四个头；每个头用三个线性变换得到 4 维的查询、键、值，再做注意力；四个结果拼接成 16 维，经过线性变换得到输出"
BLUE, ORANGE, GREEN, GREY = "#d6e6f7", "#f8e3cf", "#d7eee1", "#f1f1f1"
figure, axis = plt.subplots(figsize=(9, 3.5))
canvas(axis, 90, 35)
box(axis, 45, 2, "X: a row of 16 numbers for each word", width=84, colour=GREY)
for head in range(HEADS):
    x = 12 + 22 * head
    for shift, part in ((-6, "Q"), (0, "K"), (6, "V")):
        arrow(axis, (x + shift, 3.5), (x + shift, 6.4))
        box(axis, x + shift, 8, f"map {part}", width=5.4, height=3.2, colour=ORANGE)
        arrow(axis, (x + shift, 9.6), (x + shift, 13.4))
        axis.text(x + shift + 0.5, 11, "4", fontsize=7)
    box(axis, x, 15, f"attention, head {head + 1}", width=18, height=3.2, colour=BLUE)
    arrow(axis, (x, 16.6), (x, 20.9))
    axis.text(x + 0.5, 18.3, "4", fontsize=7)
    box(axis, x, 22.5, f"Z{head + 1}", width=21.8, height=3.2, colour=GREEN)
axis.text(45.6, 24.7, "joined: 16", fontsize=7)
arrow(axis, (45, 24.1), (45, 26.4))
box(axis, 45, 28, "map O", width=12, height=3.2, colour=ORANGE)
arrow(axis, (45, 29.6), (45, 32))
axis.text(
    45, 32.6, "output: a row of 16 numbers for each word", ha="center", fontsize=8
)
plt.show()

# %% [markdown] lang="en"
# ## A picture: positions
#
# Count in binary: the last digit changes at every number, the one before it at every second, the next at every fourth. The columns of $P$ count in the same way, with waves in the place of digits: fast ones tell
# neighbours apart, slow ones tell which part of the sentence it is.

# %% [markdown] lang="zh"
# ## 图解：位置编码
#
# 用二进制数数：最后一位每次都变，前一位每两次变一次，再前一位每四次变一次。$P$ 的各列也这样数，只是数字换成了波：快的波分得清相邻的位置，慢的波说明在句子的哪一部分。

# %% picture="positions" alt="Left, four columns of the matrix of position codes, sines and cosines, two faster than the others; middle, the whole matrix, waves that slow down from left to right and go on below a line at position 50, the longest sentence of training; right, products of the codes of two positions, which depend on their distance only" alt_zh="左：位置编码矩阵的四列，正弦和余弦，两列快两列慢；中：整个矩阵，波从左到右越来越慢，过了位置 50 的虚线（训练集里最长的句子）仍照样延续；右：两个位置的编码的内积，只取决于距离"
print([f"{i:03b}" for i in range(8)])
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(9, 2.9))
for column in (8, 9, 16, 17):
    left.plot(P[:, column], label=f"{column}")
left.legend(title="column", fontsize=7, title_fontsize=7)
left.set(xlabel="position")
middle.imshow(positions(70, 64), aspect="auto", cmap="RdBu")
middle.axhline(49.5, color="black", lw=1, ls="--")  # no training sentence was longer
middle.set(xlabel="dimension", ylabel="position")
right.imshow(P @ P.T)
right.set(xlabel="position", ylabel="position")
plt.show()

# %% [markdown] lang="en"
# ## A picture: a step is a turn
#
# Two columns of one frequency, the sine and the cosine, are a point on a circle. One word further on, the point has moved by the angle $\omega_j$, wherever it was; $\delta$ words further on by
# $\delta\omega_j$. That is the matrix above, and so "three words back" is the same linear map at every place, which a head can learn as part of $W_Q$ or $W_K$.
#
# **Rotary positions** (Su et al. 2021), now the usual choice, add nothing to the words. They turn each pair of numbers of a query at $i$ by $i\omega_j$ and of a key at $j'$ by $j'\omega_j$; in the dot product only the difference of the angles is
# left. (Shaw et al. 2018 learn a vector for each distance instead.)

# %% [markdown] lang="zh"
# ## 图解：走一步就是转一个角
#
# 同一频率的两列，正弦和余弦，是圆上的一个点。往后一个词，不管原来在哪里，这个点都转过角 $\omega_j$；往后 $\delta$ 个词，转过 $\delta\omega_j$。这就是上面的矩阵，所以“往回数三个词”在任何位置都是同一个线性变换，一个头可以把它学进 $W_Q$ 或 $W_K$。
#
# 现在常用的是**旋转位置编码**（Su 等，2021），不给词向量加任何东西：位置 $i$ 的查询，每一对数转 $i\omega_j$；位置 $j'$ 的键转 $j'\omega_j$；内积里只剩下两个角之差。（Shaw 等（2018）则为每个距离学一个向量。）

# %% picture="rotation" alt="Three circles for three frequencies; points of the positions on each, and three arrows from a position to the one three further on, which span the same angle; the angle is large in the first circle and small in the third" alt_zh="三个频率的三个圆，圆上是各个位置的点，三个箭头从一个位置指向后面第三个位置，转过的角都相同；第一个圆的角大，第三个的小"
figure, axes = plt.subplots(1, 3, figsize=(9, 3))
for axis, column in zip(axes, (4, 8, 16), strict=True):
    sine, cosine = P[:20, column], P[:20, column + 1]
    axis.scatter(cosine, sine, c=range(20), cmap="viridis", s=15)
    for i in (0, 5, 10):
        axis.annotate(
            "",
            xy=(cosine[i + 3], sine[i + 3]),
            xytext=(cosine[i], sine[i]),
            arrowprops={"arrowstyle": "->", "color": "#c26410"},
        )
    axis.set(title=f"columns {column}, {column + 1}", aspect="equal")
    axis.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), xlabel="cosine", ylabel="sine")
plt.show()


def rotate(x, i):
    """Turn each pair of numbers of x by the angle of position i."""
    angle = i / 10000 ** (torch.arange(0, len(x), 2) / len(x))
    a, b = x[0::2], x[1::2]
    both = a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()
    return torch.stack(both, dim=-1).flatten()


q, k = torch.randn(2, 8)
for i in (10, 400):  # seven words apart, wherever they are
    assert abs(rotate(q, i) @ rotate(k, i - 7) - rotate(q, 7) @ k) < 1e-6

# %% [markdown] lang="en"
# ## Cost beside CNN and RNN
#
# |  | CNN (width $k$) | RNN | self-attention |
# | --- | --- | --- | --- |
# | cost | $O(knd^2)$ | $O(nd^2)$ | $O(n^2d)$ |
# | steps that can run side by side | $O(n)$ | $O(1)$ | $O(n)$ |
# | longest path between two words | $O(n/k)$ | $O(n)$ | $O(1)$ |
#
# A convolution multiplies a window of $k$ vectors with a $kd \times d$ matrix at each of $n$ places, all at once; to bring two far words together it takes many layers. An RNN multiplies each of $n$ states with a $d \times d$ matrix, one
# after the other. Self-attention takes $n^2$ dot products of $d$ numbers, and again as many for the weighted sums. The longer the path, the harder it is for a gradient to carry a relation along it (Hochreiter et al. 2001).
#
# Self-attention is fully parallel and any two words are one step apart; for long sequences its cost grows with the square. So would its memory, for a table of $n^2$ weights; fast programs, such as heedful, compute it
# a tile at a time and never hold the whole. There are forms that compute less: windows (lesson 5), a few keys for all queries, or weights that are products of two features, so that keys and values are summed first (Tay et al. 2020 have a survey).
# They give up the direct path between some words, or the softmax.
#
# The picture shows how the last of eight words comes to know of the first.

# %% [markdown] lang="zh"
# ## 跟 CNN、RNN 对比
#
# |  | CNN（窗口 $k$） | RNN | 自注意力 |
# | --- | --- | --- | --- |
# | **计算复杂度** | $O(knd^2)$ | $O(nd^2)$ | $O(n^2d)$ |
# | **并行度** | $O(n)$ | $O(1)$ | $O(n)$ |
# | **最长路径** | $O(n/k)$ | $O(n)$ | $O(1)$ |
#
# 卷积在 $n$ 个位置上各用 $kd \times d$ 的矩阵乘一个窗口的 $k$ 个向量，可以同时算，但要很多层才能让相距很远的两个词相遇。RNN 用 $d \times d$ 的矩阵乘 $n$ 个状态，只能一个接一个。自注意力要 $n^2$ 个 $d$ 维内积，加权求和又是这么多。路径越长，梯度越难沿着它把两个词的关系传过去（Hochreiter 等，2001）。
#
# 自注意力完全并行，任意两个词只隔一步；但对长序列计算复杂度高，随长度的平方增长。$n^2$ 个权重的表占的内存也是如此；快的程序（heedful 也一样）一块一块地算，从不存下整张表。也有少算一些的办法：只看窗口（第 5 课），所有查询只看少数几个键，或者把权重写成两个特征的乘积，先对键和值求和（Tay 等（2020）有综述）。代价是某些词之间不再直接相连，或者不再是 softmax。
#
# 下图画出八个词里的最后一个怎样得到第一个词的信息。

# %% picture="paths" alt="Three nets over eight words: convolutions of width 3 in seven layers, where the path from the first word to the last climbs a layer with each word; a recurrent net, where it passes through all eight states; self-attention, where one arrow leads straight from the first to the last" alt_zh="八个词上的三种网络：窗口为 3 的卷积，七层，从第一个词到最后一个词的路径一层一层往上走；循环网络，路径经过全部八个状态；自注意力，一条箭头从第一个词直接到最后一个词"
figure, axes = plt.subplots(1, 3, figsize=(9, 2.8))
layers_of = {"CNN, k = 3": 7, "RNN": 1, "self-attention": 1}
paths = {
    "CNN, k = 3": [(layer, layer) for layer in range(8)],
    "RNN": [(0, 0), *((place, 1) for place in range(8))],
    "self-attention": [(0, 0), (7, 1)],
}
for axis, (name, depth) in zip(axes, layers_of.items(), strict=True):
    for layer in range(depth + 1):
        axis.plot(range(8), [layer] * 8, "o", ms=5, color="#757a82")
    for layer in range(1, depth + 1):
        for place in range(8):
            near = {"CNN, k = 3": (-1, 0, 1), "RNN": (0,)}.get(name, range(-8, 8))
            for other in (place + step for step in near if 0 <= place + step < 8):
                line = (other, place), (layer - 1, layer)
                axis.plot(*line, color="#757a82", lw=0.4)
        if name == "RNN":
            axis.plot((0, 7), (1, 1), color="#757a82", lw=0.4)
    axis.plot(*zip(*paths[name], strict=True), "o-", color="#c26410", lw=2, ms=5)
    steps = len(paths[name]) - 1
    axis.set_title(f"{name}: {steps} step" + "s" * (steps > 1), fontsize=9)
    axis.set(xticks=range(8), xticklabels=range(1, 9), yticks=[], xlabel="word")
    axis.set_ylim(-0.5, depth + 0.5)
plt.show()

# %% [markdown] lang="en"
# And as times on this machine:

# %% [markdown] lang="zh"
# 再在这台机器上计时：

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
# A decoder must not see words after its own. **Masked multi-head attention** computes the output for $x_i$ **as if the sequence had length $i$**: a **mask matrix** takes
# out the scores above the diagonal, **before the softmax**, so that every row still sums to 1.

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
    axis.set(xlabel="key, a row of X W_K", ylabel="query, a row of X W_Q")
    axis.set_title("masked" if mask else "all words")
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
