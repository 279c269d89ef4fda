# %% [markdown] lang="en"
# # 8 The Transformer, from nothing, in 120 lines
#
# Vaswani et al. (2017) threw recurrence away: the **Transformer** is an encoder and a decoder of attention alone, six blocks each in the paper. It reads
# word vectors with positions added, and every block keeps their number and size.
#
# **Encoder block**: multi-head self-attention, then a feed-forward network, each inside **Add & Norm**:
#
# $$Z = \mathrm{LayerNorm}(X + \mathrm{MultiHead}(X)), \qquad X' = \mathrm{LayerNorm}(Z + \mathrm{FFN}(Z)).$$
#
# *Add* is a **residual connection**: the sub-layer learns only a difference, which keeps deep networks from **degrading**. *Norm* is **layer normalisation**: mean 0 and variance 1 within each
# vector. (**Batch normalisation** does so for each feature over all examples, which does not suit sequences of varying length.)
#
# **Position-wise feed-forward network**: two fully connected layers with a ReLU between, $\mathrm{FFN}(x) = \max(0, x W_1 + b_1) W_2 + b_2$, the same at every position. So it is also two **convolutions of width 1**.
#
# **Decoder block**: the first attention is **masked**; the second, **encoder–decoder attention**, takes its queries from the decoder and its keys and values from the **encoder's output** $C$; then comes the feed-forward network.
#
# A linear map and a softmax give the **probabilities of the next word**. In training all positions are predicted **in parallel**, as the right words are given (teacher forcing) and the mask hides what comes after; in use
# word $t+1$ is predicted from the first $t$, the **prefix**, which are keys and values, while word $t$ is the query. BERT and GPT are such blocks, the first of the encoder, the second of the decoder.

# %% [markdown] lang="zh"
# # 8 从零实现 Transformer，120 行
#
# Vaswani 等（2017）不再使用循环网络：**Transformer** 是纯基于注意力的编码器-解码器，论文里各有 6 个 block。输入是单词的表示向量，即词嵌入加位置编码；每个 block 的输出与输入维度完全一致。
#
# **Encoder block**：多头自注意力，然后是前馈网络，外面各有一层 **Add & Norm**：
#
# $$Z = \mathrm{LayerNorm}(X + \mathrm{MultiHead}(X)), \qquad X' = \mathrm{LayerNorm}(Z + \mathrm{FFN}(Z)).$$
#
# Add 是**残差连接**，子层只需学习差异，用于防止**网络退化**。Norm 是**层归一化**，对每个样本里的元素做归一化，均值 0，方差 1，可以加快收敛。（**批量归一化**对每个特征在所有样本上做，不适合序列长度会变的任务。）
#
# **基于位置的前馈网络**：两个全连接层，中间是 ReLU，$\mathrm{FFN}(x) = \max(0, x W_1 + b_1) W_2 + b_2$，每个位置都一样，即**逐位置**；所以也等价于两层核窗口为 1 的**一维卷积**。
#
# **Decoder block**：第一个注意力有 **Masked** 操作；第二个是**编码器-解码器注意力**，query 来自目标序列，K、V 用 Encoder 输出的**编码信息矩阵** $C$ 计算，这就是**信息传递**；最后是前馈网络。
#
# 最后的**输出层**是线性变换和 softmax，给出下一个单词的概率。训练时用 Teacher Forcing，各个位置可以**并行化训练**，掩码挡住后面的词；**预测**第 $t+1$ 个输出时，前 $t$ 个预测值（**前缀序列**）作为 key 和 value，第 $t$ 个还作为 query。BERT 由 Encoder 的 block 叠成，GPT-3 由 Decoder 的 block 叠成。

# %% [markdown] lang="en"
# ## From scratch
#
# Only tensors, no modules: everything that the model is, in the order in which a sentence passes through it. The parameters are a
# dictionary.

# %% [markdown] lang="zh"
# ## 从零实现
#
# 只用张量，不用现成的模块；句子怎样经过模型，代码就按怎样的次序写。参数放在一个字典里。

# %%
import math

import matplotlib.pyplot as plt
import torch
from torch.nn import functional

