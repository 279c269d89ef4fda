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
# 注意力的全部内容，都在这一行公式里。$x$ 是**查询**（query），$x_i$ 是**键**（key），$y_i$ 是**值**（value），合称**键值对**；softmax 给出**注意力权重** $\alpha(x, x_i)$，也叫**注意力分布**；按它加权平均就是**注意力池化**。

# %% [markdown] lang="en"
# ## From scratch

# %% [markdown] lang="zh"
# ## 从零实现

# %%
import matplotlib.pyplot as plt
import numpy as np
import torch

from heedful.attention import (
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
# for if a point predicted itself, the best $h$ would be zero.

# %% [markdown] lang="zh"
# ## 一幅图
#
# 到这里都是**非参数的注意力机制**：什么也不学，只把数据点存下来。让带宽 $h$ 可以学习，就成了**参数化的注意力机制**：$\mathrm{softmax}(-\frac{1}{2}((x - x_i) w)^2)$，$w = 1/h$。学习时，每个点都用其余的点来预测；如果用一个点预测它自己，最好的 $h$ 就会是零。

# %% picture="fits" alt="Fifty points, the true curve and three predictions: a flat line, one too smooth, one close to the truth; beside them the weights of the learned bandwidth, a narrow band" alt_zh="五十个点、真实曲线和三种预测：一条水平线，一条过于平滑，一条接近真实曲线；右边是带宽学好之后的权重，一条窄带"
learned = NadarayaWatsonRegressor("gaussian", bandwidth="learned").fit(toy.x, toy.y)
close, weights = nadaraya_watson(grid, x, y, learned.bandwidth_)
figure, (left, right) = plt.subplots(1, 2, width_ratios=(3, 2))
left.plot(x, y, "o", ms=3, color="#757a82")
left.plot(grid, toy.truth, "--", color="#757a82", label="truth")
left.plot(grid, np.full_like(grid, y.mean()), label="average pooling")
left.plot(grid, wide, label="h = 1")
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
# attention**, which convolution models. Whoever looks for a book sees books: a *volitional cue*, **focused attention**, which depends on the task.
# In attention the query is the volitional cue and the keys are the nonvolitional ones; the query chooses among them with a bias.

# %% [markdown] lang="zh"
# ## 两种线索
#
# 由于**算力限制**，不可能同时处理全部信息，人也一样，所以要有权重地选择。心理学认为，人有两种选法。白纸上有一个黑点，不管在做什么都会看到：这是**不随意线索**，即**显著式注意力**，卷积是对它的建模。想找书的人，看到的就是书：这是**随意线索**，即**聚焦式注意力**，取决于任务。在注意力机制里，查询就是随意线索，键就是不随意线索，通过查询有偏向性地选择键。

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
# the **triangular** and the **Epanechnikov** kernel fall to zero there. The shape matters less than the width. With more points $h$ may be smaller; if
# it does not shrink too fast, the prediction comes as close to the truth as one likes, with nothing learned.
#
# What cannot be had in this way is a better idea of *near*: here it is the distance of the numbers themselves. From the next lesson on it is learned.

# %% [markdown] lang="zh"
# ## 别的核
#
# 随距离下降的函数都可以当核。**boxcar 核**对 $h$ 以内的点一视同仁，其余一概不看，就是一个窗口；**三角核**和 **Epanechnikov 核**在那里降到零。形状不如宽度重要。点越多，$h$ 可以越小；只要降得足够慢，预测就可以任意接近真相，什么也不用学。
#
# 这样得不到的，是更好的“远近”：这里的远近就是数与数之间的距离。从下一课起，远近也是学来的。

# %% picture="shapes" alt="Four small pictures of points, truth and prediction: Gaussian, boxcar, triangular and Epanechnikov kernels of the same width, all close to the truth, the boxcar with steps" alt_zh="四幅小图，点、真相和预测：宽度相同的高斯核、boxcar 核、三角核和 Epanechnikov 核，都接近真相，boxcar 有台阶"
KERNELS = {
    "gaussian": lambda u: np.exp(-(u**2) / 2),
    "boxcar": lambda u: (abs(u) <= 1).astype(float),
    "triangular": lambda u: np.maximum(1 - abs(u), 0),
    "epanechnikov": lambda u: np.maximum(1 - u**2, 0),
}
figure, axes = plt.subplots(1, 4, sharey=True, figsize=(9, 2.4))
for axis, (name, kernel) in zip(axes, KERNELS.items(), strict=True):
    weights = kernel((grid[:, None] - x) / 0.5)
    prediction = weights @ y / weights.sum(1)
    same = NadarayaWatsonRegressor(name, bandwidth=0.5).fit(toy.x, toy.y)
    assert abs(same.predict(toy.grid) - prediction).max() < 1e-6
    axis.plot(x, y, "o", ms=2, color="#757a82")
    axis.plot(grid, toy.truth, "--", color="#757a82")
    axis.plot(grid, prediction)
    axis.set_title(name, fontsize=9)
plt.show()

# %% [markdown] lang="en"
# ## Exercises
#
# Put your answer in the place of the dots. `hint("averages.mean")` of `heedful.course` gives a hint.
#
# 1. `averages.mean`: the points are (0, 1), (1, 2), (2, 6). What does average pooling predict at 0.5?
# 2. `averages.kernel`: what does the Gaussian kernel with $h = 1$ predict there?
# 3. `averages.function`: a function of `x, keys, values, h` that gives the predictions for all `x` without a loop.
# 4. `averages.others`: a function of `x, y, h` that predicts each point from all others, with the Gaussian kernel.

# %% [markdown] lang="zh"
# ## 练习
#
# 把省略号换成你的答案；`heedful.course` 的 `hint("averages.mean")` 给出提示。
#
# 1. `averages.mean`：三个点 (0, 1)、(1, 2)、(2, 6)。平均池化在 0.5 处预测多少？
# 2. `averages.kernel`：高斯核取 $h = 1$，在那里预测多少？
# 3. `averages.function`：写一个函数，参数是 `x, keys, values, h`，不用循环就给出所有 `x` 的预测。
# 4. `averages.others`：写一个函数，参数是 `x, y, h`，用高斯核，由其余的点预测每一个点。

# %%
check("averages.mean", ...)
check("averages.kernel", ...)
check("averages.function", ...)
check("averages.others", ...)
