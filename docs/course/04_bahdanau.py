# %% [markdown] lang="en"
# # 4 Bahdanau: learning to align and to translate together
#
# Bahdanau, Cho and Bengio (2015) took the bottleneck away. The encoder keeps the states of all words, and before each word of the target the
# decoder **soft-searches** for the positions where what it needs stands.
# (Graves had let a network write by hand in 2013, with a soft window over the text that only moves forward. Here attention may go anywhere, since the words of two
# languages stand in different orders.)
#
# **Encoder.** A bidirectional RNN of GRUs. The states of both directions are **joined**, $h_j = [\overrightarrow{h_j}; \overleftarrow{h_j}]$, so
# that with $n$ units each an *annotation* has $2n$ numbers. The **encoder states** are keys and values.
#
# **Attention.** The query is the **decoder's previous state**, $s_{i-1}$. A small **feed-forward network** and a softmax:
#
# $$e_{ij} = v_a^T \tanh(W_a s_{i-1} + U_a h_j), \qquad \alpha_{ij} = \frac{\exp e_{ij}}{\sum_k \exp e_{ik}}, \qquad c_i = \sum_j \alpha_{ij} h_j$$
#
# The **shapes of the parameters**: with $n'$ units of the decoder, $W_a$ is $[n', n']$, $U_a$ is $[n', 2n]$ and $v_a$ is $[n']$; both products have the same size, and in that sense they are
# **aligned**. $U_a h_j$ does not depend on $i$, so it is computed once.
#
# **Decoder.** A one-way GRU whose gates also see the **context vector** $c_i$; it reads the **embedding of the last word, joined with the
# output of attention**. A **maxout** layer takes the larger of each pair of numbers, and a softmax gives the probabilities.

# %% [markdown] lang="zh"
# # 4 Bahdanau：一边对齐，一边翻译
#
# Bahdanau、Cho 和 Bengio（2015）打破了这个瓶颈。编码器保留每个词的隐状态；每要翻译一个词，解码器就在源句里**自动搜索**（soft-search）相关程度最大的位置。（Graves（2013）让网络生成手写字时，就用过一个软窗口来看文本，但窗口只能向前移动。两种语言的词序不同，所以这里的注意力可以跳到任何地方。）
#
# **编码器**。**双向 RNN**，门控单元是 GRU。两个方向的隐状态**拼接**（concat）在一起，$h_j = [\overrightarrow{h_j}; \overleftarrow{h_j}]$；每个方向 $n$ 个单元，维度就是 $2n$。编码器对每个词的输出作为键和值。
#
# **注意力**。解码器上一步的隐状态 $s_{i-1}$ 是查询。一个**前馈神经网络**加一个 softmax：
#
# $$e_{ij} = v_a^T \tanh(W_a s_{i-1} + U_a h_j), \qquad \alpha_{ij} = \frac{\exp e_{ij}}{\sum_k \exp e_{ik}}, \qquad c_i = \sum_j \alpha_{ij} h_j$$
#
# **参数维度**：解码器有 $n'$ 个单元，$W_a$ 是 $[n', n']$，$U_a$ 是 $[n', 2n]$，$v_a$ 是 $[n']$；两项的维度都变成 $n'$，所以也称为**对齐**。$U_a h_j$ 与 $i$ 无关，只算一次。
#
# **解码器**。单向 GRU，门控里还用到**上下文向量** $c_i$：注意力的输出和上一个词的词嵌入合并进入。输出层用 **maxout**，每两个数取大的，再用 softmax 得到概率。

# %% [markdown] lang="en"
# ## From scratch
#
# The whole decoder, with the parameters of a small model of heedful, which is built first:

# %% [markdown] lang="zh"
# ## 从零实现
#
# 先用 heedful 建一个小模型，再用它的参数从零实现整个解码器：

# %%
import matplotlib.pyplot as plt
import torch
from torch.nn import functional

