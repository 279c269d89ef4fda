# %% [markdown] lang="en"
# # 1 Averages: attention before it had the name
#
# Given points $(x_i, y_i)$, what is $y$ at a new $x$? The simplest answer does not look at $x$ at all: **average pooling**,
#
# $$f(x) = \frac{1}{n} \sum_i y_i.$$
#
# In 1964 Nadaraya and Watson gave near points more weight. That is **Nadaraya–Watson kernel regression**, with a kernel $K$:
#
# $$f(x) = \sum_i \frac{K(x - x_i)}{\sum_j K(x - x_j)}\, y_i .$$
#
# With the **Gaussian kernel** $K(u) = \frac{1}{\sqrt{2\pi}} \exp(-\frac{u^2}{2})$ the constant cancels, and what remains is a **softmax**:
#
# $$f(x) = \sum_i \mathrm{softmax}_i\left(-\tfrac{1}{2}(x - x_i)^2\right) y_i .$$
#
# All of attention is in this line. $x$ is the **query**, the $x_i$ are **keys**, the $y_i$ are **values**; the softmax gives the
# **attention weights** $\alpha(x, x_i)$, also called the attention distribution, and their weighted mean is **attention pooling**.
# Keys and values need not be the same things; where they are not, it is called **key–value attention**.
#
# No kernel is needed for this. Whatever number a function gives for a query and a key, the exponential makes it positive, and the division makes the sum 1.

# %% [markdown] lang="zh"
# # 1 平均：还没有名字的注意力
#
# 已知一些点 $(x_i, y_i)$，在新的 $x$ 处 $y$ 是多少？最简单的方案完全不看 $x$：**平均池化**，
#
# $$f(x) = \frac{1}{n} \sum_i y_i.$$
#
# 更好的方案是 60 年代提出来的 **Nadaraya–Watson 核回归**：近的点权重大，$K$ 是核函数，
#
# $$f(x) = \sum_i \frac{K(x - x_i)}{\sum_j K(x - x_j)}\, y_i .$$
#
# 使用**高斯核** $K(u) = \frac{1}{\sqrt{2\pi}} \exp(-\frac{u^2}{2})$，常数约掉，剩下的正是 **softmax**：
#
# $$f(x) = \sum_i \mathrm{softmax}_i\left(-\tfrac{1}{2}(x - x_i)^2\right) y_i .$$
#
# 注意力的全部内容，都在这一行公式里。$x$ 是**查询**（query），$x_i$ 是**键**（key），$y_i$ 是**值**（value），合称**键值对**；softmax 给出**注意力权重** $\alpha(x, x_i)$，也叫**注意力分布**；按它加权平均就是**注意力池化**。键和值可以是两样东西，这时也叫**键值对注意力**。
#
# 这里不一定要用核函数：不管用什么函数给查询和键打分，取指数之后都为正，再除以总和，加起来就是 1。

# %% [markdown] lang="en"
# ## A picture: from a query to an answer
#
# The keys are 1, 2 and 4, their values 10, 30 and 20, and the query is 2.4. Each number in the picture follows from those before it.

# %% [markdown] lang="zh"
# ## 图解：从查询到输出
#
# 键是 1、2、4，值是 10、30、20，查询是 2.4。图里的每个数都由前面的数算出来。

# %% picture="pooling" alt="A query 2.4 is compared with three keys; the scores go through a softmax; its weights, darkest for the nearest key, multiply the three values, and the sum of the products is the answer" alt_zh="查询 2.4 与三个键比较，分数经过 softmax 得到权重，最近的键颜色最深；权重乘以三个值，加起来就是输出"
import math

import matplotlib.pyplot as plt

from heedful.course.diagram import arrow, box, canvas

BLUE, ORANGE, GREY = "#d6e6f7", "#f8e3cf", "#f1f1f1"
query, pairs = 2.4, ((1, 10), (2, 30), (4, 20))
numbers = [-((query - key) ** 2) / 2 for key, _ in pairs]
total = sum(map(math.exp, numbers))
shares = [math.exp(number) / total for number in numbers]
figure, axis = plt.subplots(figsize=(9, 3))
canvas(axis, 90, 30)
box(axis, 6, 14, f"{query}", colour=BLUE)
box(axis, 41, 14, "softmax", width=10, height=23, colour=GREY)
box(
    axis,
    85,
    14,
    "sum\n" + f"{sum(w * v for w, (_, v) in zip(shares, pairs, strict=True)):.1f}",
    9,
    6,
    ORANGE,
)
for row, ((key, value), number, share) in enumerate(
    zip(pairs, numbers, shares, strict=True)
):
    y = 22 - 8 * row
    arrow(axis, (11, 14), (14, 14), (14, y - 1), (23, y - 1))
    box(axis, 27, y + 1.7, f"key {key}", width=8, colour=BLUE)
    box(axis, 27, y - 1.3, f"{number:.2f}", width=8, colour=GREY)
    arrow(axis, (31, y - 1), (36, y - 1))
    arrow(axis, (46, y), (51, y))
    box(axis, 56, y, f"{share:.2f}", colour=plt.cm.Oranges(0.7 * share))
    arrow(axis, (61, y), (66, y))
    box(axis, 71, y, f"times {value}", colour=BLUE)
    arrow(axis, (76, y), (78, y), (78, 14), (80.5, 14))
