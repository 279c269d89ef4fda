"""Table of all exercises of the course, with their right answers and usual mistakes."""

from typing import Final

import numpy as np

from heedful.course import answers
from heedful.course.exercise import Exercise, Mistake

EXERCISES: Final[dict[str, Exercise]] = {
    "averages.mean": Exercise(
        3.0,
        ("Average pooling does not look at x.", "平均池化不看 x。"),
        [Mistake(2.0, ("the mean, not the median", "要平均数，不是中位数"))],
    ),
    "averages.kernel": Exercise(
        answers.regression(np.array([0.5]), np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 6.0]), 1.0)[0],
        (
            "Weights exp(-(x - x_i)^2 / 2), divided by their sum; then the weighted mean of y.",
            "权重是 exp(-(x - x_i)^2 / 2) 除以它们的和，再对 y 加权平均。",
        ),
        [
            Mistake(
                answers.regression(np.array([0.5]), np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 6.0]), 0.5**0.5)[0],
                ("the exponent is halved: (x - x_i)^2 / 2", "指数要除以 2"),
            ),
            Mistake(
                float(np.exp([-0.125, -0.125, -1.125]) @ [1.0, 2.0, 6.0]),
                ("divide the weights by their sum", "权重要除以它们的和"),
            ),
        ],
    ),
    "averages.function": Exercise(
        answers.regression,
        (
            "A table of weights [query, key] from x[:, None] - keys; normalise each row; multiply by the values.",
            "由 x[:, None] - keys 得到 [查询, 键] 的表，每行归一化，再乘以值。",
        ),
        [
            Mistake(
                lambda x, keys, values, h: answers.regression(x, keys, values, h**0.5),
                ("the bandwidth is squared: 2 h^2", "带宽要平方：2 h^2"),
            )
        ],
        lambda: [*answers.random_arrays([4], [6], [6])(), 0.7],
    ),
    "averages.others": Exercise(
        answers.from_others,
        (
            "As before with keys = x and values = y, but with zeros on the diagonal, before rows are normalised.",
            "同上，键是 x，值是 y，但对角线上的权重为零，再按行归一化。",
        ),
        [
            Mistake(
                lambda x, y, h: answers.regression(x, x, y, h),
                ("no point may help to predict itself", "一个点不能用来预测它自己"),
            )
        ],
        lambda: [*answers.random_arrays([6], [6])(), 0.7],
    ),
    "averages.classes": Exercise(
        answers.class_shares,
        (
            "The rows of np.eye(3)[labels] are the values: with them it is averages.function.",
            "值就是 np.eye(3)[labels] 的各行；其余与 averages.function 相同。",
        ),
        [
            Mistake(
                lambda x, keys, labels, h: answers.regression(x, keys, labels, h),
                (
                    "a table [x, class] of probabilities, not a mean of the numbers of classes",
                    "要 [x, 类别] 的概率表，不是类别编号的平均",
                ),
            )
        ],
        lambda: [*answers.random_arrays([4], [6])(), np.array([2, 0, 1, 1, 0, 2]), 0.7],
    ),
    "scores.variance": Exercise(
        8.0,
        ("The variance of a sum of 64 independent terms is 64.", "64 个独立项之和，方差是 64。"),
        [Mistake(64.0, ("that is the variance; the standard deviation is its root", "这是方差，标准差是它的平方根"))],
    ),
    "scores.additive": Exercise(
        answers.additive,
        (
            "tanh of (W q + U k) for each key, then the dot product with v: one number for each key.",
            "对每个键算 tanh(W q + U k)，再与 v 做内积：每个键一个数。",
        ),
        [
            Mistake(
                lambda query, key, w, u, v: (w @ query + key @ u.T) @ v,
                ("tanh is missing: without it all scores are linear", "少了 tanh：没有它，分数就是线性的"),
            )
        ],
        answers.random_arrays([3], [5, 4], [6, 3], [6, 4], [6]),
    ),
    "scores.attention": Exercise(
        answers.scaled_dot,
        (
            "softmax(Q K^T / sqrt(d)) V, where softmax runs over each row.",
            "softmax(Q K^T / sqrt(d)) V，softmax 按行做。",
        ),
        [
            Mistake(
                lambda query, key, value: answers.softmax(query @ key.T) @ value,
                ("divide the scores by the root of d", "分数要除以 √d"),
            ),
            Mistake(
                lambda query, key, value: answers.softmax(query @ key.T / query.shape[-1]) @ value,
                ("divide by the root of d, not by d", "除以 √d，不是 d"),
            ),
            Mistake(
                lambda query, key, value: answers.softmax((query @ key.T / np.sqrt(query.shape[-1])).T).T @ value,
                ("softmax runs over the keys: each row sums to 1", "softmax 按行做：每行之和为 1"),
            ),
        ],
        answers.random_arrays([3, 4], [5, 4], [5, 2]),
    ),
    "scores.masked": Exercise(
        answers.masked_weights,
        (
            "Scores at places from the length on become -inf; then softmax over each row.",
            "从长度开始往后的分数换成 -inf，再按行做 softmax。",
        ),
        [
            Mistake(
                lambda scores, lengths: answers.softmax(scores) * answers.is_word(scores, lengths),
                (
                    "mask before the softmax, so that each row still sums to 1",
                    "要在 softmax 之前遮住，每行的和才是 1",
                ),
            ),
            Mistake(
                lambda scores, lengths: answers.softmax(scores * answers.is_word(scores, lengths)),
                ("a score of 0 is no weight of 0: its power is 1", "分数为 0 不等于权重为 0：e 的 0 次方是 1"),
            ),
        ],
        lambda: [*answers.random_arrays([2, 5])(), np.array([5, 3])],
    ),
    "scores.gradient": Exercise(
        answers.context_derivative,
        (
            "The covariance of the keys under the weights: the sum of weight (k - f)(k - f)^T, where f is the context.",
            "键在注意力分布下的协方差：权重乘 (k - f)(k - f)^T，再求和，f 是上下文向量。",
        ),
        [
            Mistake(
                lambda query, key: key.T @ (answers.softmax(key @ query)[:, None] * key),
                ("subtract the context from each key first", "每个键要先减去上下文向量"),
            ),
            Mistake(
                lambda query, key: np.cov(key, rowvar=False, bias=True),
                ("the keys count by their weights", "各个键要按权重计"),
            ),
        ],
        answers.random_arrays([3], [5, 3]),
    ),
    "bottleneck.table": Exercise(
        664_320 * 256,
        ("One row for each word, one column for each number of its vector.", "每个词一行，向量的每个数一列。"),
        [Mistake(664_320 + 256, ("rows times columns", "行数乘以列数"))],
    ),
    "bottleneck.likelihood": Exercise(
        float(np.log([0.5, 0.8, 0.25]).sum()),
        ("The logarithm of a product is the sum of the logarithms.", "积的对数等于对数的和。"),
        [
            Mistake(0.1, ("that is the probability; its logarithm is asked for", "这是概率，题目要的是对数概率")),
            Mistake(float(np.log([0.5, 0.8, 0.25]).mean()), ("the sum, not the mean", "应该求和，不是求平均")),
        ],
    ),
    "bottleneck.state": Exercise(
        answers.last_state,
        (
            "Begin with zeros; at each step h = tanh(W x + U h); return the last h.",
            "从零开始，每步 h = tanh(W x + U h)，返回最后的 h。",
        ),
        [
            Mistake(
                lambda inputs, w, u: np.tanh(w @ inputs[-1]),
                ("the state of the step before is missing: U h", "少了上一步的状态 U h"),
            )
        ],
        answers.random_arrays([5, 3], [4, 3], [4, 4]),
    ),
    "bottleneck.loss": Exercise(
        answers.batch_loss,
        (
            "Minus the sum of the log probabilities of real words, divided by the number of real words of the batch.",
            "真正的词的对数概率之和，取负，除以这一批里真正的词的个数。",
        ),
        [
            Mistake(
                lambda log_probs, lengths: -log_probs.mean(),
                ("padding counts as words here; leave it out", "这里把填充符也算成词了，要去掉"),
            ),
            Mistake(
                lambda log_probs, lengths: -(log_probs * answers.is_word(log_probs, lengths)).mean(),
                ("divide by the number of real words only", "只除以真正的词的个数"),
            ),
        ],
        lambda: [-np.abs(answers.random_arrays([2, 4])()[0]), np.array([4, 2])],
    ),
    "bahdanau.shape": Exercise(
        [1000, 2000],
        (
            "U_a maps an annotation, both directions joined, to the size of the hidden layer.",
            "U_a 把两个方向拼接成的隐状态映射到隐藏层的大小。",
        ),
        [
            Mistake(
                [1000, 1000],
                ("the annotation joins two directions of 1000 numbers each", "隐状态由两个方向拼接而成，各有 1000 维"),
            ),
            Mistake([2000, 1000], ("rows are outputs, columns are inputs", "行是输出，列是输入")),
        ],
    ),
    "bahdanau.weights": Exercise(
        lambda query, key, w, u, v: answers.softmax(answers.additive(query, key, w, u, v)),
        ("Additive scores of one query with all keys, then softmax.", "一个查询与所有键的加性分数，再做 softmax。"),
        [Mistake(answers.additive, ("these are the scores; weights sum to 1", "这是分数；权重之和为 1"))],
        answers.random_arrays([3], [5, 4], [6, 3], [6, 4], [6]),
    ),
    "bahdanau.context": Exercise(
        [0.3, 0.9],
        ("Each annotation times its weight, summed.", "每个隐状态乘以各自的权重，再相加。"),
        [Mistake([2 / 3, 2 / 3], ("that is the plain mean; use the weights", "这是平均池化，要用权重"))],
    ),
    "luong.window": Exercise(
        [6, 7, 8, 9],
        ("All whole numbers from p - D to p + D.", "从 p - D 到 p + D 的所有整数。"),
        [Mistake([5, 6, 7, 8, 9], ("5 is farther than D = 2 from 7.3", "5 离 7.3 超过 D = 2"))],
    ),
    "luong.general": Exercise(
        lambda query, key, w: key @ (query @ w),
        ("q^T W k for each key k.", "对每个键 k 算 q^T W k。"),
        inputs=answers.random_arrays([3], [5, 4], [3, 4]),
    ),
    "luong.local": Exercise(
        answers.local_weights,
        (
            "softmax over all scores, times exp(-(i - p)^2 / (2 (D/2)^2)), and zero farther than D from p.",
            "先对全部分数做 softmax，乘以 exp(-(i - p)^2 / (2 (D/2)^2))，离 p 超过 D 的为零。",
        ),
        [
            Mistake(
                answers.local_of_window,
                (
                    "here softmax runs over the whole source, not over the window",
                    "这里的 softmax 对整个源句做，不是只对窗口",
                ),
            )
        ],
        lambda: [*answers.random_arrays([9])(), 4.3, 2],
    ),
    "hard.expected": Exercise(
        24.0,
        ("Each value, as often as it is drawn: sum of p_i v_i.", "每个值乘以抽到它的概率，再相加：p_i v_i 之和。"),
        [Mistake(20.0, ("that is the value of the best key; keys are drawn here", "这是最大采样；这里是随机采样"))],
    ),
    "hard.sparsemax": Exercise(
        answers.sparsemax,
        (
            "Subtract one threshold from all scores and cut at zero; choose it so that the rest sums to 1.",
            "所有分数减去同一个阈值，负数截为零；阈值要使剩下的数之和为 1。",
        ),
        [
            Mistake(
                answers.softmax,
                ("that is softmax; sparsemax gives exact zeros", "这是 softmax；sparsemax 有恰好为零的权重"),
            )
        ],
        lambda: [np.array([1.2, 0.9, -0.3, 0.1])],
    ),
    "hard.monotonic": Exercise(
        answers.monotonic_weights,
        (
            "A key is chosen if all before it were passed over: p_j times the product of (1 - p_k), k < j.",
            "前面的都没选中才轮到它：p_j 乘以所有 k < j 的 (1 - p_k)。",
        ),
        [
            Mistake(
                lambda p: p / p.sum(),
                (
                    "the keys are looked at one after the other, so the first ones come first",
                    "键是一个接一个看的，前面的先选",
                ),
            )
        ],
        lambda: [np.array([0.1, 0.5, 0.9, 0.3])],
    ),
    "selfattention.cost": Exercise(
        100 * 100 * 512,
        ("n^2 d for the scores.", "分数要 n^2 d 次乘加。"),
        [Mistake(100 * 512 * 512, ("that is the cost of a recurrent layer, n d^2", "这是循环层的 n d^2"))],
    ),
    "selfattention.positions": Exercise(
        answers.positions,
        (
            "Even columns sin(i / 10000^(2j/d)), odd columns cos of the same angle.",
            "偶数列是 sin(i / 10000^(2j/d))，奇数列是同一角度的 cos。",
        ),
        [
            Mistake(
                answers.positions_in_halves,
                ("sines and cosines alternate: column 2j and column 2j + 1", "正弦和余弦交替：第 2j 列和第 2j+1 列"),
            )
        ],
        lambda: [6, 8],
    ),
    "selfattention.rotation": Exercise(
        [[np.cos(2.0), np.sin(2.0)], [-np.sin(2.0), np.cos(2.0)]],
        (
            "sin(a + b) = sin a cos b + cos a sin b; the row of the sine is [cos(δ), sin(δ)].",
            "sin(a + b) = sin a cos b + cos a sin b，正弦那一行是 [cos(δ), sin(δ)]。",
        ),
        [
            Mistake(
                [[np.cos(2.0), -np.sin(2.0)], [np.sin(2.0), np.cos(2.0)]],
                ("that turns the other way round", "方向反了"),
            )
        ],
    ),
    "transformer.mask": Exercise(
        lambda length: np.tril(np.ones((length, length))),
        (
            "Row = query, column = key; a query sees itself and all before it.",
            "行是查询，列是键；每个查询看得到自己和前面的所有键。",
        ),
        [
            Mistake(
                lambda length: np.triu(np.ones((length, length))),
                ("these queries see the future", "这样会看到后面的词"),
            ),
            Mistake(
                lambda length: np.tril(np.ones((length, length)), -1),
                ("a query also sees itself", "查询也看得到自己"),
            ),
        ],
        lambda: [5],
    ),
    "transformer.norm": Exercise(
        answers.layer_norm,
        (
            "Mean and variance of each row; subtract, and divide by the root of (variance + 1e-5).",
            "每行的均值和方差；减去均值，除以 (方差 + 1e-5) 的平方根。",
        ),
        [
            Mistake(
                lambda x: answers.layer_norm(x, 0),
                ("that is batch normalisation: over rows, not within a row", "这是批量归一化：要在每行之内归一化"),
            )
        ],
        answers.random_arrays([4, 6]),
    ),
    "transformer.parameters": Exercise(
        4 * (512 * 512 + 512) + 512 * 2048 + 2048 + 2048 * 512 + 512 + 2 * 2 * 512,
        (
            "Four square matrices of attention, two of the feed-forward network, all with biases; two norms of 2 d.",
            "注意力有四个方阵，前馈网络有两个矩阵，都带偏置；两个归一化各 2 d。",
        ),
        [
            Mistake(
                4 * 512 * 512 + 2 * 512 * 2048,
                ("biases and norms are missing", "少了偏置和归一化的参数"),
            )
        ],
    ),
    "transformer.cache": Exercise(
        55,
        ("The first row has one score, the second two, the tenth ten.", "第一行一个分数，第二行两个，第十行十个。"),
        [
            Mistake(100, ("a word does not look at those after it", "一个词不看它后面的词")),
            Mistake(385, ("rows of earlier steps are not computed again", "前面各步的行不用再算")),
        ],
    ),
    "tasks.document": Exercise(
        answers.document_vector,
        (
            "u_i = tanh(W h_i), weights softmax(u_i · u), the weighted mean of the h_i.",
            "u_i = tanh(W h_i)，权重 softmax(u_i · u)，对 h_i 加权平均。",
        ),
        [
            Mistake(
                lambda states, w, query: answers.softmax(np.tanh(states @ w.T) @ query) @ np.tanh(states @ w.T),
                ("the mean is that of the states h, not of u", "加权平均的是 h，不是 u"),
            )
        ],
        answers.random_arrays([5, 4], [3, 4], [3]),
    ),
    "tasks.regions": Exercise(
        64,
        ("Eight regions side by side, eight one below the other.", "横着八个，竖着八个。"),
        [Mistake(8, ("that is one row of regions", "这只是一行"))],
    ),
    "tasks.span": Exercise(
        [1, 2],
        ("Of all pairs with start <= end, the largest product.", "在起点 ≤ 终点的所有组合里，取乘积最大的。"),
        [Mistake([1, 0], ("a span does not end before it starts", "终点不能在起点之前"))],
    ),
    "tasks.patches": Exercise(
        37,
        (
            "Six patches side by side, six one below the other, and what stands before them.",
            "横六块，竖六块，再加上放在最前面的。",
        ),
        [Mistake(36, ("the class vector is read too", "类别向量也要读"))],
    ),
    "trust.precision": Exercise(
        1 / 3,
        (
            "A word counts at most as often as it is in the reference.",
            "一个词最多只算它在参考译文里出现的次数。",
        ),
        [Mistake(1.0, ("'the' is in the reference once, so it counts once", "the 在参考译文里只出现一次，只能算一次"))],
    ),
    "trust.beam": Exercise(
        0,
        ("Divide each log probability by the length; larger is better.", "对数概率除以长度，越大越好。"),
        [Mistake(1, ("without the division, short outputs win", "不除以长度，短的总是占便宜"))],
    ),
    "trust.alignment": Exercise(
        0.2,
        ("1 - (|A and S| + |A and P|) / (|A| + |S|).", "1 - (|A∩S| + |A∩P|) / (|A| + |S|)。"),
        [Mistake(0.8, ("that is the share that is right; the error is asked for", "这是正确的比例，题目要的是错误率"))],
    ),
    "trust.search": Exercise(
        0.36,
        ("Multiply along each way to the end; there are few.", "每条路走到头，把概率乘起来；路不多。"),
        [
            Mistake(
                0.24,
                (
                    "that is what greedy search finds; another first word ends better",
                    "这是贪心搜索找到的；换一个开头，结果更好",
                ),
            )
        ],
    ),
}
"""All exercises, by lesson and name."""
