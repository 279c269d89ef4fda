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
# *Add* is a **residual connection**: the sub-layer learns only a difference, which prevents the **degradation** of deep networks; it also carries the positions up, which are added once, below the first block. *Norm* is **layer normalisation**: mean 0 and variance 1 within each
# vector, for **faster convergence**. (**Batch normalisation** does so for each feature over all examples, which does not suit sequences of varying length.)
#
# **Position-wise feed-forward network**: two fully connected layers with a ReLU between, $\mathrm{FFN}(x) = \max(0, x W_1 + b_1) W_2 + b_2$, the same at every position. So it is also two **convolutions of width 1**.
#
# **Decoder block**: the first attention is **masked**; the second, **encoder–decoder attention**, takes its queries from the decoder and its keys and values from the **encoder's output** $C$, which is the **transfer of information** between the two; then comes the feed-forward network.
#
# A linear map and a softmax give the **probabilities of the next word**. In training all positions are predicted **in parallel**, as the right words are given (teacher forcing) and the mask hides what comes after; in
# **prediction**, word $t+1$ follows from the first $t$, the **prefix**, which are keys and values, while word $t$ is the query. Keys and values of the prefix stay as they are, so a program keeps them (a **cache**)
# and computes one new row a step. BERT and GPT-3 are such blocks, the first of the encoder, the second of the decoder.
#
# |  | encoder | decoder |
# | --- | --- | --- |
# | input | words of the source + positions | start symbol and words so far + positions |
# | six times | self-attention, Add & Norm | masked self-attention, Add & Norm |
# |  |  | encoder–decoder attention over $C$, Add & Norm |
# |  | feed-forward network, Add & Norm | feed-forward network, Add & Norm |
# | output | $C$, a vector for each word | linear map, softmax: the next word |
#
# (In training the paper also drops a tenth of the numbers at random after each sub-layer, **dropout**, which the lines below leave out.)

# %% [markdown] lang="zh"
# # 8 用 120 行从零实现 Transformer
#
# Vaswani 等（2017）不再使用循环网络：**Transformer** 是纯基于注意力的编码器-解码器，论文里各有 6 个 block。输入是单词的表示向量，即词嵌入加位置编码；每个 block 的输出与输入维度完全一致。
#
# **Encoder block**：多头自注意力，然后是前馈网络，外面各有一层 **Add & Norm**：
#
# $$Z = \mathrm{LayerNorm}(X + \mathrm{MultiHead}(X)), \qquad X' = \mathrm{LayerNorm}(Z + \mathrm{FFN}(Z)).$$
#
# Add 是**残差连接**，子层只需学习差异，用于防止**网络退化**；位置编码只在最底下加一次，也靠它传到上面各层。Norm 是**层归一化**，对每个样本里的元素做归一化，均值 0，方差 1，可以加快收敛。（**批量归一化**对每个特征在所有样本上做，不适合序列长度会变的任务。）
#
# **基于位置的前馈网络**：两个全连接层，中间是 ReLU，$\mathrm{FFN}(x) = \max(0, x W_1 + b_1) W_2 + b_2$，每个位置都一样，即**逐位置**；所以也等价于两层核窗口为 1 的**一维卷积**。
#
# **Decoder block**：第一个注意力有 **Masked** 操作；第二个是**编码器-解码器注意力**，查询来自目标序列，K、V 用 Encoder 输出的**编码信息矩阵** $C$ 计算，这就是**信息传递**；最后是前馈网络。
#
# 最后的**输出层**是线性变换和 softmax，给出下一个单词的概率。训练时用 Teacher Forcing，各个位置可以**并行化训练**，掩码挡住后面的词；**预测**第 $t+1$ 个输出时，前 $t$ 个预测值（**前缀序列**）作为键和值，第 $t$ 个还作为查询。前缀的键和值不会再变，所以程序把它们存起来（**缓存**），每步只算新的一行。BERT 由 Encoder 的 block 叠成，GPT-3 由 Decoder 的 block 叠成。
#
# |  | 编码器 | 解码器 |
# | --- | --- | --- |
# | 输入 | 源句的词 + 位置编码 | 翻译开始符和已生成的词 + 位置编码 |
# | 重复 6 次 | 自注意力，Add & Norm | Masked 自注意力，Add & Norm |
# |  |  | 对 $C$ 的编码器-解码器注意力，Add & Norm |
# |  | 前馈网络，Add & Norm | 前馈网络，Add & Norm |
# | 输出 | $C$，每个词一个向量 | 线性变换和 softmax：下一个词 |
#
# （训练时，论文还在每个子层之后随机丢弃十分之一的数，即 **dropout**，下面的代码省略了。）

