# %% [markdown] lang="en"
# # 5 Luong: global and local attention
#
# Luong, Pham and Manning (2015) made attention simpler, and tried what works best. Encoder and decoder are **stacked LSTMs of two layers**, both one-way; the
# decoder starts from the last state of the encoder, so both have the same size.
#
# The query is the *present* state $h_t$ of the top layer, not the one before. The **basic model** joins the **context vector** and the state to the **attentional hidden state**,
#
# $$\tilde{h}_t = \tanh(W_c [c_t; h_t]), \qquad p(y_t \mid y_{<t}, x) = \mathrm{softmax}(W_s \tilde{h}_t).$$
#
# **Global attention** looks at all source states $\bar{h}_s$. Its weights, the **alignment vector** $a_t$, follow from a **score function**, for which
# there are three **ways to align**: **dot** $h_t^T \bar{h}_s$; **general** $h_t^T W_a \bar{h}_s$, which is a fully connected layer without a bias; **concat** $v_a^T \tanh(W_a [h_t; \bar{h}_s])$.
#
# **Local attention** looks at a **window of fixed size** $2D+1$ around a centre $p_t$, so its cost does not grow with the source, and unlike hard
# attention it is **differentiable almost everywhere**. In **local-m** (monotonic) the centre is $p_t = t$. In **local-p** (predictive) it is learned,
#
# $$p_t = S \cdot \sigma(v_p^T \tanh(W_p h_t)),$$
#
# a real number, and a **normal distribution** around it, with the standard deviation $\sigma = D/2$ (no sigmoid here), favours near words:
#
# $$a_t(s) = \mathrm{softmax}_s(\mathrm{score}(h_t, \bar{h}_s)) \exp\left(-\frac{(s - p_t)^2}{2\sigma^2}\right).$$
#
# Over which words does the softmax run? In the paper, over the window; in notes 3 of [this course](README.md), over the whole source, with a cut afterwards, a **truncated
# normal distribution**. heedful has both, and a third without the cut.

# %% [markdown] lang="zh"
# # 5 Luong：全局注意力和局部注意力
#
# Luong、Pham 和 Manning（2015）把注意力简化了，并且试出了哪种效果最好。编码器和解码器都是**两层单向循环神经网络**，门控单元是 LSTM；编码器最后时刻的隐状态直接送入解码器，所以两者的大小相同。
#
# 查询是解码器顶层*当前*的隐状态 $h_t$，不是上一步的。**基础模型**把**上下文向量** $c_t$ 和 $h_t$ 拼接，得到**引入注意力的隐藏状态向量**，再预测：
#
# $$\tilde{h}_t = \tanh(W_c [c_t; h_t]), \qquad p(y_t \mid y_{<t}, x) = \mathrm{softmax}(W_s \tilde{h}_t).$$
#
# **全局注意力**考虑源句的全部隐状态 $\bar{h}_s$。权重叫做**校准向量** $a_t$（alignment vector），**score 函数**有三种**对齐方式**，任选一种：**dot** $h_t^T \bar{h}_s$；**general** $h_t^T W_a \bar{h}_s$，相当于一个没有偏置的**全连接层**；**concat** $v_a^T \tanh(W_a [h_t; \bar{h}_s])$。
#
# **局部注意力**只考虑中心 $p_t$ 附近**固定窗口大小** $2D+1$ 的一部分，代价不会随着源句变长而增加，而且与硬性注意力不同，**几乎处处可导**。**local-m** 的中心就是当前时间步，$p_t = t$；**local-p** 的中心是学出来的，
#
# $$p_t = S \cdot \sigma(v_p^T \tanh(W_p h_t)),$$
#
# 这是一个**浮点数**；再乘上以它为均值、标准差 $\sigma = D/2$ 的**正态分布**项（这个 $\sigma$ 不是上式里的 sigmoid 函数），窗口中心附近的词更重要：
#
# $$a_t(s) = \mathrm{softmax}_s(\mathrm{score}(h_t, \bar{h}_s)) \exp\left(-\frac{(s - p_t)^2}{2\sigma^2}\right).$$
#
# softmax 对哪些词做？论文里只对窗口之内的词做；[本课程](README.md)的笔记 3 对整个源句做，之后再截断，即**截断的正态分布**。heedful 两种都有，还有不截断的第三种。

# %% [markdown] lang="en"
# ## From scratch