for x, name in ((6, "query"), (27, "key and score"), (56, "weights"), (71, "values")):
    axis.text(x, 28, name, ha="center", fontsize=8)
axis.text(85, 19, "output", ha="center", fontsize=8)
plt.show()

# %% [markdown] lang="en"
# ## From scratch

# %% [markdown] lang="zh"
# ## 从零实现

# %%
import numpy as np
import torch

from heedful.attention import (
    Dot,
    Gaussian,
    NadarayaWatsonRegressor,
    Uniform,
    attend,
    toy_data,
)
from heedful.course import check

toy = toy_data(seed=0)  # y = 2 sin x + x^0.8 + noise


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def nadaraya_watson(x, keys, values, h=1.0):
    scores = -((x[:, None] - keys) ** 2) / (2 * h**2)  # [query, key]
    weights = softmax(scores)  # each row sums to 1
    return weights @ values, weights


x, y, grid = toy.x[:, 0], toy.y, toy.grid[:, 0]
wide, _ = nadaraya_watson(grid, x, y)
wide[:4].round(3)

# %% [markdown] lang="en"
# ## A dictionary that answers every question
#
# A dictionary gives the value of a key, if it has that very key. Attention answers every query: with a mean of all values, in which near keys count more. The weights are
# not negative and sum to 1, so no answer is below the smallest value or above the largest. If one key has all the weight, it is the dictionary again;
# if all keys have the same, it is average pooling. And the line stays the same for three pairs or for three million: other pairs, other answers.
# (With labels as values, one-hot, the same line classifies.)

# %% [markdown] lang="zh"
# ## 什么都能回答的字典
#
# 字典给出一个键的值，前提是正好有这个键。注意力对任何查询都有回答：对所有的值加权平均，近的键权重大。权重不为负，和为 1，所以答案不会低于最小的值，也不会高于最大的值。全部权重都在一个键上，就又是字典；每个键权重相同，就是平均池化。不管有三对还是三百万对，还是这一行：键值对不同，答案就不同。（值换成标签的 one-hot 向量，同一行就能做分类。）

# %%
prices = {1.0: 10.0, 2.0: 30.0, 4.0: 20.0}
keys, values = np.array(list(prices)), np.array(list(prices.values()))
assert abs(nadaraya_watson(keys, keys, values, 0.05)[0] - values).max() < 1e-6
for h in (0.05, 0.5, 100.0):
    answers, _ = nadaraya_watson(np.array([2.0, 2.4, 3.9]), keys, values, h)
    print(f"h = {h}: {answers.round(2)}")

# %% [markdown] lang="en"
# ## The same with heedful
#
# As an estimator with `fit` and `predict`, and as a score inside a network, where it works on vectors and with any mask:

# %% [markdown] lang="zh"
# ## 用 heedful 再算一遍
#
# 既可以当作带 `fit` 和 `predict` 的回归器，也可以当作网络里的打分函数，这时可以用于向量，搭配任何掩码：

# %%
regressor = NadarayaWatsonRegressor("gaussian", bandwidth=1.0).fit(toy.x, toy.y)
assert abs(regressor.predict(toy.grid) - wide).max() < 1e-6


def column(numbers):
    return torch.as_tensor(numbers).double()[:, None]


points = column(grid), column(x), column(y)
by_attention = attend(*points, score=Gaussian(1, 1, bandwidth=1.0)).context
assert abs(by_attention[:, 0].numpy() - wide).max() < 1e-6
average = attend(*points, score=Uniform(1, 1)).context
assert abs(average.numpy() - y.mean()).max() < 1e-6

# %% [markdown] lang="en"
# ## A picture
#
# Everything so far is **nonparametric attention**: nothing is learned, only the points are kept. A bandwidth $h$ that is learned makes
# it **parametric attention**: $\mathrm{softmax}(-\frac{1}{2}((x - x_i) w)^2)$, with $w = 1/h$. Each point is predicted from all others,
# for if a point predicted itself, the best $h$ would be zero. A narrow kernel follows every point, its noise too; a wide one misses the bends.