# %% [markdown] lang="en"
# ## A picture: the blocks
#
# The same as a drawing. Below it two layers that need one of their own: what is the same at every position, and over what the norm takes mean and variance.

# %% [markdown] lang="zh"
# ## 图解：两种 block
#
# 上面的表画成图。下面再单独画出两个层：前馈网络逐位置相同；归一化的均值和方差取自哪些数。

# %% picture="blocks" alt="Encoder block of multi-head attention and FFN, decoder block of masked attention, attention over the encoder's output, and FFN; each is followed by Add and Norm, and an arrow goes round it" alt_zh="Encoder block：多头注意力和 FFN；Decoder block：有掩码的注意力、对编码器输出的注意力和 FFN；每个后面都有 Add & Norm，旁边一条绕过它的箭头"
import itertools

import matplotlib.pyplot as plt

from heedful.course.diagram import arrow, box, canvas

COLOURS = {"attention": "#d6e6f7", "FFN": "#f8e3cf", "Norm": "#d7eee1", "": "#f1f1f1"}
figure, whole = plt.subplots(figsize=(6, 6.4))
canvas(whole, 55, 64)


def stack(x, words, layers):
    """Draw layers from bottom to top; what is added goes round the layer below."""
    whole.text(x, 1, words, ha="center", fontsize=8)
    arrow(whole, (x, 2.7), (x, 5.3))
    for y, text in layers:
        colour = next(COLOURS[word] for word in COLOURS if word in text)
        box(whole, x, y, text, width=19, colour=colour)
    for (low, _), (high, _) in itertools.pairwise(layers):
        arrow(whole, (x, low + 1.5), (x, high - 1.5))
    for y in (y for y, text in layers if text == "Add & Norm"):
        arrow(whole, (x, y - 7.8), (x - 11, y - 7.8), (x - 11, y), (x - 9.5, y))
    whole.text(x + 0.6, 13.7, "Q, K, V", fontsize=7)


def frame(x, top, name):
    box(whole, x - 0.7, (12 + top) / 2, width=25, height=top - 12, colour="none")
    whole.text(x - 13, top + 0.6, f"{name} block × 6", fontsize=8)


below = [
    (7, "embedding + positions"),
    (17, "multi-head attention"),
    (22, "Add & Norm"),
]
stack(13.5, "words of the source", [*below, (31, "FFN"), (36, "Add & Norm")])
frame(13.5, 39, "encoder")
below[1] = 17, "masked multi-head attention"
above = [(31, "multi-head attention"), (36, "Add & Norm"), (45, "FFN")]
above += [(50, "Add & Norm"), (57, "linear map, softmax")]
stack(41, "start symbol and words so far", [*below, *above])
frame(41, 53, "decoder")
arrow(whole, (41, 58.5), (41, 61))
whole.text(41, 61.6, "probabilities of the next word", ha="center", fontsize=8)
whole.text(41.6, 27.7, "Q", fontsize=7)
whole.text(14.1, 42.2, "the encoder's output C:\nK and V", fontsize=7)
across = (13.5, 37.5), (13.5, 41.5), (26.8, 41.5), (26.8, 31), (31.5, 31)
arrow(whole, *across, colour="#2f7fd1")
whole.text(3, 26.6, "residual connection", fontsize=6)
plt.show()

# %% [markdown] lang="en"
# And the two layers:

# %% [markdown] lang="zh"
# 再看这两个层：

# %% picture="parts" alt="Left, the FFN at three words: the same two layers, with a ReLU between; right, a table of words and features with a row for layer norm and a column for batch norm" alt_zh="左：三个词上的 FFN，同样的两个全连接层，中间是 ReLU；右：一张词和特征的表，一行是层归一化，一列是批量归一化"
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
canvas(left, 35, 28)
canvas(right, 35, 33)
left.text(2, 26.3, "FFN: two layers, the same at every position", fontsize=8)
for x in (8, 17, 26):
    for y, text in zip((6, 11, 16, 21), ("a word", "W1", "ReLU", "W2"), strict=True):
        colour = COLOURS["" if y == 6 else "FFN"]
        box(left, x, y, text, width=8 if 6 < y < 21 else 5, colour=colour)
        arrow(left, (x, y + 1.5), (x, y + 3.5))
