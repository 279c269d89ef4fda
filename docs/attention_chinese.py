"""Chinese cells of the tables on the page about attention, by their English cells; formulas need no entry."""

from typing import Final

CHINESE: Final = {
    # biases
    "-m |i - j|, slopes m = 2^(-8 h / H) for heads h = 1..H": "-m |i - j|，第 h 个头（共 H 个）的斜率 m = 2^(-8 h / H)",
    "w[bucket(j - i)], a number for each head and bucket": "w[bucket(j - i)]，每个头、每个桶一个数",
    "a look-up per pair and head": "每对、每个头查一次表",
    "(2 k + 1) query_size multiply-adds per query, and a look-up per pair": (
        "每个查询 (2 k + 1) query_size 次乘加，每对再查一次表"
    ),
    # scores
    "q W k, W [query_size, key_size]; bilinear": "q W k，W [query_size, key_size]；双线性",
    "q . k / (|q| |k|), in [-1, 1]; 0 for a vector of zeros": "q . k / (|q| |k|)，在 [-1, 1] 内；零向量得 0",
    "v . tanh(W q + U k), W [hidden, query], U [hidden, key], v [hidden]": (
        "v . tanh(W q + U k)，W [hidden, query]，U [hidden, key]，v [hidden]"
    ),
    "v . tanh(W [q; k]), W [hidden, query + key], v [hidden]": (
        "v . tanh(W [q; k])，W [hidden, query + key]，v [hidden]"
    ),
    "a(q, k_j) = (W q)_j, W [position, query_size]: it depends on the position of a key, not on its content": (
        "a(q, k_j) = (W q)_j，W [position, query_size]：只看键在哪里，不看它是什么"
    ),
    "0: average pooling over the keys that may be attended": "0：对可以注意到的键做平均池化",
    "0 where |q - k| < bandwidth, and none beyond: the mean over near keys": (
        "|q - k| < bandwidth 时为 0，更远的键没有权重：近处各键的平均"
    ),
    "log(1 - |q - k| / bandwidth), and none beyond the bandwidth": (
        "log(1 - |q - k| / bandwidth)，比 bandwidth 更远的键没有权重"
    ),
    "log(1 - |q - k|^2 / bandwidth^2), and none beyond it": (
        "log(1 - |q - k|^2 / bandwidth^2)，比 bandwidth 更远的键没有权重"
    ),
    "0 at any distance: average pooling, because this kernel ignores the query": (
        "距离多远都是 0：平均池化，即不依赖查询的核函数"
    ),
    "depth multiply-adds per pair": "每对 depth 次乘加",
    "1 multiply-add per pair": "每对 1 次乘加",
    "query_size multiply-adds per pair": "每对 query_size 次乘加",
    "query_size multiply-adds per pair; preparing, query_size * key_size per key": (
        "每对 query_size 次乘加；预处理时每个键 query_size * key_size 次"
    ),
    "depth + 1 multiply-adds per pair": "每对 depth + 1 次乘加",
    "hidden_size tanh per pair": "每对 hidden_size 次 tanh",
    "depth squared differences per pair, and one K": "每对 depth 个差的平方，再加一次 K",
    "w . [q; k; q * k], w [3 size]": "w . [q; k; q * k]，w [3 size]",
    # normalizers
    "exp(scores / temperature) / sum; temperature -> 0 gives the argmax, -> infinity the mean": (
        "exp(scores / temperature) / 总和；温度趋于 0 得到最大者，趋于无穷得到平均"
    ),
    "nearest point of the simplex to scores / temperature": "单纯形上离 scores / temperature 最近的点",
    "one-hot of the largest score, the first of equal ones; no gradient reaches the scores": (
        "分数最大者的独热向量，相同时取第一个；梯度传不到分数"
    ),
    "one-hot of a key drawn from softmax(scores / temperature)": (
        "按 softmax(scores / temperature) 采样的键的独热向量"
    ),
    "one-hot forward, softmax(scores / temperature) backward": (
        "前向是独热向量，反向当作 softmax(scores / temperature)"
    ),
    "softmax((scores + Gumbel noise) / temperature)": "softmax((scores + Gumbel 噪声) / temperature)",
    "Independent choice of each key: weights[j] = sigmoid(scores[j]) = p(z_j = 1), where keys do not interact": (
        "每个键各自选或不选：weights[j] = sigmoid(scores[j]) = p(z_j = 1)，键与键互不影响"
    ),
    "Segmentation attention: weights[j] = p(z_j = 1), where z in {0, 1}^keys is a chain for each query": (
        "分段注意力：weights[j] = p(z_j = 1)，每个查询有一条链 z ∈ {0, 1}^keys"
    ),
    "Like `LinearChain`, divided by the sum of the row: weights[j] = p(z_j = 1) / sum_k p(z_k = 1)": (
        "同 `LinearChain`，再除以一行之和：weights[j] = p(z_j = 1) / sum_k p(z_k = 1)"
    ),
    "Syntactic attention: weights[i, j] = p(key j is the head of query i) in a projective dependency tree": (
        "句法注意力：在弧不交叉的依存树里，weights[i, j] = p(键 j 是查询 i 的中心词)"
    ),
    "an exponential per score": "每个分数 1 次指数",
    "a sort of each row, log(keys) comparisons per score": "每行排一次序，即每个分数 log(keys) 次比较",
    "a sort of each row for alpha 1.5 and 2, else 28 (float64: 58) logarithms and exponentials per score": (
        "alpha 为 1.5 和 2 时每行排一次序，否则每个分数 28 次（float64：58 次）对数和指数"
    ),
    "a comparison per score": "每个分数 1 次比较",
    "two exponentials, two logarithms and a hash per score": "每个分数 2 次指数、2 次对数、1 次哈希",
    "an exponential per score; with a seed, two logarithms and a hash more": (
        "每个分数 1 次指数；给了种子再加 2 次对数、1 次哈希"
    ),
    "an exponential, two logarithms and a hash per score": "每个分数 1 次指数、2 次对数、1 次哈希",
    "about thirty exponentials and logarithms per score; log2(keys) operations follow each other": (
        "每个分数约三十次指数和对数；其中 log2(keys) 步必须依次进行"
    ),
    "that of `LinearChain`, and two exponentials per score": "同 `LinearChain`，每个分数再加 2 次指数",
    "about ten exponentials per score and key, keys^3 in total; all scores in memory": (
        "每个分数每个键十来次指数，总共 keys^3；所有分数都在内存里"
    ),
    "weights[i, j] = probability that query i stops at key j, beginning where the query before it stopped": (
        "weights[i, j] = 查询 i 停在键 j 的概率，从上一个查询停下处开始"
    ),
    "one-hot of the first key with a score above 0, from the key of the query before on": (
        "从上一个查询的键往后，第一个分数大于 0 的键的独热向量"
    ),
    "four exponentials per score; queries follow each other, each with log2(keys) operations; all scores in memory": (
        "每个分数 4 次指数；查询依次进行，每个查询要 log2(keys) 步；所有分数都在内存里"
    ),
    "four operations per score; queries follow each other; all scores in memory": (
        "每个分数 4 次运算；查询依次进行；所有分数都在内存里"
    ),
    "fixed numbers of queries and keys": "查询和键的个数固定",
    # masks
    "Let every query attend the first `lengths` keys": "每个查询可以注意到前 `lengths` 个键",
    "Let a query attend keys up to its own position; the last query has the position of the last key": (
        "查询可以注意到不超过自己位置的键；最后一个查询与最后一个键对齐"
    ),
    "Let a query attend keys from `left` positions before its own to `right` positions after": (
        "查询可以注意到自己左边 `left` 个到右边 `right` 个位置的键"
    ),
    "Let target position t attend source positions from t - half_width to t + half_width: local-m": (
        "目标位置 t 可以注意到源位置 t - half_width 到 t + half_width：local-m"
    ),
    "Let a query attend keys around a real centre, and favour near ones by a Gaussian: local-p": (
        "查询可以注意到一个实数中心周围的键，高斯因子给近处的键更大的权重：local-p"
    ),
    "Let a query attend the keys that a table allows, such as the neighbours in a graph": (
        "查询可以注意到一张表里列出的键：图里的邻居"
    ),
    "an interval, two comparisons per pair": "一个区间，每对 2 次比较",
    "an interval, two comparisons per pair; none in SDPA": "一个区间，每对 2 次比较；SDPA 里不需要",
    "left + right + 1 pairs per query if there are many keys; else as `padding`": (
        "键很多时，每个查询只计算 left + right + 1 对；否则同 `padding`"
    ),
    "2 half_width + 1 pairs per query if there are many keys; else as `padding`": (
        "键很多时，每个查询只计算 2 half_width + 1 对；否则同 `padding`"
    ),
    "as `local_monotonic`, with an exponential per pair; over the whole source, all pairs": (
        "同 `local_monotonic`，每对再加 1 次指数；覆盖整个源句时要计算所有的对"
    ),
    "one bool per pair in memory": "一张表，每对在内存里占一个 bool",
    "2 numbers per query": "每个查询 2 个数",
    "query * key bools": "query * key 个 bool",
    # kernels
    "Gathered keys of each query's window, scored by plain operations; for any score and most normalizers": (
        "先取出每个查询窗口里的键，再用普通运算打分；适用于任何打分和大多数归一化"
    ),
    "Scores, softmax and average of few queries or few keys in one loop, compiled by Numba": (
        "查询或键很少时（如解码的一步），打分、softmax 与加权平均在一个循环中完成，由 Numba 编译"
    ),
    "Distances, kernel, softmax and average in one loop, compiled by Numba": (
        "距离、核函数、softmax 与加权平均在一个循环中完成，由 Numba 编译"
    ),
    "PyTorch's scaled_dot_product_attention: dot scores with softmax": (
        "PyTorch 的 scaled_dot_product_attention：点积打分加 softmax"
    ),
    "Additive scores in exponential form, compiled by Numba": "指数形式的加性打分，由 Numba 编译",
    "Additive scores in exponential form on a GPU, compiled by Triton": "GPU 上指数形式的加性打分，由 Triton 编译",
    "Scores, masks, softmax or a chosen key, dropout and context in one pass on a GPU, compiled by Triton": (
        "在 GPU 上一次完成打分、掩码、softmax（或选一个键）、dropout 和上下文，由 Triton 编译"
    ),
    (
        "query + key (additive scores a strip of queries at a time; computed again backward); "
        "proved in Triton's interpreter, not yet timed on a device"
    ): ("query + key（加性打分每次处理一组查询，反向时重算）；已在 Triton 解释器中验证，尚未在设备上计时"),
    "The formulas as written": "照公式直接计算",
    "query + key (tiles of queries, computed again backward)": "query + key（查询分块，反向时重算）",
    (
        "query + key (tiles of queries, computed again backward); "
        "proved in Triton's interpreter, not yet timed on a device"
    ): "query + key（查询分块，反向时重算）；已在 Triton 解释器中验证，尚未在设备上计时",
    "query + key; a mask that differs between queries and is not just causal is written out: query * key numbers": (
        "query + key；如果掩码因查询而异且不只是因果掩码，要展开成 query * key 个数"
    ),
    # mechanisms in models
    "all scores": "所有打分函数",
    "no gradient reaches the score, so it cannot be learned; straight_through attends to the same key": (
        "梯度传不到打分函数，无法学习；straight_through 注意到同一个键，而且可以学习"
    ),
    "a tree needs queries and keys that are the same words (the keys may have a root before them), as in "
    "self-attention of an encoder": ("树要求查询和键是同样的词（键的最前面可以多一个根），例如编码器的自注意力"),
    "local-p predicts its centre from the state of a recurrent decoder; with heads use local-m": (
        "local-p 由循环解码器的状态预测中心；多头注意力请用 local-m"
    ),
    "weights that go on from those of the word before are for decoders that attend step by step: rnnsearch, luong and "
    "show_attend_tell": (
        "从上一个词的权重接着往前走的注意力，只能用在逐步注意的解码器里：rnnsearch、luong 和 show_attend_tell"
    ),
    "drawn keys of self-attention get no reward; gumbel_softmax draws keys and has a gradient": (
        "自注意力里采样到的键没有回报；gumbel_softmax 也采样，而且有梯度"
    ),
    # transforms
    "yes": "可以",
    "no": "不行",
    "in the values only": "仅对值",
}