# %% [markdown] lang="zh"
# ## 从零实现

# %%
import matplotlib.pyplot as plt
import torch

from heedful.attention import (
    Concat,
    Dot,
    General,
    attend,
    local_monotonic,
    local_predictive,
)
from heedful.course import check
from heedful.course.diagram import arrow, box, canvas
from heedful.models.inputs import TokenInputs
from heedful.models.luong import LuongConfig

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
SOURCE, SIZE, D = 12, 8, 2
memory, state = torch.randn(SOURCE, SIZE), torch.randn(1, SIZE)
place = torch.arange(SOURCE)


def local_m(scores, t):
    near = (place - t).abs() <= D
    return torch.softmax(scores.masked_fill(~near, -torch.inf), -1)


def local_p(scores, p, over):
    near, bell = (
        (place - p).abs() <= D,
        torch.exp(-((place - p) ** 2) / (2 * (D / 2) ** 2)),
    )
    if over == "window":  # the paper: softmax within the window
        return torch.softmax(scores.masked_fill(~near, -torch.inf), -1) * bell
    weights = torch.softmax(scores, -1) * bell  # softmax over the whole source
    return weights * near if over == "cut" else weights  # notes 3: and cut


# %% [markdown] lang="en"
# ## The same with heedful

# %% [markdown] lang="zh"
# ## 用 heedful 再算一遍

# %%
general = General(SIZE, SIZE)
with torch.no_grad():
    scores = state @ general.weight @ memory.T
assert (
    abs(
        torch.softmax(scores, -1) @ memory
        - attend(state, memory, memory, score=general).context
    ).max()
    < 1e-6
)
concat = Concat(SIZE, SIZE, hidden_size=6)
with torch.no_grad():
    joined = torch.cat((state.expand(SOURCE, SIZE), memory), -1)
    by_concat = torch.tanh(joined @ concat.weight.T) @ concat.vector
for score, by_hand in ((Dot(SIZE, SIZE), state @ memory.T), (concat, by_concat)):
    by_heedful = attend(state, memory, memory, score=score, need=["weights"]).weights
    assert abs(torch.softmax(by_hand, -1) - by_heedful).max() < 1e-6


def weights_of(mask):
    return attend(
        state, memory, memory, score=general, mask=mask, need=["weights"]
    ).weights


assert abs(local_m(scores, 5) - weights_of(local_monotonic(D, first=5))).max() < 1e-6
for over in ("window", "source", "cut"):
    centre = torch.tensor([4.3])
    assert (
        abs(
            local_p(scores, 4.3, over)
            - weights_of(local_predictive(centre, D, over=over))
        ).max()
        < 1e-6
    )

# %% [markdown] lang="en"
# The whole model, step by step, with **input feeding**: $\tilde{h}$ of the step before enters beside the word, so that the model knows which
# words it has already translated.

# %% [markdown] lang="zh"
# 下面一步一步写出整个模型，包括 **Input-feeding**：把上一步的 $\tilde{h}$ 和词一起作为输入，让模型知道哪些词已经翻译过。

# %% picture="feeding" alt="Two layers of LSTMs read three words and go on as decoder; the upper states and the query give scores, alignment vector and context; with the state it becomes the attentional state, which predicts the next word and is fed into the next step" alt_zh="两层 LSTM 读三个词，接着作为解码器；上层的隐状态和查询得到分数、校准向量和上下文向量，再与隐状态合成引入注意力的隐藏状态，用来预测下一个词，并送入下一步"
BLUE, ORANGE, GREY = "#d6e6f7", "#f8e3cf", "#f1f1f1"
figure, axis = plt.subplots(figsize=(9, 4.4))
canvas(axis, 90, 43)
for x, word in (
    (8, "word 1"),
    (20, "word 2"),
    (32, "word 3"),
    (54, "last word"),
    (78, "next word"),
):
    axis.text(x, 0, word, ha="center", fontsize=8)
    arrow(axis, (x, 2), (x, 5.8))
    arrow(axis, (x, 9.2), (x, 12.3))
    for y in (7.5, 14):
        box(axis, x, y, "LSTM", width=8, height=3.4, colour=BLUE)
        if x < 78:
            arrow(axis, (x + 4, y), ({32: 50, 54: 74}.get(x, x + 8), y))
    if x < 40:
        arrow(axis, (x, 15.7), (x, 20.3))