left.text(2, 1.5, "So it is two convolutions of width 1.", fontsize=8)
right.text(2, 31, "Norm: mean 0 and variance 1", fontsize=8)
for row in range(6):
    for column in range(8):
        colour = "#2f7fd1" if row == 1 else "#c26410" if column == 5 else "#f1f1f1"
        where = 6 + 2.6 * column, 25.5 - 2.6 * row - (row > 2)
        box(right, *where, width=2.2, height=2.2, colour=colour)
right.text(26, 22.9, "layer norm:\nof a word", va="center", color="#2f7fd1", fontsize=8)
right.text(19, 8, "batch norm: of a feature", ha="center", color="#c26410", fontsize=8)
right.text(15, 27.3, "features", ha="center", fontsize=7)
for y in (22.9, 14):
    right.text(3.2, y, "a sentence", rotation=90, va="center", ha="center", fontsize=7)
plt.show()

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
import random

import torch
from torch.nn import functional

from heedful.course import AttentionPage, check
from heedful.evaluation.metrics.bleu import Bleu
from heedful.layers import FeedForward, MultiheadAttention, Residual
from heedful.models.inputs import TokenInputs
from heedful.models.transformer import TransformerConfig

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
weights_of = {}  # attention of each layer, for pictures


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
    # The root makes small embeddings as large as positions, which lie in [-1, 1].
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
    weights_of[name] = A
    return linear(p, f"{name}.out_proj", Z)


def encoder_block(p, name, x, num_heads, allowed):
    x = add_and_norm(
        p,
        f"{name}.around_attention",
        x,
        lambda x: multi_head(p, f"{name}.self_attention", x, x, num_heads, allowed),
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
        lambda x: multi_head(p, f"{name}.self_attention", x, x, num_heads, before),
    )
    x = add_and_norm(
        p,
        f"{name}.around_cross",
        x,
        lambda x: multi_head(p, f"{name}.cross_attention", x, C, num_heads, allowed),
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
# ## The same with heedful
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

first = model.encoder_layers[0]  # made of layers that can be had alone
assert isinstance(first.self_attention, MultiheadAttention)
assert isinstance(first.feedforward, FeedForward)
assert isinstance(first.around_attention, Residual)

# %% [markdown] lang="en"
# In use, one word at a time: each decoder block keeps the keys and values of the words so far, and for the encoder's output they are computed but once. A step computes a query, a key and a value of the last word alone, and its attention needs no mask, for
# nothing stands behind it. The outcome is that of the whole.

# %% [markdown] lang="zh"
# 使用时，每次只有一个词：每个 Decoder block 存着前面各个词的键和值；编码器输出的键和值只算一次。每一步只算最后一个词的查询、键和值；它后面没有词，所以也不用掩码。结果和一次算完整句相同。


# %%
def project(p, name, x, parts, num_heads):
    """Some of query (0), key (1) and value (2), for each head."""
    weights = p[f"{name}.in_proj_weight"].chunk(3)
    biases = p[f"{name}.in_proj_bias"].chunk(3)
    return [split(x @ weights[part].T + biases[part], num_heads) for part in parts]


def attend_one(p, name, x, K, V, num_heads, allowed=None):
    (Q,) = project(p, name, x, [0], num_heads)
    scores = Q @ K.mT / math.sqrt(Q.shape[-1])
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -torch.inf)
    return linear(
        p, f"{name}.out_proj", (scores.softmax(-1) @ V).transpose(1, 2).flatten(2)
    )


def begin(p, C, num_blocks, num_heads):
    """A cache: for each block, no words yet, and keys and values of the source."""
    names = [f"decoder_layers.{block}" for block in range(num_blocks)]
    crosses = [project(p, f"{n}.cross_attention", C, [1, 2], num_heads) for n in names]
    return {name: (None, cross) for name, cross in zip(names, crosses, strict=True)}