from heedful.course import check
from heedful.models.inputs import TokenInputs
from heedful.models.transformer import TransformerConfig

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)


def linear(p, name, x):
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def layer_norm(p, name, x, epsilon=1e-5):
    centred = x - x.mean(-1, keepdim=True)
    deviation = (centred.square().mean(-1, keepdim=True) + epsilon).sqrt()
    return p[f"{name}.weight"] * centred / deviation + p[f"{name}.bias"]


def add_and_norm(p, name, x, sublayer):
    return layer_norm(p, f"{name}.norm", x + sublayer(x))


def feed_forward(p, name, x):
    return linear(p, f"{name}.outer", linear(p, f"{name}.inner", x).clamp(min=0))


def positions(n, d):
    angle = torch.arange(n)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)


def embed(p, tokens):
    table = p["source_embedding.weight"]  # one table for source, target and output
    n, d = tokens.shape[-1], table.shape[1]
    return table[tokens] * math.sqrt(d) + positions(n, d)


def split(x, num_heads):
    """[sentence, word, size] to [sentence, head, word, size of a head]."""
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def multi_head(p, name, queries, memory, num_heads, allowed):
    weights = p[f"{name}.in_proj_weight"].chunk(3)
    biases = p[f"{name}.in_proj_bias"].chunk(3)
    inputs = queries, memory, memory
    maps = zip(inputs, weights, biases, strict=True)
    Q, K, V = (split(x @ W.T + b, num_heads) for x, W, b in maps)
    scores = Q @ K.mT / math.sqrt(Q.shape[-1])
    A = torch.softmax(scores.masked_fill(~allowed, -torch.inf), dim=-1)
    Z = (A @ V).transpose(1, 2).flatten(2)  # the heads side by side
    return linear(p, f"{name}.out_proj", Z), A


def encoder_block(p, name, x, num_heads, allowed):
    x = add_and_norm(
        p,
        f"{name}.around_attention",
        x,
        lambda x: multi_head(p, f"{name}.self_attention", x, x, num_heads, allowed)[0],
    )
    return add_and_norm(
        p,
        f"{name}.around_feedforward",
        x,
        lambda x: feed_forward(p, f"{name}.feedforward", x),
    )


def decoder_block(p, name, x, C, num_heads, before, allowed):
    x = add_and_norm(
        p,
        f"{name}.around_self",
        x,
        lambda x: multi_head(p, f"{name}.self_attention", x, x, num_heads, before)[0],
    )
    x = add_and_norm(
        p,
        f"{name}.around_cross",
        x,
        lambda x: multi_head(p, f"{name}.cross_attention", x, C, num_heads, allowed)[0],
    )
    return add_and_norm(
        p,
        f"{name}.around_feedforward",
        x,
        lambda x: feed_forward(p, f"{name}.feedforward", x),
    )


def encode(p, source, lengths, num_blocks, num_heads):
    allowed = torch.arange(source.shape[1]) < lengths[:, None]  # no padding
    allowed = allowed[:, None, None]
    x = embed(p, source)
    for block in range(num_blocks):
        x = encoder_block(p, f"encoder_layers.{block}", x, num_heads, allowed)
    return x, allowed


def decode(p, target_in, C, allowed, num_blocks, num_heads):
    n = target_in.shape[1]
    before = torch.ones(n, n).tril().bool()  # no word sees those after it
    x = embed(p, target_in)
    for block in range(num_blocks):
        name = f"decoder_layers.{block}"
        x = decoder_block(p, name, x, C, num_heads, before, allowed)
    return x @ p["source_embedding.weight"].T  # logits: a score for each word


def transformer(p, source, lengths, target_in, num_blocks, num_heads):
    C, allowed = encode(p, source, lengths, num_blocks, num_heads)
    return decode(p, target_in, C, allowed, num_blocks, num_heads)


# %% [markdown] lang="en"
# ## The same by heedful
#
# A model of heedful in the paper's form, with two blocks each; its parameters, by their names, are the dictionary.

# %% [markdown] lang="zh"
# ## 用 heedful 再算一遍
#
# 用 heedful 按论文的形式建一个模型，编码器和解码器各两个 block；把它的参数按名字放在一起，就是上面说的字典。

