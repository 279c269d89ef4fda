# %% [markdown] lang="en"
# # 3 Encoder and decoder, and the bottleneck between them
#
# In machine translation or question answering the input is a sequence and the output is a sequence: **seq2seq**. An **encoder** reads the
# source $x_{1:S}$, a **decoder** writes the target $y_{1:T}$, and both are trained together, **end to end**: the whole is
# **differentiable everywhere**.
#
# **Words as vectors.** A **vocabulary** numbers all words. A word is then a **one-hot vector** $[0, …, 1, …, 0]$, as long as the vocabulary, and an
# **embedding matrix** $W_e$ turns it into a short dense one, $e_i = W_e x_i$: picking a row. The **word embedding** is learned with the rest, or comes from
# **Word2Vec or GloVe**. In a wider sense whatever represents a text is its embedding, the output of an encoder too: a **high-level representation**.
#
# **The objective.** The probability of a target is a product over its words,
#
# $$p_\theta(y_{1:T} \mid x_{1:S}) = \prod_{t=1}^{T} p_\theta(y_t \mid y_{1:t-1}, x_{1:S}),$$
#
# and **maximum likelihood** makes the data as probable as possible: $\max_\theta \sum_n \log p_\theta(y^{(n)} \mid x^{(n)})$, a sum of log probabilities.
# In training the right words before $t$ are given (**teacher forcing**), whatever the model would have said. In use it generates
# $\hat{y} = \mathrm{argmax}_y p_\theta(y \mid x)$, word by word, from a **start symbol** on.

# %% [markdown] lang="zh"
# # 3 编码器、解码器，以及两者之间的瓶颈
#
# **机器翻译**、**问答系统**这类任务，输入是序列，输出也是序列，叫做 **Seq2Seq**。**编码器-解码器**结构里，编码器读源序列 $x_{1:S}$，解码器写目标序列 $y_{1:T}$。这种结构**处处可微**，两者一起训练，是**端到端**的方法。
#
# **词变成向量**。**词表**给每个词编号，词的数学表达就是 **one-hot**（独热）向量 $[0, …, 1, …, 0]$，和词表一样长；**嵌入矩阵** $W_e$ 把它变成短而稠密的向量，$e_i = W_e x_i$，其实就是取一行。**词嵌入**（Embedding）可以和模型一起训练，也可以用 **Word2Vec**、GloVe 预训练得到。广义地说，能表示一个文本的向量都是它的 embedding，包括编码器的输出，也叫**高层语义表示**。
#
# **目标函数**。目标序列的概率是各个词的条件概率之积，
#
# $$p_\theta(y_{1:T} \mid x_{1:S}) = \prod_{t=1}^{T} p_\theta(y_t \mid y_{1:t-1}, x_{1:S}),$$
#
# 希望数据集出现的概率尽可能大，即**最大似然估计**：$\max_\theta \sum_n \log p_\theta(y^{(n)} \mid x^{(n)})$，一串对数概率之和。训练时，第 $t$ 步读到的前文都是正确的词（**Teacher Forcing**），不管模型自己预测的是什么；使用时从**翻译开始符**起逐词生成 $\hat{y} = \mathrm{argmax}_y\, p_\theta(y \mid x)$。

# %% [markdown] lang="en"
# ## From scratch: a GRU reads a sentence
#
# A recurrent network (RNN) has a state that each word changes. In a **GRU** two gates decide how much: $z$ how far the state moves to a
# new candidate, $r$ how much of the old state the candidate sees. (An **LSTM** has a second state, the cell, and three gates.)
#
# $$h_t = (1 - z) \circ h_{t-1} + z \circ \tanh(W x_t + U (r \circ h_{t-1}))$$

# %% [markdown] lang="zh"
# ## 从零实现：GRU 读一个句子
#
# 循环神经网络（RNN）有一个隐状态，每读一个词就更新。**GRU** 用两个门控制：更新门 $z$ 决定用多少候选状态来更新，重置门 $r$ 决定候选状态用到多少旧状态。（**LSTM** 另有一个记忆单元和三个门。）
#
# $$h_t = (1 - z) \circ h_{t-1} + z \circ \tanh(W x_t + U (r \circ h_{t-1}))$$

# %%
import matplotlib.pyplot as plt
import torch
from torch.nn import functional