def next_word(p, tokens, place, cache, allowed, num_heads):
    """Logits after one more word of each sentence, [sentence, 1]."""
    table = p["source_embedding.weight"]
    d = table.shape[1]
    x = table[tokens] * math.sqrt(d) + positions(place + 1, d)[-1]
    for name, (so_far, cross) in cache.items():
        new = project(p, f"{name}.self_attention", x, [1, 2], num_heads)
        if so_far is not None:
            new = [torch.cat(pair, 2) for pair in zip(so_far, new, strict=True)]
        cache[name] = new, cross
        own = attend_one(p, f"{name}.self_attention", x, *new, num_heads)
        x = layer_norm(p, f"{name}.around_self.norm", x + own)
        seen = attend_one(p, f"{name}.cross_attention", x, *cross, num_heads, allowed)
        x = layer_norm(p, f"{name}.around_cross.norm", x + seen)
        further = feed_forward(p, f"{name}.feedforward", x)
        x = layer_norm(p, f"{name}.around_feedforward.norm", x + further)
    return x @ table.T


C, allowed = encode(p, source, lengths, 2, 4)
cache = begin(p, C, num_blocks=2, num_heads=4)
steps = [
    next_word(p, target_in[:, [i]], i, cache, allowed, num_heads=4) for i in range(3)
]
assert abs(torch.cat(steps, 1) - by_hand).max() < 1e-6

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
assert abs(convolved - first.feedforward(x)).max() < 1e-6

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
# ## A picture: it learns to translate
#
# The 120 lines learn machine translation, too: gradients flow through them. A small grammar makes English sentences and their French translations. French puts some
# adjectives behind the noun, and articles and adjectives agree with it in gender, so word for word does not do. In a batch shorter sentences are filled up
# with **padding**: no word attends to it, and it has no part in the **objective**, which is that of lesson 3, as a mean over real words. The pair "red car" is
# kept out of training. Translations are generated by **argmax**, word by word, until the end symbol,
# and measured by BLEU (lesson 10).

# %% [markdown] lang="zh"
# ## 图解：学会翻译
#
# 这 120 行代码也能训练，因为梯度传得过去；下面用它做机器翻译。一个小语法生成英语句子和法语译文。法语里有的形容词放在名词后面，冠词和形容词的性要与名词一致，所以逐词替换是不行的。一个批次里，短的句子用**填充符**（padding）补齐：没有词会注意到它，它也不计入损失；**目标函数**和第 3 课一样，只是对真正的词取平均。训练数据里不出现“red car”这个组合。译文用 **argmax** 一个词接一个词地生成，直到结束符，再用 BLEU（第 10 课）评测。

# %%
DETERMINERS = {"the": "le la", "a": "un une", "this": "ce cette", "my": "mon ma"}
SIZES = {"small": "petit petite", "big": "grand grande", "old": "vieux vieille"}
COLOURS = {"red": "rouge rouge", "white": "blanc blanche", "black": "noir noire"}
NOUNS = {"cat": "chat", "dog": "chien", "car": "voiture", "house": "maison"}
VERBS = {"sees": "voit", "wants": "veut", "finds": "trouve"}
PARTS = DETERMINERS, SIZES, COLOURS, NOUNS, VERBS
french = " ".join(word for part in PARTS for word in part.values()).split()
english = [word for part in PARTS for word in part]
WORDS = ["<pad>", "<s>", "</s>", *dict.fromkeys((*english, *french))]
choices = random.Random(0)


def noun_phrase():
    determiner, size, colour, noun = (choices.choice(list(part)) for part in PARTS[:4])
    gender = int(noun in ("car", "house"))
    has_size, has_colour = choices.random() < 0.5, choices.random() < 0.5
    source = [determiner, *[size] * has_size, *[colour] * has_colour, noun]
    target = [DETERMINERS[determiner].split()[gender]]
    target += [SIZES[size].split()[gender]] * has_size + [NOUNS[noun]]
    return source, target + [COLOURS[colour].split()[gender]] * has_colour


def sentences(number, is_new):
    """Pairs of sentences; those with a red car are new."""
    pairs = []
    while len(pairs) < number:
        (who, qui), (whom, que) = noun_phrase(), noun_phrase()
        verb = choices.choice(list(VERBS))
        pair = [*who, verb, *whom], [*qui, VERBS[verb], *que]
        if ("red car" in " ".join(pair[0])) == is_new:
            pairs.append(pair)
    return pairs