# %% [markdown] lang="zh"
# ## 图解
#
# 到这里都是**非参数的注意力机制**：什么也不学，只把数据点存下来。让带宽 $h$ 可以学习，就成了**参数化的注意力机制**：$\mathrm{softmax}(-\frac{1}{2}((x - x_i) w)^2)$，$w = 1/h$。学习时，每个点都用其余的点来预测；如果用一个点预测它自己，最好的 $h$ 就会是零。核太窄，预测就追着每个点跑，连噪声也学了；核太宽，曲线的弯曲就看不到了。

# %% picture="fits" alt="Fifty points, the true curve and four predictions: a flat line, one too smooth, one that follows the noise, one close to the truth; beside them the weights of the learned bandwidth, a narrow band" alt_zh="五十个点、真实曲线和四种预测：一条水平线，一条过于平滑，一条追着噪声走，一条接近真实曲线；右边是带宽学好之后的权重，一条窄带"
learned = NadarayaWatsonRegressor("gaussian", bandwidth="learned").fit(toy.x, toy.y)
close, weights = nadaraya_watson(grid, x, y, learned.bandwidth_)
figure, (left, right) = plt.subplots(1, 2, width_ratios=(3, 2))
left.plot(x, y, "o", ms=3, color="#757a82")
left.plot(grid, toy.truth, "--", color="#757a82", label="truth")
left.plot(grid, np.full_like(grid, y.mean()), label="average pooling")
left.plot(grid, wide, label="h = 1")
narrow, _ = nadaraya_watson(grid, x, y, 0.05)
left.plot(grid, narrow, lw=0.8, color="#8a4fbf", label="h = 0.05")
left.plot(grid, close, label=f"h = {learned.bandwidth_:.2f}, learned")
left.legend(fontsize=8)
right.imshow(weights, aspect="auto")
right.set(xlabel="key", ylabel="query", title="weights")
plt.show()

# %% [markdown] lang="en"
# ## Two kinds of cues
#
# Nobody can take in everything at once; computers cannot either, and **limited computing power** is why attention is there at all. Psychology knows two
# ways to choose. A black spot on a white sheet is seen by everyone, whatever they are doing: a *nonvolitional cue*, **saliency-based
# attention**, which convolution models; pooling and fully connected layers, too, choose without being asked. Whoever looks for a book sees books: a *volitional cue*, **focused attention**, which depends on the task.
# In attention the query is the volitional cue and the keys are the nonvolitional ones; the query chooses among them with a bias.
#
# Below, twelve things on a table, one of them a red cup. Without a query the weights follow from the keys alone, from how far each is from the rest, and all of them lie on the cup.
# The query *book* brings out the books, though nothing about them stands out.

# %% [markdown] lang="zh"
# ## 两种线索
#
# 由于**算力限制**，不可能同时处理全部信息，人也一样，所以要有权重地选择。心理学认为，人通过两种线索选择注意点。白纸上有一个黑点，不管在做什么都会看到：这是**不随意线索**，即**显著式注意力**，卷积是对它的建模；池化层和全连接层也一样，没有查询，只看输入本身。想看书的人，一眼看到的就是书：这是**随意线索**，即**聚焦式注意力**，取决于任务。在注意力机制里，查询就是随意线索，键就是不随意线索，通过查询有偏向性地选择键。
#
# 下图的桌上有十二样东西，其中一样是红色的杯子。没有查询时，权重只看键本身，即每样东西与其余的差别有多大，结果都在杯子上；查询是“书”时，书就突显出来，尽管它们本身并不显眼。

# %% picture="cues" alt="Twelve things, each with its weight as a bar: without a query the red cup has nearly all of it; with the query book the four books share it" alt_zh="十二样东西各自的权重：没有查询时，红色的杯子几乎占了全部；查询是“书”时，四本书平分"
# Each thing is a key: whether it is a book, a sheet or a cup, and how red it is.
book, sheet, cup = [1.0, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 1.0, 1.0]
things = torch.tensor([book, sheet] * 4 + [sheet, cup, sheet, sheet]).double()
salience = (things - things.mean(0)).square().sum(1)  # how far from the rest
by_salience = softmax(8 * salience.numpy())
wish = torch.tensor([book]).double()
by_task = attend(8 * wish, things, things, score=Dot(4, 4), need=["weights"])
assert abs(by_task.weights[0].numpy() - softmax(8 * things[:, 0].numpy())).max() < 1e-6
figure, axes = plt.subplots(1, 2, sharey=True)
titles = "no query: what stands out", 'query "book": what is asked for'
labels = ["book" if key[0] else "sheet" if key[1] else "cup" for key in things]
shares = by_salience, by_task.weights[0]
for axis, title, weights in zip(axes, titles, shares, strict=True):
    colours = ["#2f7fd1" if key[0] else "#c4c8cf" for key in things]
    colours[9] = "#c0392b"
    axis.bar(range(12), weights, color=colours)
    axis.set_title(title, fontsize=9)
    axis.set_xticks(range(12), labels, rotation=90, fontsize=8)
