# %% [markdown] lang="en"
# # 9 Documents, images, answers
#
# Attention left translation long ago. What changes is where queries, keys and values come from.
#
# **Documents.** A document has no decoder that could ask. So the query itself is learned. Each state goes through a **fully connected layer**, $u_i = \tanh(W h_i)$,
# and is compared with a vector $u$ that is trained with the rest (notes 3 of [this course](README.md) call it the mean optimal vector, one for each step $t$; often only the last step counts, $s = s_T$):
#
# $$\alpha_i = \mathrm{softmax}_i(u_i^T u), \qquad s = \sum_i \alpha_i h_i .$$
#
# **Hierarchical attention** does so twice, **word → sentence → document**: first which words matter in a sentence, then which sentences matter in the document.
#
# **Images.** An image is a grid of **regions**; their features are keys and values, and the decoder that writes the caption asks before each word (**image captioning**; **summarization** is the same with long texts).
#
# **Answers.** In question answering the question is the query and the facts are the memory. Where an answer needs two facts, attention runs twice: what was found the first time is added to the query, $u_2 = u_1 + \sum_i p_i c_i$.

# %% [markdown] lang="zh"
# # 9 文档、图像、答案
#
# 注意力早已不局限于翻译；变化的是查询、键和值从哪里来。
#
# **文档**。文档分类没有解码器来提供查询，所以查询本身也要学。每个隐状态先过一个全连接层，$u_i = \tanh(W h_i)$，再和**平均最优向量** $u$ 比较，$u$ 通过训练得到（[本课程](README.md)的笔记 3 里，每个时间步 $t$ 一个 $u_t$；通常只关心最后时间步的输出，$s = s_T$）：
#
# $$\alpha_i = \mathrm{softmax}_i(u_i^T u), \qquad s = \sum_i \alpha_i h_i .$$
#
# **层级注意力**做两次，符合文档的层级结构，**词 → 句子 → 文档**：先看句子里哪些单词重要，再看文档里哪些句子重要。
#
# **图像**。图像分成一格一格的**区域**，区域的特征是键和值；解码器每写一个词，先查询一次，这就是**图像描述**。**文本摘要**也一样，只是原文很长。
#
# **答案**。问答系统里，问题是查询，事实是记忆。答案需要两条事实时就注意两次：第一次找到的内容加到查询上，$u_2 = u_1 + \sum_i p_i c_i$。

# %% [markdown] lang="en"
# ## From scratch

# %% [markdown] lang="zh"
# ## 从零实现

# %%
import matplotlib.pyplot as plt
import torch
from torch import nn

from heedful.attention import Dot, attend, padding
from heedful.course import AttentionPage, check
from heedful.layers import (
    MultiheadAttention,
    MultiQueryVectorAttention,
    StepQueryVectorAttention,
    TanhDot,
)

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
H = torch.randn(6, 8)  # states of six words


def document_vector(H, W, u):
    weights = torch.softmax(torch.tanh(H @ W.T) @ u, dim=0)
    return weights @ H, weights


def hops(question, keys, values, num_hops):
    u = question
    for _ in range(num_hops):
        u = u + torch.softmax(keys @ u, dim=0) @ values
    return u


# %% [markdown] lang="en"
# ## The same with heedful

# %% [markdown] lang="zh"
# ## 用 heedful 再算一遍

# %%
layer = MultiQueryVectorAttention(1, TanhDot(5, 8))
with torch.no_grad():
    W, u = layer.score.key_projection.weight, layer.queries[0]
    by_heedful, _ = layer(H, H)
    assert abs(document_vector(H, W, u)[0] - by_heedful).max() < 1e-6

steps = StepQueryVectorAttention(6, TanhDot(5, 8))  # a query vector for each step
nn.init.normal_(steps.queries)
with torch.no_grad():
    W, u = steps.score.key_projection.weight, steps.queries[-1]
    last = steps(torch.tensor([5]), H, H).context[0]  # s = s_T
    assert abs(document_vector(H, W, u)[0] - last).max() < 1e-6

question, keys, values = torch.randn(8), torch.randn(4, 8), torch.randn(4, 8)
u = question
for _ in range(3):
    u = u + attend(u[None], keys, values, score=Dot(8, 8)).context[0]
assert abs(hops(question, keys, values, 3) - u).max() < 1e-6

# %% [markdown] lang="en"
# ## A picture: a document
#
# Documents of four sentences of six words; one word of one sentence tells the label. Nobody tells the model which. After two hundred
# steps, attention to sentences times attention to words is where it should be.

# %% [markdown] lang="zh"
# ## 图解：文档
#
# 每个文档有四句，每句六个词，其中只有一个词决定标签，但没有告诉模型是哪一个。训练两百步之后，句子的注意力乘以词的注意力就落在了该落的地方。

