# %% [markdown] lang="en"
# # 10 Search, BLEU, and how far to trust a heat map
#
# **Search.** The model gives $\hat{y} = \mathrm{argmax}_y p(y \mid x)$ no output directly; there are too many. **Greedy search** takes the **argmax** word by word. **Beam search** keeps the $k$ best beginnings.
# Long outputs have small probabilities, so hypotheses are ranked by $\log p(y \mid x) / |y|^\alpha$.
#
# **BLEU** counts how many n-grams of the output are in the reference, each at most as often as there, with a penalty for brevity:
#
# $$\mathrm{BLEU} = \min(1, e^{1 - r/c}) \exp\left(\tfrac{1}{4} \sum_{n=1}^{4} \log p_n\right).$$
#
# **Heat maps.** Attention weights look like an explanation. Three checks tell how far to trust them: against alignments made by hand, as the **alignment error rate** $\mathrm{AER} = 1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|}$;
# against what happens when a word is **taken out**; and against the gradient.

# %% [markdown] lang="zh"
# # 10 搜索、BLEU，以及热力图可以相信几分
#
# **搜索**。要找的是 $\hat{y} = \mathrm{argmax}_y\, p(y \mid x)$，但候选太多，不能一一比较。**贪心搜索**每步取概率最大的词；**束搜索**保留 $k$ 个最好的开头。输出越长，概率越小，所以按 $\log p(y \mid x) / |y|^\alpha$ 排序。
#
# **BLEU** 数输出里有多少 n 元组在参考译文里出现，每个 n 元组最多算它在参考译文里出现的次数，译文太短还要扣分：
#
# $$\mathrm{BLEU} = \min(1, e^{1 - r/c}) \exp\left(\tfrac{1}{4} \sum_{n=1}^{4} \log p_n\right).$$
#
# **热力图**。注意力权重看起来像是解释。可以相信几分，有三种检验：与人工对齐比较，即**对齐错误率** $\mathrm{AER} = 1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|}$；**去掉**一个词，看输出怎么变；与梯度比较。

# %% [markdown] lang="en"
# ## From scratch

# %% [markdown] lang="zh"
# ## 从零实现

# %%
import math
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch.nn import functional

from heedful.course import AttentionPage, check
from heedful.evaluation.alignment_error import AlignmentErrorRate
from heedful.evaluation.metrics.bleu import Bleu
from heedful.models.engine import TorchEngine
from heedful.models.inputs import TokenInputs
from heedful.models.rnnsearch import RNNsearchConfig
from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.text.vocabulary import BOS, EOS


def grams(words, n):
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def bleu(outputs, references):
    matches, totals, c, r = [0] * 4, [0] * 4, 0, 0
    for output, reference in zip(outputs, references, strict=True):
        mine, theirs = output.split(), reference.split()
        c, r = c + len(mine), r + len(theirs)
        for n in range(1, 5):
            counts = grams(mine, n)
            matches[n - 1] += (
                counts & grams(theirs, n)
            ).total()  # at most as often as there
            totals[n - 1] += counts.total()
    mean = sum(math.log(m / t) for m, t in zip(matches, totals, strict=True)) / 4
    return 100 * min(1, math.exp(1 - r / c)) * math.exp(mean)


def error_rate(A, S, P):
    return 100 * (1 - (len(A & S) + len(A & P)) / (len(A) + len(S)))


def beam_search(step, width, longest, alpha=1.0):
    """`step` gives log probabilities of the next token after some tokens."""
    live, ended = [((), 0.0)], []
    for _ in range(longest):
        longer = [
            ((*tokens, token), log_prob + float(more))
            for tokens, log_prob in live
            for token, more in enumerate(step(tokens))
        ]
        longer.sort(key=lambda each: -each[1])
        live = []
        for tokens, log_prob in longer[: 2 * width]:
            if tokens[-1] == EOS:
                ended.append((tokens[:-1], log_prob, log_prob / len(tokens) ** alpha))
            elif len(live) < width:
                live.append((tokens, log_prob))
    return sorted(ended, key=lambda each: -each[2])