box(axis, 20, 22, "score: dot, general (a linear map), concat", 32, 3.4, ORANGE)
arrow(axis, (20, 23.7), (20, 27.3))
box(axis, 20, 29, "softmax: alignment vector a", 32, 3.4, GREY)
arrow(axis, (20, 30.7), (20, 34.3))
box(axis, 20, 36, "context vector c, a mean of states", 32, 3.4, ORANGE)
arrow(axis, (36, 36), (42, 36))
arrow(axis, (52, 15.7), (52, 22), (36, 22))
axis.text(45, 22.7, "query", ha="center", fontsize=7)
arrow(axis, (54, 15.7), (54, 34.3))
box(axis, 54, 36, "attentional state tanh(W [c; h])", 24, 3.4, ORANGE)
arrow(axis, (54, 37.7), (54, 40.3))
axis.text(54, 41, "softmax: next word", ha="center", fontsize=8)
fed = (66, 36), (69, 36), (69, 3.8), (77, 3.8), (77, 5.8)
arrow(axis, *fed, colour="#c26410")
axis.text(70, 28, "input feeding", color="#c26410", fontsize=8)
plt.show()

# %%
model = LuongConfig(
    embedding_size=6,
    hidden_size=SIZE,
    num_layers=2,
    is_source_reversed=False,
    attention={"window": "global"},
).build(9, 9, is_shared=False)
p = {name: parameter.detach() for name, parameter in model.named_parameters()}


def lstm(name, x, h, c, more=0.0):
    i, f, g, o = (
        p[f"{name}.input_map.weight"] @ x
        + p[f"{name}.gates_map"] @ h
        + p[f"{name}.input_map.bias"]
        + more
    ).chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def luong(source, target_in):
    zero = torch.zeros(SIZE)
    lower, upper = (zero, zero), (zero, zero)  # h and c of both layers
    states, logits, fed = [], [], zero
    for x in p["source_embedding.weight"][source]:
        lower = lstm("encoder.layers.0", x, *lower)
        upper = lstm("encoder.layers.1", lower[0], *upper)
        states.append(upper[0])
    states = torch.stack(states)
    for x in p["target_embedding.weight"][target_in]:
        feeding = p["feed_map.weight"] @ fed  # input feeding
        lower = lstm("decoder.layers.0", x, *lower, feeding)
        upper = lstm("decoder.layers.1", lower[0], *upper)
        h = upper[0]
        weights = torch.softmax(states @ (h @ p["score.weight"]), 0)  # general
        fed = torch.tanh(
            p["combine.weight"] @ torch.cat((weights @ states, h))
        )  # attentional hidden state
        logits.append(p["output.weight"] @ fed)
    return torch.stack(logits)


source, target_in = torch.tensor([[5, 3, 8, 2]]), torch.tensor([[1, 7, 4]])
with torch.no_grad():
    model.eval()
    by_heedful = model.logits(
        model(TokenInputs(source, torch.tensor([4])), target_in).features
    )[0]
assert abs(luong(source[0], target_in[0]) - by_heedful).max() < 1e-6

# %% [markdown] lang="en"
# ## A picture: the scores
#
# The same query and the same twelve states by the three score functions; *general* and *concat* have random parameters here.

# %% [markdown] lang="zh"
# ## 图解：score 函数
#
# 同一个查询、同样的十二个隐状态，用三种 score 函数得到的权重；general 和 concat 的参数这里是随机的。

# %% picture="ways" alt="Weights of twelve source words by dot, by general with a table of its matrix below, and by concat: each score finds other words" alt_zh="十二个源词的权重：dot、general（下面是它的矩阵）、concat，三种函数各注意到不同的词"
named = {"dot": Dot(SIZE, SIZE), "general": general, "concat": concat}
figure, axes = plt.subplots(2, 3, figsize=(9, 4))
for axis, (name, score) in zip(axes[0], named.items(), strict=True):
    attended = attend(state, memory, memory, score=score, need=["weights"])
    axis.bar(range(SOURCE), attended.weights[0].detach())
    axis.set_title(name, fontsize=9)
axes[0, 0].set(xlabel="source word", ylabel="weight")
matrices = None, general.weight, concat.weight
for axis, matrix in zip(axes[1], matrices, strict=True):
    axis.set(xticks=[], yticks=[])
    if matrix is None:
        axis.text(0.5, 0.5, "no parameters", ha="center", va="center")
    else:
        axis.imshow(matrix.detach(), cmap="RdBu")
        axis.set(xlabel="W, a linear map without a bias")