# %%
config = TransformerConfig(
    num_encoder_layers=2,
    num_decoder_layers=2,
    model_size=16,
    num_heads=4,
    feedforward_size=32,
    norm="post",
)
model = config.build(30, 30, is_shared=True).eval()
p = {name: parameter.detach() for name, parameter in model.named_parameters()}
source, lengths = torch.randint(3, 30, (2, 6)), torch.tensor([6, 4])
target_in = torch.tensor([[1, 5, 9], [1, 8, 8]])  # each begins with the start symbol
with torch.no_grad():
    decoded = model(TokenInputs(source, lengths), target_in)
    by_heedful = model.logits(decoded.features)
by_hand = transformer(p, source, lengths, target_in, num_blocks=2, num_heads=4)
assert abs(by_hand - by_heedful).max() < 1e-6

# %% [markdown] lang="en"
# Two statements of the text, tried: the feed-forward network is two convolutions of width 1, and batch normalisation is another thing.

# %% [markdown] lang="zh"
# 验证课文里的两句话：前馈网络就是两层窗口为 1 的卷积；批量归一化则是另一回事。

# %%
x = torch.randn(2, 6, 16)
name = "encoder_layers.0.feedforward"
inner, outer = (p[f"{name}.{part}.weight"][..., None] for part in ("inner", "outer"))
hidden = functional.conv1d(x.mT, inner, p[f"{name}.inner.bias"]).relu()
convolved = functional.conv1d(hidden, outer, p[f"{name}.outer.bias"]).mT
assert abs(convolved - feed_forward(p, name, x)).max() < 1e-6

by_layer = functional.layer_norm(x, (16,))
by_batch = functional.batch_norm(x.flatten(0, 1), None, None, training=True).view_as(x)
print(
    "mean of a vector:",
    by_layer[0, 0].mean().abs().item() < 1e-9,
    by_batch[0, 0].mean().abs().item() < 1e-9,
)
print(
    "mean of a feature:",
    by_layer[..., 0].mean().abs().item() < 1e-9,
    by_batch[..., 0].mean().abs().item() < 1e-9,
)

# %% [markdown] lang="en"
# ## A picture: it learns
#
# The 120 lines train, too: gradients flow through them. The task is to sort digits; the loss is a sum of log probabilities, and each output is
# the **argmax** of the probabilities, word by word.

# %% [markdown] lang="zh"
# ## 一幅图：能学会
#
# 这 120 行代码也能训练，梯度传得过去。任务是把数字排序；损失是对数概率之和取负，生成时每一步取概率的 **argmax**，一个词接一个词。

# %% picture="learning" alt="Left, the loss falls; right, the attention of the trained decoder over the source: each output word looks at the digit that it copies" alt_zh="左：损失下降；右：训练好的解码器对源序列的注意力，每个输出都注意到要抄写的数字"
torch.set_default_dtype(torch.float32)
torch.manual_seed(0)
small = TransformerConfig(
    num_encoder_layers=1,
    num_decoder_layers=1,
    model_size=32,
    num_heads=2,
    feedforward_size=64,
    norm="post",
)
built = small.build(12, 12, is_shared=True).float()
p = {
    name: parameter.detach().clone().requires_grad_()
    for name, parameter in built.named_parameters()
}
optimizer = torch.optim.Adam(p.values(), lr=0.003)
losses = []
for _ in range(500):
    source = torch.rand(64, 9).argsort(1)[:, :6] + 3  # six different digits
    target = source.sort(1).values
    target_in = torch.cat((torch.ones(64, 1, dtype=torch.int64), target[:, :-1]), 1)
    logits = transformer(p, source, torch.full((64,), 6), target_in, 1, 2)
    log_probs = logits.log_softmax(-1).gather(-1, target[..., None])
    loss = -log_probs.sum() / target.numel()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