# %% [markdown] lang="en"
# ## Where greedy search fails
#
# The most probable sentence need not begin with the most probable word. Below, A is the better first word, but what comes after B is more certain: greedy search ends with
# probability 0.5 · 0.4 = 0.2, and a beam of 2 finds 0.4 · 0.9 = 0.36.
#
# To be sure one would have to try all outputs (**exhaustive search**). Of a vocabulary of $V$ words and at most $T$ places there are about $V^T$, for 30,000 words and 20 places $10^{89}$. Greedy search looks at $V T$
# words, a beam at $k V T$; $k = 1$ is greedy search, and a beam that drops nothing is exhaustive.

# %% [markdown] lang="zh"
# ## 贪心搜索什么时候会错
#
# 概率最大的句子，不一定以概率最大的词开头。下面的例子里，第一个词 A 更好，但 B 的后面更有把握：贪心搜索得到的概率是 0.5 · 0.4 = 0.2，束宽为 2 时找到 0.4 · 0.9 = 0.36。
#
# 要有绝对把握，就得试遍所有的输出（**穷举搜索**）。词表有 $V$ 个词，最多 $T$ 个位置，大约有 $V^T$ 种；3 万个词、20 个位置，就是 $10^{89}$ 种。贪心搜索只看 $V T$ 个词，束搜索看 $k V T$ 个；$k = 1$ 就是贪心搜索，什么也不丢的束搜索就是穷举搜索。

# %%
A, B = 0, 1  # the end symbol is EOS = 3; token 2 has no probability
NEXT = {
    (): (0.5, 0.4, 0.0, 0.1),
    (A,): (0.3, 0.3, 0.0, 0.4),
    (B,): (0.05, 0.05, 0.0, 0.9),
}


def toy_step(tokens):
    with np.errstate(divide="ignore"):
        return np.log(NEXT.get(tokens, (0.0, 0.0, 0.0, 1.0)))


for width in (1, 2, 64):
    tokens, log_prob, _ = beam_search(toy_step, width, longest=3, alpha=0.0)[0]
    print(
        f"beam {width}: {' '.join('AB'[token] for token in tokens)}, {math.exp(log_prob):.2f}"
    )

# %% [markdown] lang="en"
# ## The same with heedful
#
# BLEU and AER on made-up outputs; the search on a model that learns to turn digits round, as in lesson 4, trained here for a quarter of a
# minute.

# %% [markdown] lang="zh"
# ## 用 heedful 再算一遍
#
# 先用几个句子检验 BLEU 和 AER；再像第 4 课那样，用十几秒训练一个把数字倒着写的模型，检验搜索。

# %%
outputs = ["a dog runs across the green field", "two men sit on the bench and wait"]
references = [
    "a dog is running across the green field",
    "two men sit on a bench and wait",
]
metric = Bleu()
totals = metric.statistics(outputs, [[each] for each in references]).sum(
    0, keepdims=True
)
print(f"BLEU {bleu(outputs, references):.2f}")
assert abs(metric.scores(totals).item() - bleu(outputs, references)) < 1e-6

aer = AlignmentErrorRate()
counts = aer.statistics(["0-0 1-1 2-2"], [["0-0 1-1 2p3 2p2"]])
by_hand = error_rate(
    {(0, 0), (1, 1), (2, 2)}, {(0, 0), (1, 1)}, {(0, 0), (1, 1), (2, 3), (2, 2)}
)
assert abs(aer.scores(counts).item() - by_hand) < 1e-6