from heedful import Translation
from heedful.attention import Additive
from heedful.course import check
from heedful.course.diagram import arrow, box, canvas
from heedful.layers import BidirectionalEncoder
from heedful.models.inputs import TokenInputs
from heedful.models.rnn_encoder_decoder import RNNEncoderDecoderConfig
from heedful.models.rnnsearch import RNNsearchConfig
from heedful.predictors.translation import Alternative

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
sizes = {"embedding_size": 16, "hidden_size": 32, "maxout_size": 16, "dropout": 0.0}
NUM_TOKENS, BOS, EOS = 13, 1, 2
search = RNNsearchConfig(**sizes, attention={"hidden_size": 24}).build(
    NUM_TOKENS, NUM_TOKENS, is_shared=False
)
assert isinstance(search.encoder, BidirectionalEncoder)
assert isinstance(search.score, Additive)
p = {name: parameter.detach() for name, parameter in search.named_parameters()}
print({name: list(p[name].shape) for name in p if name.startswith("score")})


def gru(name, x, h, context=None):
    gates = p[f"{name}.input_map.weight"] @ x + p[f"{name}.input_map.bias"]
    if context is not None:
        gates = gates + p["context_map.weight"] @ context
    u_z, u_r = (p[f"{name}.gates_map"] @ h).chunk(2)
    z, r = (
        torch.sigmoid(gates[: len(h)] + u_z),
        torch.sigmoid(gates[len(h) : 2 * len(h)] + u_r),
    )
    return (1 - z) * h + z * torch.tanh(
        gates[2 * len(h) :] + p[f"{name}.candidate_map"] @ (r * h)
    )


def run(name, vectors):
    states = [torch.zeros(32)]
    for x in vectors:
        states.append(gru(name, x, states[-1]))
    return states[1:]


def rnnsearch(source, target_in):
    words = p["source_embedding.weight"][source]
    forward, backward = (
        run("encoder.forward_unit", words),
        run("encoder.backward_unit", words.flip(0))[::-1],
    )
    annotations = torch.stack(
        [torch.cat(both) for both in zip(forward, backward, strict=True)]
    )  # [word, 2n]
    state = torch.tanh(p["initial.weight"] @ backward[0] + p["initial.bias"])
    mapped = annotations @ p["score.key_projection.weight"].T  # U_a h_j, once
    logits = []
    for y in p["target_embedding.weight"][target_in]:
        scores = (
            torch.tanh(p["score.query_projection.weight"] @ state + mapped)
            @ p["score.vector"]
        )
        context = torch.softmax(scores, 0) @ annotations
        t = p["readout.weight"] @ torch.cat([state, y, context]) + p["readout.bias"]
        maxout = t.reshape(-1, 2).max(1).values
        logits.append(p["output.weight"] @ maxout + p["output.bias"])
        state = gru("decoder", y, state, context)
    return torch.stack(logits)


# %% [markdown] lang="en"
# ## The same with heedful

# %% [markdown] lang="zh"
# ## 用 heedful 再算一遍

# %%
source, target_in = torch.tensor([[5, 3, 9, 4, EOS]]), torch.tensor([[BOS, 7, 7, 3]])
with torch.no_grad():
    decoded = search(TokenInputs(source, torch.tensor([5])), target_in)
    by_heedful = search.logits(decoded.features)[0]
assert abs(rnnsearch(source[0], target_in[0]) - by_heedful).max() < 1e-6
by_heedful.shape

# %% [markdown] lang="en"
# ## A picture: a step
#
# From two-way states and the state of the decoder to the next word:

# %% [markdown] lang="zh"
# ## 图解：一步
#
# 从双向的隐状态和解码器的状态，到下一个词：