axes[0].set(ylabel="weight")
plt.show()

# %% [markdown] lang="en"
# How far the attention spreads over the keys is a matter of the bandwidth:

# %% [markdown] lang="zh"
# 注意力在键上铺得多开，由带宽决定：

# %% picture="kernels" alt="Weights of 41 keys for a query at 2.5: flat for a wide Gaussian, a narrow peak for a narrow one" alt_zh="查询 2.5 对 41 个键的权重：宽的高斯核几乎是平的，窄的高斯核是一个尖峰"
keys = np.linspace(0, 5, 41)
for h in (0.2, 0.5, 1.0, 3.0):
    plt.plot(
        keys,
        nadaraya_watson(np.array([2.5]), keys, keys, h)[1][0],
        ".-",
        label=f"h = {h}",
    )
plt.xlabel("key")
plt.ylabel("weight")
plt.legend()
plt.show()

# %% [markdown] lang="en"
# ## Other kernels
#
# Any function that falls with the distance can be the kernel. The **boxcar** counts all points within $h$ alike and no others, which is a window;
# the **triangular** and the **Epanechnikov** kernel fall to zero there. The shape matters less than the width: below, the tables of weights are much alike, and so are the predictions. All of these look
# at the distance alone, so that nothing changes if query and keys are shifted or turned together. The width need not be one for all: each coordinate may have its own, and it may be larger where points are few.
#
# With more points $h$ may be smaller; if
# it does not shrink too fast, the prediction comes as close to the truth as one likes, with nothing learned. For smooth functions of $d$ coordinates the best $h$ falls as $n^{-1/(4+d)}$, and the error at best as $n^{-2/(4+d)}$: slowly, if $d$
# is large, since then hardly any key is near.
#
# What cannot be had in this way is a better idea of *near*: here it is the distance of the numbers themselves. From the next lesson on it is learned.

# %% [markdown] lang="zh"
# ## 其他核函数
#
# 凡是随距离下降的函数，都可以用作核函数。**boxcar 核**对 $h$ 以内的点一视同仁，其余一概不看，就是一个窗口；**三角核**和 **Epanechnikov 核**在那里降到零。形状不如宽度重要：下面四张权重表看起来差不多，预测也就差不多。这些核都只看距离，所以查询和键一起平移或旋转，结果不变。宽度不必处处相同：每个坐标可以各有一个，点少的地方也可以宽一些。
#
# 点越多，$h$ 可以越小；只要降得足够慢，预测就可以任意接近真实曲线，什么也不用学。对 $d$ 个坐标的光滑函数，最好的 $h$ 按 $n^{-1/(4+d)}$ 下降，误差最快也只按 $n^{-2/(4+d)}$ 下降：$d$ 很大时就很慢，因为附近几乎没有键。
#
# 但这样得不到更好的“远近”：这里的远近就是数与数之间的距离。从下一课起，远近也是学来的。

# %% picture="shapes" alt="Gaussian, boxcar, triangular and Epanechnikov kernels of the same width; above, their shapes; in the middle, points, truth and prediction, all close to the truth, the boxcar with steps; below, four tables of weights, each a band along the diagonal" alt_zh="宽度相同的高斯核、boxcar 核、三角核和 Epanechnikov 核。上：核的形状；中：点、真实曲线和预测，预测都接近真实曲线，boxcar 有台阶；下：四张权重表，都是沿对角线的一条带"
KERNELS = {
    "gaussian": lambda u: np.exp(-(u**2) / 2),
    "boxcar": lambda u: (abs(u) <= 1).astype(float),
    "triangular": lambda u: np.maximum(1 - abs(u), 0),
    "epanechnikov": lambda u: np.maximum(1 - u**2, 0),
}
distance = np.linspace(-1, 1, 201)
figure, axes = plt.subplots(
    3, 4, sharey="row", figsize=(9, 5.4), height_ratios=(1, 2, 2)
)
for (shape, axis, table), (name, kernel) in zip(axes.T, KERNELS.items(), strict=True):
    shape.plot(distance, kernel(distance / 0.5))
    shape.set_title(name, fontsize=9)
    weights = kernel((grid[:, None] - x) / 0.5)
    prediction = weights @ y / weights.sum(1)
    same = NadarayaWatsonRegressor(name, bandwidth=0.5).fit(toy.x, toy.y)
    assert abs(same.predict(toy.grid) - prediction).max() < 1e-6
    axis.plot(x, y, "o", ms=2, color="#757a82")
    axis.plot(grid, toy.truth, "--", color="#757a82")
    axis.plot(grid, prediction)
    table.imshow(weights / weights.sum(1, keepdims=True), aspect="auto")