plt.show()

# %% [markdown] lang="en"
# ## A picture: windows

# %% [markdown] lang="zh"
# ## 图解：窗口

# %% picture="windows" alt="Weights of 24 source words in five forms: global on all, local-m and local-p in a window; local-p of three kinds that differ at its edges" alt_zh="24 个源词的权重，五种形式：全局分布在所有词上，local-m 和三种 local-p 只在窗口里，三种 local-p 的边缘不同"
torch.manual_seed(3)
D, place, scores = 5, torch.arange(24), torch.randn(1, 24) * 0.7
forms = {
    "global": torch.softmax(scores, -1),
    "local-m, p = 11": local_m(scores, 11),
    **{
        f"local-p, p = 11.3, {over}": local_p(scores, 11.3, over)
        for over in ("window", "cut", "source")
    },
}
figure, axes = plt.subplots(1, len(forms), sharey=True, figsize=(9, 2.4))
for axis, (name, weights) in zip(axes, forms.items(), strict=True):
    axis.bar(place, weights[0])
    axis.set_title(name, fontsize=8)
axes[0].set(xlabel="source word", ylabel="weight")
plt.show()

# %% [markdown] lang="en"
# The centre of local-p is a number that may change a little, and the weight of a word changes with it: along a bell, cut or not. Where the word enters or leaves the window the cut weight jumps, and only there has it no derivative.

# %% [markdown] lang="zh"
# local-p 的中心可以一点点移动，词的权重也随之变化，沿着一条钟形曲线，截断或不截断。截断的权重只在词进出窗口的地方跳变，只有在那里没有导数。

# %% picture="centre" alt="Weight of one word while the centre moves from 4 to 20: without a cut a whole bell; cut, the same bell with a small jump at each edge of the window, and zero outside; a dot marks a centre of 11.3" alt_zh="中心从 4 移到 20 时一个词的权重：不截断是完整的钟形；截断时是同样的钟形，在窗口两端各有一次小的跳变，窗口之外为零；圆点标出中心 11.3"
centres = torch.arange(4, 20, 0.05)
for over, style in (("source", "--"), ("cut", "-")):
    curve = [local_p(scores, p_t, over)[0, 12] for p_t in centres]
    plt.plot(centres, curve, style, label={"source": "whole bell"}.get(over, over))
plt.plot(11.3, local_p(scores, 11.3, "cut")[0, 12], "o", color="#757a82")
plt.axvspan(12 - D, 12 + D, alpha=0.1)
plt.xlabel("centre p, a real number")
plt.ylabel("weight of word 12")
plt.legend()
plt.show()

# %% [markdown] lang="en"
# In the paper's experiments local-p with the general score did best. [Results](../results.md) has this comparison on Multi30k, beside **input feeding**
# and BLEU by source length.

# %% [markdown] lang="zh"
# 论文的实验里，**local-p + general** 的组合效果最好。[结果](../results.md)一页（英文）有 Multi30k 上的同样比较，包括 Input-feeding 和按源句长度统计的 BLEU：**长句**上，有注意力的模型普遍要好一些。

# %% [markdown] lang="en"
# ## Exercises
#
# 1. `luong.window`: $p_t = 7.3$, $D = 2$, and the source has 20 words (numbered from 0). Which are attended to? Give a list.
# 2. `luong.general`: a function of `query [3], key [5, 4], W [3, 4]` that gives the five general scores.
# 3. `luong.local`: a function of `scores, p, D` that gives the weights of local-p as notes 3 have it: softmax over the whole source, the
#    normal distribution, and zero outside of the window.

# %% [markdown] lang="zh"
# ## 练习
#
# 1. `luong.window`：$p_t = 7.3$，$D = 2$，源句有 20 个词（从 0 编号）。会注意到哪些词？给出列表。
# 2. `luong.general`：写一个函数，参数是 `query [3], key [5, 4], W [3, 4]`，给出五个 general 分数。
# 3. `luong.local`：写一个函数，参数是 `scores, p, D`，按笔记 3 给出 local-p 的权重：对整个源句做 softmax，再乘正态分布项，窗口之外为零。

# %%
check("luong.window", ...)
check("luong.general", ...)
check("luong.local", ...)