NUM_TOKENS = 14  # ten digits behind four marks
torch.manual_seed(1)
config = RNNsearchConfig(
    embedding_size=16,
    hidden_size=32,
    maxout_size=16,
    dropout=0.0,
    attention={"hidden_size": 24},
)
model = config.build(NUM_TOKENS, NUM_TOKENS, is_shared=False)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def batch(length, size=64):
    digits, mark = (
        torch.randint(4, NUM_TOKENS, (size, length)),
        torch.ones(size, 1, dtype=torch.int64),
    )
    turned = digits.flip(1)
    source = TokenInputs(
        torch.cat((digits, EOS * mark), 1), torch.full((size,), length + 1)
    )
    return (
        source,
        torch.cat((BOS * mark, turned), 1),
        torch.cat((turned, EOS * mark), 1),
    )


for _ in range(700):
    inputs, target_in, target = batch(int(torch.randint(2, 9, ())))
    logits = model.logits(model(inputs, target_in).features)
    loss = functional.cross_entropy(logits.flatten(0, 1), target.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model = model.double().eval()
print(f"loss of a word {loss.item():.3f}")

# %%
inputs, _, _ = batch(12, 1)  # longer than in training: less certain


def step(tokens):
    with torch.no_grad():
        features = model(inputs, torch.tensor([[BOS, *tokens]])).features
        return model.logits(features)[0, -1].log_softmax(-1)


source = inputs.ids[0].numpy()
settings = SearchConfig(beam=3, nbest=1, alpha=1.0, stopping="full")
(found,) = search(TorchEngine(model), [source], settings, max_length=20)
tokens, log_prob, score = beam_search(step, 3, 20)[0]
assert tokens == found[0].token_ids
assert abs(log_prob - found[0].log_prob) < 1e-6
print([int(token) - 4 for token in source[:-1]], "->", [token - 4 for token in tokens])

# %% [markdown] lang="en"
# ## A picture: attention beside what matters
#
# Left, the attention of a source. Right, what happens to the log probability of each output word when a source word is replaced by another. For most words
# they agree, since one source word decides each output. But the last column, the mark that ends the source, matters to every word, and hardly any word attends to it: the encoder reads
# backwards from it, and passes it on. In translation they agree less. [Measured against links made by hand](../results/how-far-to-trust-a-heat-map.md), the attention of the step that *reads* a word is wrong in 35 to 50 of
# 100 links, and that of the step that *predicts* it, which heat maps show, in 69 to 77. So a heat map is a hint, to be checked with another method; the page of
# `heedful serve` has five.

# %% [markdown] lang="zh"
# ## 图解：注意力与真正起作用的词
#
# 左边是一个源序列的注意力；右边是把一个源词换成别的词，每个输出词的对数概率下降多少。这个任务里，每个输出都由一个源词决定，所以多数词上两者一致。但最后一列，即结束符，对每个词都起作用，却几乎没有词注意到它：编码器从结束符开始反向读，把信息传给了别的位置。翻译时两者就没有这么一致了。[与人工对齐比较](../results/how-far-to-trust-a-heat-map.md)（英文）：*读入*一个词的那一步，注意力的对齐错误率是 35 到 50 %；热力图画的却是*预测*它的那一步，错误率是 69 到 77 %。所以热力图只是线索，要用别的方法核对；`heedful serve` 的网页里有五种。

# %% picture="trust" alt="Two maps of eight output words over eight source words: attention, and the loss of probability when a source word is replaced; both are bright on the same diagonal, the second also in the last column" alt_zh="两幅图，八个输出词对八个源词：左边是注意力，右边是替换一个源词时概率的下降；两幅都亮在同一条对角线上，第二幅的最后一列也亮"
torch.manual_seed(5)
inputs, target_in, target = batch(7, 1)


def likelihood(ids):
    with torch.no_grad():
        decoded = model(TokenInputs(ids, inputs.lengths), target_in, need=("weights",))
        log_probs = model.logits(decoded.features).log_softmax(-1)
        return log_probs.gather(-1, target[..., None])[0, :, 0], decoded


whole, decoded = likelihood(inputs.ids)
attention = decoded.attended[model.alignment].weights[0]
effect = []
for place in range(8):
    others = torch.arange(4, NUM_TOKENS)
    others = others[others != inputs.ids[0, place]]
    changed = inputs.ids.clone()
    losses = []
    for other in others:
        changed[0, place] = other
        losses.append(whole - likelihood(changed)[0])
    effect.append(torch.stack(losses).mean(0))
effect = torch.stack(effect, 1).clamp(min=0)  # [output, source]
agreement = (attention.argmax(1) == effect.argmax(1))[:7].double().mean()
print(f"attention and effect name the same word for {agreement:.0%} of the words")
figure, axes = plt.subplots(1, 2)
for axis, table, title in zip(
    axes, (attention, effect), ("attention", "effect of a change"), strict=True
):
    axis.imshow(table)
    axis.set(title=title, xlabel="source", ylabel="output")
plt.show()

# %% [markdown] lang="en"
# The left one as a page to play with: point at an output word, and see which source words it looks at.

# %% [markdown] lang="zh"
# 左边那幅，做成可以动手试的网页：指向一个输出的词，就看到它注意源句的哪些词。

# %% page="page" alt="Page with the attention of a source of seven digits and its reverse" alt_zh="网页：七个数字和倒过来的输出，以及两者之间的注意力"
digits = [str(int(token) - 4) for token in inputs.ids[0, :7]]
AttentionPage([*digits, "</s>"], [*digits[::-1], "</s>"], {"cross": [attention[None]]})

# %% [markdown] lang="en"
# ## A picture: where a beam helps

# %% [markdown] lang="zh"
# ## 图解：束搜索有没有用

# %% picture="beam" alt="Mean score of the best output for beams of one to six, which rises from one to two and then hardly" alt_zh="束宽 1 到 6 时最好输出的平均得分：从 1 到 2 上升，之后几乎不变"
torch.manual_seed(7)
sources = [row.numpy() for row in batch(14, 40)[0].ids]
widths = range(1, 7)
means = []
for width in widths:
    settings = SearchConfig(beam=width, nbest=1, alpha=1.0)
    found = search(TorchEngine(model), sources, settings, max_length=24)
    means.append(np.mean([hypotheses[0].score for hypotheses in found]))
plt.plot(widths, means, "o-")
plt.xlabel("beam")
plt.ylabel("log probability of a token")
plt.show()

# %% [markdown] lang="en"
# ## Exercises
#
# 1. `trust.precision`: the output is "the the the", the reference "the cat". What is the modified precision $p_1$?
# 2. `trust.beam`: hypothesis 0 has 5 tokens and log probability −3.0, hypothesis 1 has 3 tokens and −2.5. Which ranks first with $\alpha = 1$?
# 3. `trust.alignment`: $A$ = {0-0, 1-1, 2-1}, $S$ = {0-0, 1-1}, $P$ = {0-0, 1-1, 2-2}. What is the alignment error rate, from 0 to 1?
# 4. `trust.search`: the first word is A with 0.6 or B with 0.4. After A comes A with 0.4, B with 0.3 or the end with 0.3; after B the end with 0.9, A with 0.05 or B
#    with 0.05; after two words always the end. What is the probability of the most probable output?

# %% [markdown] lang="zh"
# ## 练习
#
# 1. `trust.precision`：输出是“the the the”，参考译文是“the cat”。修正后的精确率 $p_1$ 是多少？
# 2. `trust.beam`：假设 0 有 5 个 token，对数概率 −3.0；假设 1 有 3 个 token，−2.5。$\alpha = 1$ 时哪个排在前面？
# 3. `trust.alignment`：$A$ = {0-0, 1-1, 2-1}，$S$ = {0-0, 1-1}，$P$ = {0-0, 1-1, 2-2}。对齐错误率是多少（0 到 1）？
# 4. `trust.search`：第一个词是 A（0.6）或 B（0.4）。A 之后是 A（0.4）、B（0.3）或结束（0.3）；B 之后是结束（0.9）、A（0.05）或 B（0.05）；两个词之后一定结束。概率最大的输出，概率是多少？

# %%
check("trust.precision", ...)
check("trust.beam", ...)
check("trust.alignment", ...)
check("trust.search", ...)