axes[0, 0].set(ylabel="kernel")
axes[2, 0].set(xlabel="key", ylabel="query")
plt.show()

# %% [markdown] lang="en"
# ## Classes and densities
#
# A mean of kernels around the points tells how **dense** the points are (Parzen 1962): $\hat{p}(x) = \frac{1}{nh} \sum_i K(\frac{x - x_i}{h})$. If only the points of class $c$ are summed, it is $\hat{p}(x, c)$. With one-hot labels
# as values, attention pooling divides one by the other,
#
# $$f_c(x) = \frac{\hat{p}(x, c)}{\sum_{c'} \hat{p}(x, c')} ,$$
#
# the probability of each class at $x$. The largest weight need not win: many fairly near keys outvote a single nearest one.

# %% [markdown] lang="zh"
# ## 分类与密度
#
# 把各个点上的核平均起来，就是点的**密度**估计（Parzen，1962）：$\hat{p}(x) = \frac{1}{nh} \sum_i K(\frac{x - x_i}{h})$。只对类别 $c$ 的点求和，就是 $\hat{p}(x, c)$。把标签的 one-hot 向量当作值，注意力池化就是两者之比，
#
# $$f_c(x) = \frac{\hat{p}(x, c)}{\sum_{c'} \hat{p}(x, c')} ,$$
#
# 即 $x$ 处各个类别的概率。不一定是权重最大的键说了算：许多比较近的键加起来，可以胜过最近的那一个。

# %%
labels = (y > 2.0).astype(int)  # two classes of the same points
one_hot = np.eye(2)[labels]
probabilities, _ = nadaraya_watson(grid, x, one_hot, 0.3)  # [query, class]
bells = np.exp(-(((grid[:, None] - x) / 0.3) ** 2) / 2) / math.sqrt(2 * math.pi)
densities = np.stack([bells[:, labels == c].sum(1) / (len(x) * 0.3) for c in (0, 1)], 1)
share = densities / densities.sum(1, keepdims=True)
assert abs(probabilities - share).max() < 1e-6
probabilities[::40].round(2)

# %% [markdown] lang="en"
# ## Exercises
#
# Put your answer in the place of the dots. `hint("averages.mean")` of `heedful.course` gives a hint.
#
# 1. `averages.mean`: the points are (0, 1), (1, 2), (2, 6). What does average pooling predict at 0.5?
# 2. `averages.kernel`: what does the Gaussian kernel with $h = 1$ predict there?
# 3. `averages.function`: a function of `x, keys, values, h` that gives the predictions for all `x` without a loop.
# 4. `averages.others`: a function of `x, y, h` that predicts each point from all others, with the Gaussian kernel.
# 5. `averages.classes`: a function of `x, keys, labels, h` that gives a table [x, class] of the probabilities of the classes 0, 1 and 2, with the Gaussian kernel.

# %% [markdown] lang="zh"
# ## 练习
#
# 把省略号换成你的答案；`heedful.course` 的 `hint("averages.mean")` 给出提示。
#
# 1. `averages.mean`：三个点 (0, 1)、(1, 2)、(2, 6)。平均池化在 0.5 处预测多少？
# 2. `averages.kernel`：高斯核取 $h = 1$，在那里预测多少？
# 3. `averages.function`：写一个函数，参数是 `x, keys, values, h`，不用循环就给出所有 `x` 的预测。
# 4. `averages.others`：写一个函数，参数是 `x, y, h`，用高斯核，由其余的点预测每一个点。
# 5. `averages.classes`：写一个函数，参数是 `x, keys, labels, h`，用高斯核，给出 [x, 类别] 的表，即类别 0、1、2 的概率。

# %%
check("averages.mean", ...)
check("averages.kernel", ...)
check("averages.function", ...)
check("averages.others", ...)
check("averages.classes", ...)