# %% picture="document" alt="Weights of four sentences of six words: nearly all of it lies on the one word that tells the label" alt_zh="四句、每句六个词的权重：几乎全部落在决定标签的那个词上"
torch.set_default_dtype(torch.float32)
torch.manual_seed(1)
table, output = nn.Embedding(40, 16), nn.Linear(16, 2)
words, sentences = (MultiQueryVectorAttention(1, TanhDot(16, 16)) for _ in range(2))


def classify(documents):
    vectors = table(documents)  # [document, sentence, word, size]
    inner, of_words = words(
        vectors, vectors, need=("weights",)
    )  # [document, sentence, size]
    outer, of_sentences = sentences(inner, inner, need=("weights",))
    both = of_sentences.weights[:, 0, :, None] * of_words.weights[:, :, 0]
    return output(outer), both


def draw(size):
    documents = torch.randint(2, 40, (size, 4, 6))
    labels = torch.randint(2, (size,))
    places = torch.randint(4, (size,)), torch.randint(6, (size,))
    documents[torch.arange(size), *places] = labels  # word 0 is bad, word 1 is good
    return documents, labels


parameters = [
    p for part in (table, output, words, sentences) for p in part.parameters()
]
optimizer = torch.optim.Adam(parameters, lr=0.01)
for _ in range(200):
    documents, labels = draw(64)
    loss = nn.functional.cross_entropy(classify(documents)[0], labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
documents, labels = draw(500)
with torch.no_grad():
    scores, weights = classify(documents)
print(f"{(scores.argmax(1) == labels).double().mean():.1%} of unseen documents right")
plt.imshow(weights[0])
for (row, column), word in zip(
    torch.cartesian_prod(torch.arange(4), torch.arange(6)),
    documents[0].flatten(),
    strict=True,
):
    plt.text(column, row, int(word), ha="center", va="center", color="#c26410")
plt.yticks(range(4))
plt.xlabel("word")
plt.ylabel("sentence")
plt.show()

# %% [markdown] lang="en"
# The weights of an unseen document as a page to play with: the answer is a row over the words.

# %% [markdown] lang="zh"
# 一个没见过的文档的权重，做成可以动手试的网页：答案是一行，每个词一个权重。

# %% page="page" alt="Page with the label of a document and the weights of its 24 words" alt_zh="网页：一个文档的标签，以及 24 个词的权重"
NAMES = ["bad", "good", *(f"w{number}" for number in range(2, 40))]
AttentionPage(
    [NAMES[word] for word in documents[0].flatten()],
    [NAMES[scores[0].argmax()]],
    {"cross": [weights[0].reshape(1, 1, 24)]},
)

# %% [markdown] lang="en"
# ## A picture: two hops to an answer
#
# Three facts link a thing to a place or a holder. Each fact has the thing as key, and as value the way from the thing to its place, so that adding the
# value leads from one to the other. *Where is the apple?* takes two hops: Mary has it, and Mary is in the kitchen.

# %% [markdown] lang="zh"
# ## 图解：两次找到答案
#
# 三条事实各说明一样东西在哪里、在谁手里。每条事实的键是那样东西，值是从它到所在之处的“位移”，加上值，就从前者走到后者。“苹果在哪里？”要找两次：苹果在 Mary 手里，Mary 在厨房里。

# %% picture="hops" alt="Two rows of weights over three facts: at the first hop all of it on the fact that Mary has the apple, at the second on the fact that Mary is in the kitchen" alt_zh="两行，三条事实上的权重：第一次全部在“Mary 拿着苹果”上，第二次全部在“Mary 在厨房”上"
things = ["apple", "Mary", "kitchen", "John", "garden"]
facts = [("apple", "Mary"), ("Mary", "kitchen"), ("John", "garden")]
one_hot = dict(zip(things, torch.eye(5), strict=True))
keys = torch.stack([9 * one_hot[thing] for thing, _ in facts])
values = torch.stack([one_hot[place] - one_hot[thing] for thing, place in facts])
u, rows = one_hot["apple"], []
for _ in range(2):
    attended = attend(u[None], keys, values, score=Dot(5, 5), need=["weights"])
    u = u + attended.context[0]
    rows.append(attended.weights[0])
assert abs(u - hops(one_hot["apple"], keys, values, 2)).max() < 1e-6
print("the apple is in the", things[u.argmax()])
plt.imshow(torch.stack(rows), vmin=0, vmax=1)
plt.xticks(range(3), [f"{thing}: {place}" for thing, place in facts])
plt.yticks(range(2), ["hop 1", "hop 2"])
plt.show()

# %% [markdown] lang="en"
# ## A picture: an image
#
# A scene of 64 × 64 pixels is cut into 8 × 8 regions; here a region's feature is just its mean colour. Queries for red and for blue (**several query vectors**, each with its own row of weights) find
# the shapes. (A trained captioner learns features and queries; `heedful demo --task captioning` shows one.)

# %% [markdown] lang="zh"
# ## 图解：图像
#
# 64 × 64 像素的图分成 8 × 8 个区域，这里区域的特征就是平均颜色。红色和蓝色的查询（即**多个查询向量**，各有一行权重）各自找到了图形。（真正的模型会学习特征和查询，见 `heedful demo --task captioning`。）

# %% picture="image" alt="A scene with a red square and a blue disc; two maps of weights over 64 regions, one bright at the square, one at the disc" alt_zh="有红色方块和蓝色圆盘的图；两幅 64 个区域的权重图，一幅亮在方块处，一幅亮在圆盘处"
scene = torch.ones(64, 64, 3)
scene[8:24, 32:56] = torch.tensor([0.8, 0.2, 0.1])
rows, columns = torch.meshgrid(torch.arange(64), torch.arange(64), indexing="ij")
scene[(rows - 44) ** 2 + (columns - 18) ** 2 < 120] = torch.tensor([0.1, 0.3, 0.8])
regions = scene.unfold(0, 8, 8).unfold(1, 8, 8).mean((-1, -2)).flatten(0, 1)  # [64, 3]
queries = torch.tensor([[9.0, -9, -9], [-9.0, -9, 9]])  # red, blue
attended = attend(
    queries, regions, regions, score=Dot(3, 3), mask=padding(64), need=["weights"]
)
figure, axes = plt.subplots(1, 3)
axes[0].imshow(scene)
axes[1].imshow(attended.weights[0].view(8, 8))
axes[2].imshow(attended.weights[1].view(8, 8))
for axis, title in zip(axes, ("scene", "red", "blue"), strict=True):
    axis.set(title=title, xticks=[], yticks=[])
plt.show()

# %% [markdown] lang="en"
# ## An image is a sentence of patches
#
# The **Vision Transformer** (Dosovitskiy et al. 2021) needs no convolutional network: it cuts the image into patches, maps each to a vector, adds
# positions, and puts one learned **class** vector before them. The encoder of lesson 8 does the rest, and the class vector at its end is
# classified. Cutting and mapping is one convolution whose step is its width. Two things have changed since 2017: the norm stands *before* each sub-layer, $x + f(\mathrm{LayerNorm}(x))$ (**pre-norm**), which trains more
# steadily, and ReLU has become GELU, a smooth form of it.

# %% [markdown] lang="zh"
# ## 图像是由图块组成的句子
#
# **视觉 Transformer**（Dosovitskiy 等，2021）不需要卷积网络：把图像切成图块，每块映射成一个向量，加上位置编码，最前面放一个可学习的**类别**向量；其余由第 8 课的编码器完成，最后用类别向量来分类。切块加映射，就是一次步长等于窗口的卷积。与 2017 年相比有两处不同：归一化放在每个子层*之前*，$x + f(\mathrm{LayerNorm}(x))$（**pre-norm**），训练更稳；ReLU 换成了更平滑的 GELU。

# %%
image = scene.movedim(-1, 0)[None]  # [1, colour, row, column]
W = torch.randn(16, 3 * 8 * 8)
patches = image.unfold(2, 8, 8).unfold(3, 8, 8)  # [1, colour, 8, 8, 8, 8]
patches = patches.permute(0, 2, 3, 1, 4, 5).reshape(1, 64, 3 * 8 * 8)
by_hand = patches @ W.T
by_convolution = torch.conv2d(image, W.view(16, 3, 8, 8), stride=8).flatten(2).mT
assert abs(by_hand - by_convolution).max() < 1e-3
words = torch.cat((torch.zeros(1, 1, 16), by_hand), 1)  # the class vector first
print("a sentence of", words.shape[1], "words of", words.shape[2], "numbers")

# %% [markdown] lang="en"
# One block of it learns here whether a red square stands left or right of a blue disc. Neither patch alone tells. The picture shows what the class vector looks at in each of two heads: in one at the square, in the other at the disc.
#
# Convolution has built in that neighbours belong together and that a thing is the same wherever it stands. A Vision Transformer has to learn both, so on a million images it is behind a convolutional network, and ahead on hundreds of
# millions. As its cost grows with the square of the number of patches, the **Swin Transformer** (Liu et al. 2021) attends within windows of patches, which brings neighbourhood back.

# %% [markdown] lang="zh"
# 下面用它的一个 block 学习：红色方块在蓝色圆盘的左边还是右边？单看哪一块都不知道。图里画出类别向量在两个头里注意到哪里：一个头注意到方块，另一个注意到圆盘。
#
# 卷积天生就知道相邻的像素彼此相关，同一个东西放在哪里都一样；视觉 Transformer 两样都要学，所以只有一百万张图时不如卷积网络，有几亿张时就超过了。它的代价随块数的平方增长，**Swin Transformer**（Liu 等，2021）只在由图块组成的窗口之内做注意力，也就重新有了“相邻”的概念。


# %% picture="patches" alt="Three small images with a red square and a blue disc, beside each of them two tables of weights over 16 patches; the weights of the first lie on the square, those of the second on the disc" alt_zh="三幅小图，各有一个红色方块和一个蓝色圆盘，旁边是两张 16 个图块的权重表，第一张的权重落在方块上，第二张的落在圆盘上"
class VisionTransformer(nn.Module):
    def __init__(self, size=32):
        super().__init__()
        self.patches = nn.Conv2d(3, size, 8, stride=8)
        self.mark = nn.Parameter(torch.zeros(1, 1, size))  # the class vector
        self.positions = nn.Parameter(torch.randn(17, size))
        self.norm = nn.LayerNorm(size)
        self.attention = MultiheadAttention(size, 2, batch_first=True)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(size),
            nn.Linear(size, 2 * size),
            nn.GELU(),
            nn.Linear(2 * size, size),
        )
        self.output = nn.Sequential(nn.LayerNorm(size), nn.Linear(size, 2))

    def forward(self, images):
        x = self.patches(1 - images).flatten(2).mT  # white is zero
        x = torch.cat((self.mark.expand(len(x), -1, -1), x), 1) + self.positions
        y = self.norm(x)
        y, weights = self.attention(y, y, y, average_attn_weights=False)
        x = x + y
        x = x + self.feed_forward(x)
        return self.output(x[:, 0]), weights