from heedful.course import check
from heedful.course.diagram import arrow, box, canvas
from heedful.layers import Embedding, GatedRecurrentUnit, OutputLayer
from heedful.models.inputs import TokenInputs
from heedful.models.rnn_encoder_decoder import RNNEncoderDecoderConfig
from heedful.text.vocabulary import BOS, EOS

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
words = torch.tensor([5, 2, 7, 1])  # a source of four words
table = torch.randn(10, 6)  # embedding matrix: 10 words, 6 numbers each
hot = functional.one_hot(words, 10).double()
assert torch.equal(hot @ table, table[words])  # a product that picks rows


def gru_step(x, h, W, b, U_gates, U):
    w_z, w_r, w = (W @ x + b).chunk(3)
    u_z, u_r = (U_gates @ h).chunk(2)
    z, r = torch.sigmoid(w_z + u_z), torch.sigmoid(w_r + u_r)
    candidate = torch.tanh(w + U @ (r * h))
    return (1 - z) * h + z * candidate


def encode(vectors, *parameters):
    h, states = torch.zeros(parameters[-1].shape[0]), []
    for x in vectors:
        h = gru_step(x, h, *parameters)
        states.append(h)
    return torch.stack(
        states
    )  # one state a word; the last one is all that a plain decoder gets


# %% [markdown] lang="en"
# The one-hot vectors of the four words, the embedding matrix, and the product of the two, which has a row of the matrix for each word:

# %% [markdown] lang="zh"
# 四个词的 one-hot 向量、嵌入矩阵，以及两者的乘积；乘积的每一行就是矩阵里那个词的一行：

# %% picture="vectors" alt="Three tables: one-hot vectors of four words over a vocabulary of ten, one square each; the embedding matrix of ten rows, learned or by Word2Vec; four word vectors, each equal to one of its rows" alt_zh="三张表：四个词的 one-hot 向量，词表有十个词，每行一个格；嵌入矩阵，十行，训练得到或来自 Word2Vec；四个词向量，各等于矩阵的一行"
figure, axes = plt.subplots(1, 3, width_ratios=(10, 6, 6))
names = {
    "one-hot vectors": hot,
    "embedding matrix,\nlearned or by Word2Vec": table,
    "word vectors": hot @ table,
}
for axis, (name, numbers) in zip(axes, names.items(), strict=True):
    shown = axis.imshow(numbers, cmap="Blues" if numbers is hot else "RdBu")
    axis.set_title(name, fontsize=9)
    rows = range(10) if numbers is table else words.tolist()
    axis.set_yticks(range(len(rows)), [f"word {row}" for row in rows], fontsize=7)
axes[0].set(xlabel="place in the vocabulary", xticks=range(10))
plt.show()


# %% [markdown] lang="en"
# ## The same with heedful

# %% [markdown] lang="zh"
# ## 用 heedful 再算一遍

# %%
unit = GatedRecurrentUnit(6, 8)
own = unit.input_map.weight, unit.input_map.bias, unit.gates_map, unit.candidate_map
states = encode(table[words], *own)
state = (torch.zeros(8),)
for x, by_hand in zip(table[words], states, strict=True):
    state = unit.step(unit.input_map(x), state)
    assert abs(state[0] - by_hand).max() < 1e-6

embedding = Embedding(10, 6)
with torch.no_grad():  # a table learned elsewhere, as by Word2Vec, is copied into it
    embedding.weight.copy_(table)
assert abs(embedding(words) - embedding.weight[words]).max() < 1e-6

output = OutputLayer(10, 8, bias=True)  # ten scores at each of four steps
logits = states @ output.weight.T + output.bias
assert abs(output(states) - logits).max() < 1e-6
target = torch.tensor([3, 3, 9, 0])
log_likelihood = torch.log_softmax(logits, -1)[
    torch.arange(4), target
].sum()  # a sum of log probabilities
assert (
    abs(functional.cross_entropy(logits, target, reduction="sum") + log_likelihood)
    < 1e-6
)
states.shape