def padded(rows):
    ids = [torch.tensor([WORDS.index(word) for word in row]) for row in rows]
    lengths = torch.tensor([len(row) for row in rows])
    return torch.nn.utils.rnn.pad_sequence(ids, batch_first=True), lengths


def translate(p, rows):
    with torch.no_grad():
        C, allowed = encode(p, *padded(rows), 1, 2)
        tokens = torch.full((len(rows), 1), WORDS.index("<s>"))
        for _ in range(11):
            logits = decode(p, tokens, C, allowed, 1, 2)
            tokens = torch.cat((tokens, logits[:, -1:].argmax(-1)), 1)
    texts = [" ".join(WORDS[token] for token in row[1:]) for row in tokens.tolist()]
    return [text.partition(" </s>")[0] for text in texts]


def bleu(p, pairs):
    outputs = translate(p, [source for source, _ in pairs])
    references = [[" ".join(target)] for _, target in pairs]
    counts = Bleu().statistics(outputs, references).sum(0, keepdims=True)
    return Bleu().scores(counts).item()


def objective(p, pairs):
    """Mean negative log probability of a right word."""
    target, _ = padded([[*target, "</s>"] for _, target in pairs])
    target_in, _ = padded([["<s>", *target] for _, target in pairs])
    logits = transformer(p, *padded([source for source, _ in pairs]), target_in, 1, 2)
    log_probs = logits.log_softmax(-1).gather(-1, target[..., None])[..., 0]
    real = target != WORDS.index("<pad>")
    return -(log_probs * real).sum() / real.sum()


# %% picture="learning" alt="The loss falls to nearly zero within 400 steps, and BLEU of sentences that were never seen rises to nearly 100" alt_zh="损失在 400 步内降到接近零，没有见过的句子的 BLEU 升到接近 100"
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
built = small.build(len(WORDS), len(WORDS), is_shared=True).float()
p = {
    name: parameter.detach().clone().requires_grad_()
    for name, parameter in built.named_parameters()
}
optimizer = torch.optim.Adam(p.values(), lr=0.005)
new = sentences(50, is_new=True)
losses, scores = [], {}
for step in range(401):
    if step % 50 == 0:
        scores[step] = bleu(p, new)
        print(
            step,
            f"{scores[step]:5.1f}",
            translate(p, ["the old red car wants a white cat".split()]),
        )
    loss = objective(p, sentences(32, is_new=False))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

figure, (left, right) = plt.subplots(1, 2)
left.plot(losses)
left.set(xlabel="step", ylabel="loss of a word")
right.plot(list(scores), list(scores.values()), "o-")
right.set(xlabel="step", ylabel="BLEU of new sentences", ylim=(0, 105))
plt.show()

# %% [markdown] lang="en"
# ## A picture: where the heads look
#
# The three kinds of **multi-head attention**, two heads each, while a new sentence is written. The decoder's tables are empty above the diagonal. Between encoder and decoder, each output looks at the word that is to be
# written next: where French puts the colour behind the noun, the strong places change their order; and before an article or *ma* a head looks at the noun as well, whose gender it needs.
# Some heads keep to **near relations**, a word and its neighbours, others find **far relations**, such as the noun of an adjective. Which head matters? Their results are
# **concatenated**, so that each has columns of its own in $W_O$; each is left out in turn, by zeros there, and the title says how many words of new sentences are then right.

# %% [markdown] lang="zh"
# ## 图解：各个头看哪里
#
# 写一个新句子时，三种**多头注意力**各画两个头。解码器的表在对角线以上是空的。编码器和解码器之间，每个输出都注意到下一个要写的词：法语把颜色放在名词后面，权重大的位置次序也就换了；写冠词或 *ma* 之前，还有一个头注意到名词，因为要知道它的性。有的头只看**短距离关系**，即自己和相邻的词；有的头找出**长距离关系**，例如形容词所修饰的名词。哪个头重要？各个头的结果**拼接**在一起，在 $W_O$ 里各有自己的列；轮流去掉一个头，即把这些列换成零，标题是这时新句子里译对的词所占的比例。