rows, columns = torch.meshgrid(torch.arange(32), torch.arange(32), indexing="ij")


def draw_scenes(number):
    square, disc = torch.randint(4, 28, (2, number, 2, 1, 1))  # centres, [row, column]
    dy, dx = (rows - square[:, 0]).abs(), (columns - square[:, 1]).abs()
    to_disc = (rows - disc[:, 0]) ** 2 + (columns - disc[:, 1]) ** 2
    images = torch.ones(number, 32, 32, 3)
    images[dy.maximum(dx) <= 3] = torch.tensor([0.8, 0.2, 0.1])
    images[to_disc <= 14] = torch.tensor([0.1, 0.3, 0.8])
    return images.movedim(-1, 1), (square < disc)[:, 1, 0, 0].long()


torch.manual_seed(0)
vision = VisionTransformer()
optimizer = torch.optim.Adam(vision.parameters(), lr=0.003)
for _ in range(300):
    images, is_left = draw_scenes(64)
    loss = nn.functional.cross_entropy(vision(images)[0], is_left)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
images, is_left = draw_scenes(500)
with torch.no_grad():
    logits, weights = vision(images)
print(f"{(logits.argmax(1) == is_left).double().mean():.1%} of unseen images right")
figure, axes = plt.subplots(1, 9, figsize=(9, 1.4))
for number in range(3):
    maps = weights[number, :, 0, 1:].view(2, 4, 4)  # of the class vector, in each head
    for axis, drawing in zip(
        axes[3 * number :], (images[number].movedim(0, -1), *maps), strict=False
    ):
        axis.imshow(drawing)
        axis.set(xticks=[], yticks=[])