# %% picture="step" alt="States of both directions and the decoder state enter a feed-forward network, its softmax weighs them to a context, which is joined with word and state before the GRU and the maxout layer" alt_zh="两个方向的隐状态和解码器状态进入前馈神经网络，softmax 得到权重，加权和是上下文，再和词、状态拼接，进入 GRU 和 maxout 层"
BLUE, ORANGE, GREY = "#d6e6f7", "#f8e3cf", "#f1f1f1"
figure, step = plt.subplots(figsize=(8, 3.2))
canvas(step, 97, 34)
for place in range(4):
    x = 9 + 13 * place
    box(step, x, 8.5, width=9, height=10, colour="none")
    step.text(x, 0, f"word {place + 1}", ha="center", fontsize=8)
    arrow(step, (x, 1.8), (x, 3.5))
    for y, name in ((6.3, "forward"), (10.7, "backward")):
        box(step, x, y, name, width=8, height=3.2, colour=BLUE)
    if place < 3:
        arrow(step, (x + 4, 6.3), (x + 9, 6.3))
        arrow(step, (x + 9, 10.7), (x + 4, 10.7))
    step.text(x + 0.6, 14.3, f"h{place + 1}, 2n numbers", fontsize=6)
    arrow(step, (x, 13.5), (x, 17.3))
box(step, 28.5, 19, "feed-forward network: v tanh(W s + U h)", 48, 3.4, ORANGE)
arrow(step, (28.5, 20.7), (28.5, 24.3))
box(step, 28.5, 26, "softmax", 48, 3.4, GREY)
arrow(step, (52.5, 26), (64, 26))
step.text(53.5, 27, "weights", fontsize=7)
box(step, 73, 26, "context c, a mean of h", 18, 3.4, ORANGE)
box(step, 59, 12, "state s", 8, 3.4, BLUE)
arrow(step, (59, 13.7), (59, 19), (52.5, 19))
box(step, 73, 12, "joined", 12, 3.4, GREY)
step.text(73, 0, "last word", ha="center", fontsize=8)
arrow(step, (73, 2.5), (73, 10.3))
arrow(step, (73, 24.3), (73, 13.7))
arrow(step, (63, 12), (67, 12))
arrow(step, (79, 12), (82, 12), (82, 19), (84, 19))
arrow(step, (79, 12), (82, 12), (82, 6), (84, 6))
box(step, 90, 19, "maxout,\nsoftmax", 12, 6, ORANGE)
box(step, 90, 6, "GRU:\nnext s", 12, 6, BLUE)
arrow(step, (90, 22), (90, 26))
step.text(90, 27, "next word", ha="center", fontsize=8)
plt.show()

# %% [markdown] lang="en"
# ## A picture: what it learns
#
# Two models learn to turn sequences of digits round: with attention (the paper's RNNsearch), and without (its RNNenc), which has to squeeze
# a sequence into one vector. Both see lengths 1 to 12. The paper's figure has the same shape: without attention, long sentences suffer.
# (This takes half a minute.)

# %% [markdown] lang="zh"
# ## 图解：它学到了什么
#
# 两个模型学习把数字序列倒过来写：一个使用注意力机制（论文里的 **RNNsearch**），一个不使用（**RNNenc**），只能把整个序列压缩成一个向量。训练时长度都是 1 到 12。论文里的图也是这样：不用注意力，**长句**就差；用了注意力，哪怕句子变得很长，也可以维持较高水平。（约需半分钟。）

# %% picture="aligned" alt="Left, attention of the trained model while it writes the source backwards: a bright line from the last word to the first; right, share of correct symbols by length: near 1 with attention, falling without" alt_zh="左：训练好的模型把源序列倒着写时的注意力，一条从最后一个词到第一个词的亮线；右：按长度统计的正确率，有注意力的接近 1，没有的随长度下降"
torch.set_default_dtype(torch.float32)


def batch(length, size=64):
    digits = torch.randint(3, NUM_TOKENS, (size, length))
    end = torch.full((size, 1), EOS)
    reversed_ = digits.flip(1)
    return (
        TokenInputs(torch.cat((digits, end), 1), torch.full((size,), length + 1)),
        torch.cat((torch.full((size, 1), BOS), reversed_), 1),
        torch.cat((reversed_, end), 1),
    )