# %% picture="heads" alt="Six tables of attention weights, two heads each of the encoder, the decoder and between them; the decoder's are empty above the diagonal; titles give the share of right words without the head" alt_zh="六张注意力权重表，编码器、解码器和两者之间各两个头；解码器的在对角线以上是空的；标题是去掉这个头以后的正确率"
source = "my small red car sees the white house".split()
(text,) = translate(p, [source])
output = ["<s>", *text.split()]


def right_words(p):
    target, _ = padded([[*target, "</s>"] for _, target in new])
    target_in, _ = padded([["<s>", *target] for _, target in new])
    with torch.no_grad():
        logits = transformer(p, *padded([source for source, _ in new]), target_in, 1, 2)
    return (logits.argmax(-1) == target)[target > 0].float().mean()


names = {
    "encoder_layers.0.self_attention": (source, source),
    "decoder_layers.0.self_attention": (output, output),
    "decoder_layers.0.cross_attention": (output, source),
}
figure, axes = plt.subplots(2, 3, figsize=(9, 6))
for column, (name, (rows, columns)) in enumerate(names.items()):
    for head, axis in enumerate(axes[:, column]):
        kept = p[f"{name}.out_proj.weight"].detach().clone()
        kept[:, 16 * head : 16 * (head + 1)] = 0
        share = right_words({**p, f"{name}.out_proj.weight": kept})
        with torch.no_grad():
            transformer(p, *padded([source]), padded([output])[0], 1, 2)
        axis.imshow(weights_of[name][0, head])
        axis.set_xticks(range(len(columns)), columns, rotation=90, fontsize=7)
        axis.set_yticks(range(len(rows)), rows, fontsize=7)
        place = ("encoder", "decoder", "between")[column]
        axis.set_title(f"{place}, without it {share:.0%} right", fontsize=8)
plt.show()

# %% [markdown] lang="en"
# All tables of this sentence as a page to play with: choose the part, and a head, and point at a word.

# %% [markdown] lang="zh"
# 这个句子的全部权重表，做成可以动手试的网页：选择编码器、解码器或两者之间，再选一个头，指向一个词。

# %% page="page" view="inside" alt="Page with the attention of the encoder, of the decoder and between them, for each head" alt_zh="网页：编码器、解码器和两者之间每个头的注意力"
AttentionPage(
    source,
    [*output[1:], "</s>"],
    {
        "encoder": [weights_of["encoder_layers.0.self_attention"][0]],
        "decoder": [weights_of["decoder_layers.0.self_attention"][0]],
        "cross": [weights_of["decoder_layers.0.cross_attention"][0]],
    },
)

# %% [markdown] lang="en"
# ## Models after the Transformer
#
# Large models are first trained on plain text (**pretraining**), where every text is its own exercise and nobody has to label anything. They differ above
# all in who may look at whom, and so in the exercise. Of *the cat sat on the mat*:
#
# | blocks | reads | has to say |
# | --- | --- | --- |
# | **encoder alone**, BERT (2019) | the ▢ sat on the mat | cat |
# | **encoder and decoder**, T5 (2020) | the ▢ sat ▣ mat | ▢ cat ▣ on the |
# | **decoder alone**, GPT (2018) | the cat sat on the mat | cat sat on the mat ▪ |
#
# - With the encoder alone every word sees all others, before and behind. It gives a vector for each word and for the whole, but cannot write a text of any length.
# - With both, the source is seen as a whole, the output only up to each word: translation, summaries. T5 puts the name of the task before the source, so that one model with no new layers learns many tasks at once.
# - With the decoder alone every word sees those before it, and all words of a text are predicted at once. The source and the output are one text, and the source, too, sees only what is before.
#
# For a task of its own such a model is trained a little further on labelled examples (**fine-tuning**), a classifier with one new layer upon a vector
# that has seen the whole text: that of the class mark, or of the last word if words see only what is before. A large decoder needs no training for it: the
# task is put as the beginning of a text, with no example or a few (**in context**, zero-shot and few-shot; GPT-3, 2020).
#
# The loss falls as a power of parameters, data and computation, over many orders of magnitude (Kaplan et al. 2020), if parameters and data grow together
# (Hoffmann et al. 2022). A larger model also needs fewer words of text for the same loss. That is why the models grew.