plt.show()

# %% [markdown] lang="en"
# ## Exercises
#
# 1. `tasks.document`: a function of `H [5, 4], W [3, 4], u [3]` that gives the vector of a document.
# 2. `tasks.regions`: how many regions of 8 × 8 pixels has an image of 64 × 64?
# 3. `tasks.span`: an answer is a span of the text. Its start has the probabilities 0.2, 0.5, 0.3, its end 0.5, 0.1, 0.4. Which span, as [start, end] from 0,
#    is the most probable?
# 4. `tasks.patches`: an image of 96 × 96 pixels is cut into patches of 16 × 16. How many vectors does the encoder of a Vision Transformer read?

# %% [markdown] lang="zh"
# ## 练习
#
# 1. `tasks.document`：写一个函数，参数是 `H [5, 4], W [3, 4], u [3]`，给出文档的向量。
# 2. `tasks.regions`：64 × 64 的图像有多少个 8 × 8 像素的区域？
# 3. `tasks.span`：答案是原文的一段。起点的概率是 0.2、0.5、0.3，终点的概率是 0.5、0.1、0.4。哪一段概率最大？写成 [起点, 终点]，从 0 数起。
# 4. `tasks.patches`：96 × 96 的图像切成 16 × 16 的图块。视觉 Transformer 的编码器读多少个向量？

# %%
check("tasks.document", ...)
check("tasks.regions", ...)
check("tasks.span", ...)
check("tasks.patches", ...)