with torch.no_grad():
    C, allowed = encode(p, source[:1], torch.tensor([6]), 1, 2)
    said = torch.ones(1, 1, dtype=torch.int64)
    for _ in range(6):
        logits = decode(p, said, C, allowed, 1, 2)
        said = torch.cat((said, logits[:, -1:].argmax(-1)), 1)
    print(source[0].tolist(), "->", said[0, 1:].tolist())
    before = torch.ones(6, 6).tril().bool()
    x = embed(p, said[:, :-1])
    own = multi_head(p, "decoder_layers.0.self_attention", x, x, 2, before)[0]
    x = layer_norm(p, "decoder_layers.0.around_self.norm", x + own)
    _, A = multi_head(p, "decoder_layers.0.cross_attention", x, C, 2, allowed)

figure, (left, right) = plt.subplots(1, 2, width_ratios=(3, 2))
left.plot(losses)
left.set(xlabel="step", ylabel="loss of a word")
right.imshow(A[0].mean(0))
right.set_xticks(range(6), source[0].tolist())
right.set_yticks(range(6), said[0, 1:].tolist())
right.set(xlabel="source", ylabel="output")
plt.show()

# %% [markdown] lang="en"
# ## What became of it
#
# Large models are trained on plain text first, and differ above all in who may look at whom:
#
# - **Encoder alone** (BERT): every word sees all others. Some words are replaced by a mark, and the model has to say which they were.
# - **Encoder and decoder** (T5): the source is seen as a whole, the output only up to each word. Whole passages are left out and written.
# - **Decoder alone** (GPT): every word sees those before it, and the next word is predicted. So every text is an exercise, and a task can be put
#   as its beginning (**in context**), with no training at all.
#
# Their loss falls as a power of parameters, data and computation, over many orders of magnitude, which is why they grew.

# %% [markdown] lang="zh"
# ## 后来的发展
#
# 大模型先在普通文本上预训练，各类模型的区别，首先在于谁能看到谁：
#
# - **只有编码器**（BERT）：每个词都能看到其他所有词。把一些词换成标记，让模型说出原来是什么。
# - **编码器和解码器**（T5）：原文全都能看到，输出只能看到当前词为止。挖掉几段文字，让模型补写出来。
# - **只有解码器**（GPT）：每个词只能看到前面的词，任务是预测下一个词。于是任何文本都是练习，要做的任务写在开头就行（**上下文学习**），完全不用再训练。
#
# 损失随参数量、数据量和计算量按幂律下降，跨越许多个数量级，所以模型才越做越大。

# %% picture="families" alt="Three tables of six words: all see all; the first three see each other and the rest what is before; each sees what is before" alt_zh="三张六个词的表：第一张互相都能看到；第二张前三个互相可见，其余只能看前面；第三张每个只能看前面"
everything = torch.ones(6, 6).bool()
before = everything.tril()
prefix = before | (torch.arange(6) < 3)  # the source, then the output
figure, axes = plt.subplots(1, 3)
named = {"encoder": everything, "encoder, decoder": prefix, "decoder": before}
for axis, (title, allowed) in zip(axes, named.items(), strict=True):
    axis.imshow(allowed)
    axis.set(title=title, xlabel="sees", xticks=[], yticks=[])
plt.show()

# %% [markdown] lang="en"
# ## Exercises
#
# 1. `transformer.mask`: a function of `n` that gives the table [query, key] with 1 where a query of the decoder may look and 0 elsewhere.
# 2. `transformer.norm`: a function of `x [4, 6]` that normalises each row, with 1e-5 added to the variance, in NumPy.
# 3. `transformer.parameters`: how many parameters has one encoder block with $d = 512$ and 2048 hidden features, biases and norms included?

# %% [markdown] lang="zh"
# ## 练习
#
# 1. `transformer.mask`：写一个函数，参数是 `n`，给出 [查询, 键] 的表：解码器的查询可以看的地方是 1，其余是 0。
# 2. `transformer.norm`：用 NumPy 写一个函数，参数是 `x [4, 6]`，对每一行做层归一化，方差加 1e-5。
# 3. `transformer.parameters`：一个 Encoder block，$d = 512$，前馈网络隐藏层 2048，连同偏置和归一化共有多少个参数？

# %%
check("transformer.mask", ...)
check("transformer.norm", ...)
check("transformer.parameters", ...)