# %% [markdown] lang="zh"
# ## 后来的发展
#
# 大模型先在普通文本上**预训练**：任何文本本身就是练习题，不用人来标注。各类模型的区别，首先在于谁能看到谁，练习题也就不同。以 *the cat sat on the mat* 为例：
#
# | 用哪些 block | 读到 | 要输出 |
# | --- | --- | --- |
# | **只有编码器**，BERT（2019） | the ▢ sat on the mat | cat |
# | **编码器和解码器**，T5（2020） | the ▢ sat ▣ mat | ▢ cat ▣ on the |
# | **只有解码器**，GPT（2018） | the cat sat on the mat | cat sat on the mat ▪ |
#
# - 只有编码器时，每个词都能看到前后所有的词。它给出每个词和整句的向量，但写不出任意长的文本。
# - 两者都有时，原文全都能看到，输出只能看到当前词为止：翻译、摘要。T5 把任务的名字写在原文前面，一个模型不加新的层，就能同时学很多任务。
# - 只有解码器时，每个词只能看到前面的词，一段文本的所有词可以同时预测。原文和输出是同一段文本，原文也只能看到前面。
#
# 要做某个任务，就用有标注的例子再训练一会儿（**微调**）；做分类时加一个新的层，接在看过全文的向量上：用类别标记的向量；如果每个词只能看到前面，就用最后一个词的向量。大的解码器连这也不用：要做的任务写在文本的开头，不给例子或只给几个例子就行（**上下文学习**，零样本和少样本；GPT-3，2020）。
#
# 损失随参数量、数据量和计算量按幂律下降，在许多个数量级上都是如此（Kaplan 等，2020），前提是参数和数据一起增长（Hoffmann 等，2022）；要达到同样的损失，大的模型需要的文本也更少，所以模型才越做越大。

# %% picture="families" alt="Three tables of six words: all see all; the first three see each other and the rest what is before; each sees what is before" alt_zh="三张六个词的表：第一张互相都能看到；第二张前三个互相可见，其余只能看前面；第三张每个只能看前面"
everything = torch.ones(6, 6).bool()
before = everything.tril()
prefix = before | (torch.arange(6) < 3)  # the source, then the output
figure, axes = plt.subplots(1, 3)
named = {"encoder": everything, "encoder, decoder": prefix, "decoder": before}
for axis, (title, allowed) in zip(axes, named.items(), strict=True):
    axis.imshow(allowed, vmin=0, vmax=1)
    axis.set(title=title, xlabel="sees", xticks=[], yticks=[])
plt.show()

# The same block is one of BERT or of GPT, by its mask alone: does word 0 see word 5?
x = torch.randn(1, 6, 32)
changed = torch.cat((x[:, :5], torch.randn(1, 1, 32)), 1)
with torch.no_grad():
    for title, allowed in (("BERT", everything), ("GPT", before)):
        both = (
            encoder_block(p, "encoder_layers.0", y, 2, allowed) for y in (x, changed)
        )
        difference = torch.sub(*both)[0, 0].abs().max()
        assert (difference > 1e-6) == (title == "BERT")

# %% [markdown] lang="en"
# ## Exercises
#
# 1. `transformer.mask`: a function of `n` that gives the table [query, key] with 1 where a query of the decoder may look and 0 elsewhere.
# 2. `transformer.norm`: a function of `x [4, 6]` that normalises each row, with 1e-5 added to the variance, in NumPy.
# 3. `transformer.parameters`: how many parameters has one encoder block with $d = 512$ and 2048 hidden features, biases and norms included?
# 4. `transformer.cache`: how many scores does a head of the decoder's self-attention compute for an output of 10 words, if keys and values of the prefix are
#    kept and each step computes one new row?

# %% [markdown] lang="zh"
# ## 练习
#
# 1. `transformer.mask`：写一个函数，参数是 `n`，给出 [查询, 键] 的表：解码器的查询可以看的地方是 1，其余是 0。
# 2. `transformer.norm`：用 NumPy 写一个函数，参数是 `x [4, 6]`，对每一行做层归一化，方差加 1e-5。
# 3. `transformer.parameters`：一个 Encoder block，$d = 512$，前馈网络隐藏层 2048，连同偏置和归一化共有多少个参数？
# 4. `transformer.cache`：输出 10 个词，前缀的键和值都存着，每步只算新的一行。解码器自注意力的一个头一共要算多少个分数？

# %%
check("transformer.mask", ...)
check("transformer.norm", ...)
check("transformer.parameters", ...)
check("transformer.cache", ...)