# %% [markdown] lang="en"
# ## The decoder
#
# The decoder is a second RNN. All it has of the source is one vector, the encoder's last state $c = h_S$. In Sutskever, Vinyals and Le (2014) its state begins with $c$; in Cho et al.
# (2014) it also sees $c$ at every step, $s_t = f(s_{t-1}, y_{t-1}, c)$. The **output layer**, a linear map and a softmax, turns each state into probabilities of the next word.
#
# Under teacher forcing it reads the target one word late, and an **end symbol** is the last word that it has to say:
#
# | reads | `<s>` | il | dort |
# | --- | --- | --- | --- |
# | has to say | il | dort | `</s>` |
#
# In use it reads what it said itself, until it says the end symbol. (It may read its own words in training, too: then it learns what to do after a mistake,
# but at first it hardly learns anything else.) Targets of a batch have different lengths; the padding behind the shorter ones is left out of the sum, or the
# model would learn above all to predict padding.

# %% [markdown] lang="zh"
# ## 解码器
#
# 解码器是另一个 RNN；关于源句，它只拿到一个向量，即编码器最后的状态 $c = h_S$。Sutskever、Vinyals 和 Le（2014）用 $c$ 作它的初始状态；Cho 等（2014）每一步还让它看到 $c$，$s_t = f(s_{t-1}, y_{t-1}, c)$。**输出层**是线性变换和 softmax，把每个状态变成下一个词的概率。
#
# Teacher Forcing 时，它读到的目标序列晚一个词，最后要输出的是**结束符**：
#
# | 读到 | `<s>` | il | dort |
# | --- | --- | --- | --- |
# | 要输出 | il | dort | `</s>` |
#
# 使用时它读自己上一步输出的词，直到输出结束符。（训练时也可以让它读自己输出的词：这样能学会出错以后怎么办，但一开始几乎学不到别的。）一个批次里目标序列长短不一，短的后面是填充符，不计入求和，否则模型首先学会的是预测填充符。


# %%
model = RNNEncoderDecoderConfig(
    embedding_size=6,
    hidden_size=8,
    num_layers=1,
    cell="gru",
    context="plain",
    is_source_reversed=False,
).build(10, 10, is_shared=False)
p = {name: parameter.detach() for name, parameter in model.eval().named_parameters()}
PAD, START, END = 0, BOS, EOS


def parameters_of(name):
    parts = "input_map.weight", "input_map.bias", "gates_map", "candidate_map"
    return [p[f"{name}.layers.0.{part}"] for part in parts]


def decoder_step(token, s, c):
    W, b, U_gates, U = parameters_of("decoder")
    word = p["target_embedding.weight"][token]
    s = gru_step(word, s, W, b + p["context_map.weight"] @ c, U_gates, U)
    return s, p["output.weight"] @ s + p["output.bias"]


def decode(source, target_in):
    c = encode(p["source_embedding.weight"][source], *parameters_of("encoder"))[-1]
    s, logits = c, []
    for token in target_in:
        s, scores = decoder_step(token, s, c)
        logits.append(scores)
    return torch.stack(logits)


def generate(source, longest=6):
    c = encode(p["source_embedding.weight"][source], *parameters_of("encoder"))[-1]
    s, tokens = c, [START]
    while tokens[-1] != END and len(tokens) <= longest:
        s, scores = decoder_step(tokens[-1], s, c)
        tokens.append(int(scores.argmax()))
    return tokens[1:]


target_in = torch.tensor([START, 7, 4, 9])
with torch.no_grad():
    decoded = model(TokenInputs(words[None], torch.tensor([4])), target_in[None])
    by_heedful = model.logits(decoded.features)[0]
assert abs(decode(words, target_in) - by_heedful).max() < 1e-6
print("an untrained model says", generate(words))

targets = torch.tensor([[7, 4, 9, END], [5, END, PAD, PAD]])
logits = torch.stack([decode(words, target_in)] * 2)
log_probs = logits.log_softmax(-1).gather(-1, targets[..., None])[..., 0]
real = targets != PAD
loss = -(log_probs * real).sum() / real.sum()  # a mean over six words, not eight
same = functional.cross_entropy(logits.mT, targets, ignore_index=PAD)
assert abs(loss - same) < 1e-6

decoded = model(TokenInputs(words[None], torch.tensor([4])), target_in[None])
functional.cross_entropy(model.logits(decoded.features)[0], targets[0]).backward()
assert all(parameter.grad.any() for parameter in model.parameters())  # end to end