models = {
    "RNNsearch": RNNsearchConfig(**sizes, attention={"hidden_size": 24}),
    "RNNenc": RNNEncoderDecoderConfig(
        embedding_size=16, hidden_size=48, num_layers=1, cell="gru", dropout=0.0
    ),
}
figure, (left, right) = plt.subplots(1, 2)
for name, config in models.items():
    torch.manual_seed(1)
    model = config.build(NUM_TOKENS, NUM_TOKENS, is_shared=False).float()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(400):
        inputs, target_in, target = batch(int(torch.randint(1, 13, ())))
        logits = model.logits(model(inputs, target_in).features)
        loss = functional.cross_entropy(logits.flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    shares = []
    with torch.no_grad():
        for length in range(1, 17):
            inputs, target_in, target = batch(length, 200)
            chosen = model.logits(model(inputs, target_in).features).argmax(-1)
            shares.append((chosen == target).float().mean())
        if name == "RNNsearch":
            inputs, target_in, _ = batch(9, 1)
            attended = model(inputs, target_in, need=("weights",)).attended[
                model.alignment
            ]
            drawn = inputs.ids[0], target_in[0, 1:], attended.weights[0]
            left.imshow(attended.weights[0])
            left.set(xlabel="source", ylabel="target")
    right.plot(range(1, 17), shares, "o-", ms=3, label=name)
right.axvline(12, ls=":", color="#757a82")
right.set(xlabel="length", ylabel="symbols right", ylim=(0, 1.05))
right.legend()
plt.show()

# %% [markdown] lang="en"
# The same attention as a page to play with: point at a word and see where it looks. Its view **Learn** takes your own queries, keys and values,
# and shows scores, weights and context as you change the score function, the normalizer, the temperature or the window.

# %% [markdown] lang="zh"
# 同样的注意力，做成可以动手试的网页：指向一个词，就看到它注意哪里。在网页的**学习**视图里，可以填自己的查询、键和值，一边改打分函数、归一化、温度或窗口，一边看分数、权重和上下文怎么变。

# %% page="page" alt="Page with the attention of the reversed digits, and the view Learn" alt_zh="网页：倒写数字时的注意力，以及学习视图"
source, target, weights = drawn
pieces = tuple(f"▁{token - 3}" for token in source[:-1].tolist())  # ▁ begins a word
said = tuple(f"▁{token - 3}" for token in target.tolist())
text = "".join(said).replace("▁", " ").strip()
Translation(
    source="".join(pieces).replace("▁", " ").strip(),
    text=text,
    log_prob=0.0,
    score=0.0,
    alternatives=(Alternative(text, 0.0, 0.0),),
    source_pieces=(*pieces, "</s>"),
    target_pieces=said,
    attention=weights[: len(said)].numpy(),
)

# %% [markdown] lang="en"
# ## Exercises
#
# 1. `bahdanau.shape`: encoder and decoder have 1000 units ($n = n' = 1000$). What is the shape of $U_a$, as a list of rows and columns?
# 2. `bahdanau.weights`: a function of `s [3], H [5, 4], W [6, 3], U [6, 4], v [6]` that gives the five attention weights.
# 3. `bahdanau.context`: the weights are 0.1, 0.7, 0.2 and the annotations [1, 0], [0, 1], [1, 1]. What is the context vector?

# %% [markdown] lang="zh"
# ## 练习
#
# 1. `bahdanau.shape`：编码器和解码器都有 1000 个单元（$n = n' = 1000$）。$U_a$ 的形状是什么？写成 [行, 列]。
# 2. `bahdanau.weights`：写一个函数，参数是 `s [3], H [5, 4], W [6, 3], U [6, 4], v [6]`，给出五个注意力权重。
# 3. `bahdanau.context`：权重是 0.1、0.7、0.2，隐状态是 [1, 0]、[0, 1]、[1, 1]。上下文向量是什么？

# %%
check("bahdanau.shape", ...)
check("bahdanau.weights", ...)
check("bahdanau.context", ...)