# %% [markdown] lang="en"
# ## A picture: from words to words
#
# From below: words, one-hot vectors, word vectors, states. The decoder starts from $c$, reads the right words one late, and gives each a probability. The sum
# of their logarithms is the objective, and its gradients reach every number on the way, the embedding matrix too.

# %% [markdown] lang="zh"
# ## 图解：从词到词
#
# 从下往上：词、one-hot 向量、词向量、隐状态。解码器从 $c$ 开始，读正确的译文，总是晚一个词，给出每个词的概率。对数概率之和就是目标函数，梯度一直传到沿途的每个参数，包括嵌入矩阵。

# %% picture="states" alt="Left, one-hot vectors of the source become word vectors and encoder states; the last state is the context c, from which the decoder's states start; each goes through a softmax, and the log probabilities are added up; a dashed arrow leads gradients back" alt_zh="左：源句的 one-hot 向量变成词向量和编码器状态，最后的状态是上下文 c；右：解码器状态从 c 开始，各经过 softmax，对数概率相加；虚线箭头是往回传的梯度"
GREY, BLUE, ORANGE = "#f1f1f1", "#d6e6f7", "#f8e3cf"
figure, axis = plt.subplots(figsize=(9, 4.4))
canvas(axis, 90, 44)


def embedded(x, word, hot):
    """A word, its one-hot vector and its row of the embedding matrix."""
    axis.text(x, 0.5, word, ha="center", fontsize=9)
    for row in range(5):
        here = x - 4 + 2 * row
        box(axis, here, 5, "01"[row == hot], 1.7, 2.2, ORANGE if row == hot else GREY)
    arrow(axis, (x, 6.3), (x, 12.2))
    for row in range(3):
        shade = plt.cm.Oranges(0.15 + 0.25 * ((hot + 2 * row) % 4) / 3)
        box(axis, x - 2 + 2 * row, 13.5, "", 1.7, 2.2, shade)
    arrow(axis, (x, 14.8), (x, 18.3))


for place, (word, hot) in enumerate((("he", 3), ("sleeps", 1), ("</s>", 0))):
    x = 13 + 11.5 * place
    embedded(x, word, hot)
    box(axis, x, 20, f"h{place + 1}", width=6, height=3.4, colour=BLUE)
    arrow(axis, (x + 3, 20), (x + (7.5 if place == 2 else 8.5), 20))
box(axis, 47, 20, "c = h3", width=7, height=3.4, colour=ORANGE)
arrow(axis, (50.5, 20), (56, 20), colour="#c26410")
steps = (("<s>", 2, "il"), ("il", 4, "dort"), ("dort", 3, "</s>"))
for place, (word, hot, right) in enumerate(steps):
    x = 59 + 11.5 * place
    embedded(x, word, hot)
    box(axis, x, 20, f"s{place + 1}", width=6, height=3.4, colour=BLUE)
    if place < 2:
        arrow(axis, (x + 3, 20), (x + 8.5, 20))
    arrow(axis, (x, 21.7), (x, 24.7))
    box(axis, x, 27, "linear map,\nsoftmax", width=10, height=4.6, colour=GREY)
    arrow(axis, (x, 29.3), (x, 32.3))
    axis.text(x, 33, f"log p({right})", ha="center", fontsize=8)
    arrow(axis, (x, 35), (x, 38.3))
box(axis, 70.5, 40, "sum: maximum likelihood", width=32, height=3.4, colour=ORANGE)
for y, name in (
    (0.5, "reads"),
    (5, "one-hot"),
    (9.3, "embedding matrix\nor Word2Vec"),
    (13.5, "word vector"),
    (20, "states"),
):
    axis.text(0, y, name, fontsize=7, va="bottom" if y < 1 else "center")
axis.text(24.5, 23, "encoder", ha="center", fontsize=9)
axis.text(54, 23, "decoder", ha="right", fontsize=9)
back = (54.5, 40), (24.5, 40), (24.5, 26)
arrow(axis, *back, colour="#168f55", is_dashed=True)
axis.text(25.5, 41, "gradients go all the way back", color="#168f55", fontsize=8)
plt.show()

# %% [markdown] lang="en"
# ## A picture: the bottleneck
#
# The decoder sees one vector of **fixed length**, the state after the **last time step**, however long the source was. Its **capacity
# to represent** is limited, and much is lost. Here a GRU with random weights reads 4,000 sequences; linear regression then tries to tell from
# states which word came first. From the last state alone this fails as the sequence grows; from the **sequence of all hidden states**, the
# first among them, it does not. A reader of all states has to choose among them, and that is attention: each word of the target may need
# other words of the source, which a plain seq2seq cannot model directly. A **bidirectional RNN** makes each state know both sides.

# %% [markdown] lang="zh"
# ## 图解：瓶颈
#
# 不管源句多长，解码器都只看到一个**定长向量**，即**最后时间步**的隐状态。单个向量的**表征能力**有限，很多信息会损失掉，这就是**瓶颈**。下面让权重随机的 GRU 读 4,000 个序列，再用线性回归从隐状态猜出第一个词。只看最后的状态，序列一长就猜不出；看整个**隐藏状态序列**就没有问题，因为第一个状态也在里面。看全部状态，就要在其中选择，这就是注意力：**每个生成的词可能相关于源句子中不同的词**，普通的 seq2seq 不能对此直接建模。**双向 RNN** 则让每个状态都包含左右两边的信息。

# %% picture="bottleneck" alt="Share of first words told from states, by length: from the last state it falls from 1 to chance, from all states it stays 1" alt_zh="从隐状态猜出第一个词的比例，随长度变化：只看最后的状态从 1 降到随机水平，看全部状态一直是 1"
torch.manual_seed(1)
unit, table = GatedRecurrentUnit(16, 32), torch.randn(10, 16)
lengths, told = (1, 2, 4, 8, 12, 16, 24, 32), {"last state": [], "all states": []}
for length in lengths:
    sources = torch.randint(10, (4000, length))
    with torch.no_grad():
        states = [(torch.zeros(4000, 32),)]
        for x in unit.input_map(table[sources]).unbind(1):
            states.append(unit.step(x, states[-1]))
    first, last = states[1][0], states[-1][0]
    wanted = functional.one_hot(sources[:, 0], 10).double()
    for name, seen in (("last state", last), ("all states", first)):
        seen = torch.cat((seen, torch.ones(4000, 1)), dim=1)
        solved = torch.linalg.lstsq(seen[:2000], wanted[:2000]).solution
        told[name].append(
            ((seen[2000:] @ solved).argmax(1) == sources[2000:, 0]).double().mean()
        )
for name, shares in told.items():
    plt.plot(lengths, shares, "o-", label=name)
plt.axhline(0.1, ls=":", color="#757a82", label="chance")
plt.xlabel("length of the source")
plt.ylabel("first words told right")
plt.legend()
plt.show()

# %% [markdown] lang="en"
# ## Exercises
#
# 1. `bottleneck.table`: a vocabulary has 664,320 words, an embedding 256 numbers. How many numbers has the embedding matrix?
# 2. `bottleneck.likelihood`: the decoder gave the three words of a target the probabilities 0.5, 0.8 and 0.25. What is the log
#    likelihood of the target?
# 3. `bottleneck.state`: a function of `inputs [5, 3], W [4, 3], U [4, 4]` that gives the last state of a simple RNN, $h = \tanh(W x + U h)$.
# 4. `bottleneck.loss`: a function of `log_probs [2, 4], lengths [2]` that gives the loss of a batch, where `log_probs` are those of the right words, some of
#    them padding.

# %% [markdown] lang="zh"
# ## 练习
#
# 1. `bottleneck.table`：词表有 664,320 个词，嵌入是 256 个数。嵌入矩阵一共有多少个数？
# 2. `bottleneck.likelihood`：解码器给目标序列三个词的概率是 0.5、0.8、0.25。目标序列的对数似然是多少？
# 3. `bottleneck.state`：写一个函数，参数是 `inputs [5, 3], W [4, 3], U [4, 4]`，给出简单 RNN $h = \tanh(W x + U h)$ 的最后一个状态。
# 4. `bottleneck.loss`：写一个函数，参数是 `log_probs [2, 4], lengths [2]`，给出一个批次的损失；`log_probs` 是正确的词的对数概率，其中有些是填充符。

# %%
check("bottleneck.table", ...)
check("bottleneck.likelihood", ...)
check("bottleneck.state", ...)
check("bottleneck.loss", ...)
