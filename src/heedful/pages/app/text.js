// Texts of the page in English and Chinese.
const TEXTS = {
  translate: ['Translate', '翻译'], inside: ['Look inside', '看内部'], search: ['Search', '搜索过程'], compare: ['Compare', '比较'],
  training: ['Training', '训练'], learn: ['Learn', '学习'],
  evaluate: ['Evaluate', '评测'], testScores: ['Test set', '测试集'], numSentences: ['{0} sentences', '{0} 句'], metric: ['Metric', '指标'], byLength: ['{0} by source length', '{0} 随原文长度的变化'], lengthWords: ['Columns: source length in words.', '横轴：原文长度（词）。'], lengthCharacters: ['Columns: source length in characters.', '横轴：原文长度（字符）。'], interval: ['Strokes: 95 % intervals. n: number of sentences.', '竖线：95 % 置信区间；n：句数。'],
  worst: ['Worst outputs', '最差的译文'], worstBy: ['by {0}.', '按 {0} 排列。'], worstLoad: ['Click one to translate it.', '点击一句即可翻译。'], worstOrder: ['Source, output, and reference.', '依次为原文、译文和参考译文。'], noScores: ['This model has no record of a test. This command makes one:', '这个模型没有测试记录。用这个命令生成：'], noWorst: ['The record has no single outputs. This command adds them:', '记录中没有逐句译文。用这个命令补充：'],
  keyTitle: ['This server needs a key', '此服务器需要密钥'], keyLabel: ['API key', 'API 密钥'], keySend: ['Use this key', '使用此密钥'], keyWrong: ['The server refused the key. Ask its owner for another.', '服务器拒绝了这个密钥。请向服务器的管理者索取。'], keyNote: ['It stays in this tab, and is forgotten when the tab closes.', '密钥只保存在此标签页中，关闭后即删除。'],
  linking: ['Correct the links', '修改对齐'], linkingDone: ['Done', '完成'], linkingNote: ['Drag from a word to its translation to draw a link, or over a link once more to remove it. Or choose one word and then the other; arrow keys move between words.', '从一个词拖到它的译词即可连线，再拖一次则删除连线。也可以先选一个词，再选另一个词；方向键在词之间移动。'], linkMade: ['{0} – {1}: linked', '{0} – {1}：已连线'], linkGone: ['{0} – {1}: removed', '{0} – {1}：已删除'], linkPicked: ['{0}: choose the other word', '{0}：请选择另一个词'], linksFromAttention: ['As attention links them', '按注意力连线'], linksClear: ['Remove all', '全部删除'], linksSave: ['Save Pharaoh lines', '保存 Pharaoh 格式'], linksSend: ['Send to the server', '发送到服务器'], linksSent: ['Sent.', '已发送。'],
  segmentOf: ['Sentence {0} of {1}', '第 {0} 句，共 {1} 句'], previous: ['Previous sentence', '上一句'], next: ['Next sentence', '下一句'], keptSpan: ['Stays as it is', '保持原样'], shadedNote: ['Shaded: stays as it is.', '带底色的部分保持原样。'], readAs: ['The model reads:', '模型读到的是：'], staysWhole: ['Nothing to translate: it stays as it is.', '没有需要翻译的内容，保持原样。'], faulty: ['The model gave no usable translation, so the source stands here.', '模型没有给出可用的译文，因此保留原文。'],
  classify: ['Classify', '分类'], answer: ['Answer', '问答'], caption: ['Describe', '描述图像'],
  textToLabel: ['Text', '文本'], label: ['Label', '标签'], labels: ['Labels', '标签'], labelHere: ['The label appears here.', '标签显示在这里。'], typeText: ['Type a text…', '请输入一段文本…'],
  wordsThatMatter: ['Words that matter', '起作用的词'], colourBy: ['Colours show', '颜色表示'], byAttention: ['Attention', '注意力'], byEffect: ['Effect', '影响'], byEnds: ['Answer', '答案'],
  attentionNote: ['The stronger the shade of a word, the more the model looks at it; that need not be why it decides.', '词的底色越深，模型越注意这个词，但这不一定就是判断的原因。'],
  effectNote: ['Blue words speak for the label: without them it is less probable. Red words speak against it.', '蓝色的词支持这个标签，去掉后标签的概率降低；红色的词则相反。'],
  pointAtWord: ['Point at a word.', '请指向一个词。'], 'pointAtWord-touch': ['Tap a word.', '请轻点一个词。'], weightOf: ['weight {0}', '权重 {0}'], effectOf: ['speaks for the label by {0} nats', '对标签的支持为 {0} 奈特'], effectOnNumber: ['changes the number by {0}', '使数值改变 {0}'],
  faithful: ['Rank correlation of attention and effect: {0}. The words that the model looks at are about those that decide.', '注意力与影响的秩相关系数：{0}。模型注意的词大致就是起决定作用的词。'],
  unfaithful: ['Rank correlation of attention and effect: {0}. Here the words that the model looks at are not those that decide.', '注意力与影响的秩相关系数：{0}。这里模型注意的词并不是起决定作用的词。'],
  facts: ['Facts, one a line', '事实（每行一条）'], question: ['Question', '问题'], answerLabel: ['Answer', '答案'], answerHere: ['The answer appears here.', '答案显示在这里。'], noAnswer: ['The facts do not say.', '文中没有答案。'], typeFacts: ['Type facts, one a line…', '请输入事实，每行一条…'], typeQuestion: ['Type a question…', '请输入问题…'],
  factsThatMatter: ['Facts that the answer comes from', '答案所依据的事实'], factsNote: ['The share of its attention that the model gives each fact, at each step.', '模型在每一步分给各条事实的注意力。'], fact: ['Fact', '事实'], stepOf: ['Step {0}', '第 {0} 步'],
  answerInText: ['Where the answer is', '答案的位置'], endsNote: ['The stronger the shade of a word, the more probable is it that the answer starts or ends there.', '词的底色越深，答案越可能在那里开始或结束。'],
  picture: ['Picture', '图片'], choosePicture: ['Choose a picture', '选择图片'], otherPicture: ['Another picture', '换一张图片'], dropPicture: ['Drop a picture here, or', '把图片拖到这里，或'], captionLabel: ['Caption', '描述'], captionHere: ['The caption appears here.', '描述显示在这里。'],
  regionsNote: ['Point at a word: the picture stays bright where the word looked.', '请指向一个词：图片中该词注意的区域保持明亮。'], 'regionsNote-touch': ['Tap a word: the picture stays bright where the word looked.', '请轻点一个词：图片中该词注意的区域保持明亮。'], otherCaptions: ['Other captions', '其他描述'],
  theme: ['Colours', '配色'], themeAuto: ['Auto', '自动'], themeLight: ['Light', '浅色'], themeDark: ['Dark', '深色'], language: ['中文', 'English'],
  views: ['Views', '视图'], source: ['Source', '原文'], output: ['Output', '译文'], type: ['Type a sentence…', '请输入一句话…'], model: ['Model', '模型'],
  copy: ['Copy', '复制'], copyOutput: ['Copy the translation', '复制译文'], copied: ['Copied', '已复制'], selected: ['Selected', '已选中'],
  nothing: ['The translation appears here.', '译文显示在这里。'], working: ['Translating…', '正在翻译…'], probability: ['probability {0}', '概率 {0}'],
  shade: ['The stronger the shade, the surer the model. Click a word for others.', '词的底色越深，模型越有把握。点击一个词可查看候选。'], sentenceEnd: ['end of the sentence', '句子结束'], tryOne: ['Or one of these, from the model’s validation set:', '或从模型的验证集中选一句：'], chooseOne: ['Click one, and the output goes on from it.', '点击其中一个，就从那里接着译下去。'],
  links: ['Where each word comes from', '每个词从哪里来'], linksFromHead: ['Links between words that you correct begin with those of the map above.', '更正连线时，先从上面这张图的连线开始。'], linksNote: ['A line is as thick as the attention. Point at a word to see its own lines.', '连线越粗，注意力越大。指向一个词可只看它的连线。'], 'linksNote-touch': ['A line is as thick as the attention. Tap a word to see its own lines.', '连线越粗，注意力越大。轻点一个词可只看它的连线。'],
  alternatives: ['Alternatives', '其他译文'], choicesOf: ['Instead of “{0}”', '“{0}”的候选'], goesOn: ['goes on: {0}', '接下去：{0}'], chosenNow: ['chosen now', '当前选择'],
  back: ['Back to the best output', '回到最佳译文'], close: ['Close', '关闭'], liveOnly: ['The alternatives of this output need a running model: heedful serve {0}', '要查看这个译文的候选，需要运行模型：heedful serve {0}'],
  attention: ['Attention', '注意力'], cross: ['Cross-attention', '交叉注意力'], encoder: ['Encoder', '编码器'], decoder: ['Decoder', '解码器'], alignment: ['Attention while translating', '翻译时的注意力'],
  'about-cross': ['Each row: a target word, and how its attention is spread over the source words.', '每行是一个译文词，显示它的注意力如何分布在原文各词上。'], 'about-encoder': ['Each row: a source word, and how its attention is spread over the source words.', '每行是一个原文词，显示它的注意力如何分布在原文各词上。'], 'about-decoder': ['Each row: a target word, and how its attention is spread over the target words before it.', '每行是一个译文词，显示它的注意力如何分布在它之前的译文词上。'], 'about-heads': ['Each row: a source word, and the weights of the words that may be its head. {0}: it has no head among the words.', '每行是一个原文词，显示哪些词可能是它的中心词。{0}：它在句中没有中心词。'], 'about-tree': ['Framed: the tree whose arcs have the largest sum of weights.', '方框：各弧权重之和最大的依存树。'], root: ['⟨root⟩', '⟨根⟩'], inTree: ['in the tree', '属于这棵树'],
  'about-alignment': ['Each row: a target word, and the source words that the model looked at when it wrote it: the mean over all heads of the last two decoder layers, or of the only one.', '每行是一个译文词，显示模型写出它时看向原文的哪些词：取解码器最后两层（只有一层时就是这一层）所有头的平均。'],
  meanOfLayers: ['mean of layers and heads', '各层各头的平均'],
  words: ['Words', '词'], pieces: ['Pieces', '子词'], unit: ['Unit', '单位'], layer: ['Layer {0}', '第 {0} 层'], head: ['Head {0}', '第 {0} 个头'], mean: ['Mean', '平均'], heads: ['Layers and heads', '层和头'],
  rule: ['Words are merged from pieces: weights are summed over the pieces of an attended word and averaged over those of an attending one, so each row still sums to 1.', '词由子词合并而成：列相加，行取平均，所以每行之和仍为 1。'],
  cell: ['{0} ← {1}: {2}', '{0} ← {1}：{2}'], rowInfo: ['row sum {0}, entropy {1} nats', '行和 {0}，熵 {1} 奈特'], pointAt: ['Point at a cell, or move with the arrow keys.', '指向一个格子，或用方向键移动。'], 'pointAt-touch': ['Tap a cell.', '轻点一个格子。'],
  mapLabel: ['Attention of {0} rows over {1} columns', '{0} 行对 {1} 列的注意力'], saveSvg: ['SVG', 'SVG'], savePng: ['PNG', 'PNG'], saveCsv: ['CSV', 'CSV'], save: ['Save', '保存'],
  caution: ['Attention shows where the model looked, not why it chose a word.', '注意力只说明模型看了哪里，不说明它为什么选了这个词。'],
  missingHeads: ['The attention of words to their heads is not available here: {0}', '此处没有各词对中心词的注意力，请安装 PyTorch。'],
  missingLayers: ['The attention of each layer and head is not available here: {0}', '此处没有各层各头的注意力：请安装 PyTorch，或运行 heedful export MODEL --to onnx --layers。'], missingPacked: ['This file has no single layers and heads. This command packs them:', '此文件没有各层各头的注意力。用这个命令写入：'], missingAttention: ['This model has no attention.', '这个模型没有注意力。'], empty: ['Type a sentence in “{0}” first.', '请先在“{0}”中输入一句话。'],
  measure: ['Measure', '度量'], 'measure-attention': ['Attention', '注意力'], 'measure-value-norm': ['Value norm', '值范数'], 'measure-rollout': ['Rollout', '逐层累乘'], 'measure-alti': ['ALTI', 'ALTI'], 'measure-gradients': ['Gradients', '梯度'],
  'about-attention': ['Weights as the model uses them. They say where it looks, not how much it takes from there.', '模型实际使用的权重：说明模型看了哪里，不说明从那里取用了多少。'],
  'about-value-norm': ['Weights times the length of the vectors that they weigh: a word with a short vector adds little, whatever its weight.', '权重乘以被加权向量的长度：向量很短的词，权重再大也贡献很少。'],
  'about-rollout': ['Mean weights multiplied through all layers below, half for the residual connections. Values are ignored.', '把下面各层的平均权重连乘，残差连接占一半；不考虑值向量。'],
  'about-alti': ['Share of each word in the vectors themselves, followed through all layers below.', '每个词在向量本身中所占的份额，逐层向下追踪。'],
  'about-gradients': ['How the log probability of each output word changes as the source is faded in: integrated gradients, without sign.', '积分梯度：原文从空白逐渐变为原样，累计每个输出词的对数概率随之发生的变化，取绝对值。'],
  missingMeasure: ['This measure is not available: {0}', '此处无法使用这种度量：模型不支持、注意力已被改动，或者没有安装 PyTorch。'],
  override: ['What if', '改一改'], overrideNote: ['Change the attention of the chosen layer and head, and translate again.', '改动所选层和头的注意力，再翻译一次。'], off: ['Switch this head off', '关闭这个头'], uniform: ['Spread its weights evenly', '平均分配权重'], allOn: ['Put all of “{0}” on “{1}”', '把“{0}”的注意力全部放在“{1}”上'], resetAll: ['Undo all changes', '撤销所有改动'], changedTo: ['With the change', '改动之后'], before: ['Before', '改动之前'], sameOutput: ['The output stays the same.', '译文没有变化。'], noOverride: ['Changing attention needs PyTorch: {0}', '改动注意力需要 PyTorch。'],
  beam: ['Beam', '束宽'], penalty: ['Length penalty α', '长度惩罚 α'], tree: ['Beam tree', '束搜索树'], pruned: ['Show pruned hypotheses', '显示被剪去的假设'],
  treeNote: ['Each column is one step. Bold: the best output. Dashed: left the beam. Click a node for its text and attention.', '每列为一步。粗线：最佳译文；虚线：已被剪去。点击节点可查看文本和注意力。'],
  finished: ['Finished hypotheses', '完成的假设'], score: ['Score', '分数'], logProb: ['Log probability', '对数概率'], length: ['Length', '长度'], text: ['Text', '文本'], hypothesis: ['Hypothesis', '假设'],
  fate_live: ['went on', '继续'], fate_eos: ['finished', '完成'], fate_length: ['finished at the length limit', '达到长度上限'], fate_rank: ['left the beam: others were more probable', '被剪去：其他假设概率更大'], fate_late_eos: ['ended, but too low in the ranking', '已结束，但排名太低'], fate_stopped: ['not finished when the search stopped', '搜索停止时尚未完成'], fate_cancelled: ['cancelled', '已取消'], fate_stuck: ['no possible next word', '无法继续'],
  treeLabel: ['Beam tree with {0} hypotheses', '含 {0} 个假设的束搜索树'], departed: ['The reference left the beam at its token {0}.', '参考译文在第 {0} 个 token 处被剪去。'], stayed: ['The search found the reference.', '搜索找到了参考译文。'], rerank: ['α ranks the finished hypotheses anew; the search itself stays as it was.', 'α 只给已完成的假设重新排序，搜索本身不变。'],
  compareNote: ['Two models on the same sentence, on the same scale.', '两个模型翻译同一句话，使用同一尺度。'], second: ['Second model', '第二个模型'], sameModels: ['Both outputs are the same.', '两个译文相同。'], oneModel: ['Only one model is loaded. Start two: heedful serve A.model B.model', '只加载了一个模型，比较需要两个：heedful serve A.model B.model'],
  noRun: ['This model has no record of its training.', '这个模型没有训练记录。'], step: ['step {0}', '第 {0} 步'], loss: ['Loss', '损失'], trainingLoss: ['training', '训练'], validationLoss: ['validation', '验证'], learningRate: ['Learning rate', '学习率'], speed: ['Target tokens a second', '每秒目标 token 数'], samples: ['Samples in the course of training', '训练过程中的样例'], reference: ['Reference', '参考译文'], best: ['kept', '保留'], keptNote: ['Dotted line: the step whose weights were kept.', '虚线：模型保留的是这一步的权重。'],
  learnIntro: ['Attention in three steps, with your own numbers.', '用自己的数字，分三步看懂注意力。'], stepScore: ['1 · Score', '1 · 打分'], stepNormalize: ['2 · Normalise', '2 · 归一化'], stepContext: ['3 · Context', '3 · 加权求和'], query: ['Query', '查询'], key: ['Key {0}', '键 {0}'], value: ['Value', '值'], keys: ['Keys and values', '键和值'], scoreFunction: ['Score function', '打分函数'], normalizer: ['Normalizer', '归一化'], temperature: ['Temperature', '温度'], weights: ['Weights', '权重'], scores: ['Scores', '分数'], context: ['Context', '上下文'], contextNote: ['The context is the sum of the values, each times its weight.', '上下文是各个值按权重求的和。'], bandwidth: ['Bandwidth', '带宽'], redraw: ['Draw again', '重新采样'], all: ['All keys', '所有键'], windowNote: ['Drag the window: keys outside it may not be attended. Weights inside can fall off as a Gaussian (Luong’s local-p).', '拖动窗口：窗口外的键注意不到。窗口内的权重可以按高斯函数衰减（Luong 的 local-p）。'], window: ['Local window', '局部窗口'], centre: ['Centre', '中心'], halfWidth: ['Half width', '半宽'], gaussian: ['Gaussian fall-off', '高斯衰减'], component: ['{0}, component {1}', '{0} 的第 {1} 个分量'], parameters: ['Learned parameters are fixed here: W = [[1, 0.5], [−0.5, 1]], U = [[1, 0], [0, 1]], v = [1, −1], bandwidth = 1.', '可学习的参数在这里是固定的：W = [[1, 0.5], [−0.5, 1]]，U = [[1, 0], [0, 1]]，v = [1, −1]，带宽 = 1。'],
  regression: ['Nadaraya–Watson: attention as regression', 'Nadaraya–Watson 核回归：注意力就是回归'], regressionNote: ['Each point is a key x with a value y; the curve is the context of a query at each x. Small bandwidth: every bump; large: the mean.', '每个点是一个键 x 和它的值 y；曲线是在各处查询得到的上下文。带宽小，曲线起伏多；带宽大，曲线趋于平均。'],
  exactMatch: ['Exact match, %', '完全匹配，%'], characterErrorRate: ['Character error rate, %', '字符错误率，%'], tokenErrorRate: ['Token error rate, %', 'token 错误率，%'], bleu: ['BLEU', 'BLEU'], chrf: ['chrF', 'chrF'], accuracy: ['Accuracy, %', '准确率，%'], reading: ['Reading…', '正在读取…'],
  failed: ['The server answered: {0}', '服务器未能完成请求（状态码 {1}）。'], unreachable: ['The server cannot be reached.', '无法连接服务器。'], cut: ['The sentence was longer than the model reads and was cut.', '句子超过模型能读的长度，已截断。'],
  onTest: ['on its test set: {0}', '测试集：{0}'], licence: ['licence {0}', '许可证：{0}'], unnamed: ['not named', '未说明'], weightBits: ['weights of {0} bits', '权重 {0} 位'], insideFile: ['the model is inside this file', '模型就在此文件中'], tryThese: ['Or one of these:', '或选一句：'],
  tooLong: ['The text is too long for this page: at most 5,000 characters.', '文本过长：此网页最多接受 5,000 个字符。'],
  fault_damaged: ['This file is cut or changed. Copy it again.', '此文件不完整或已被改动，请重新复制。'], fault_newer: ['The model inside was made by a newer heedful than the page.', '文件中的模型由更新版本的 heedful 写出，这个网页读不了。'], fault_kind: ['The model inside is of a kind that this page does not run.', '此网页无法运行文件中的这类模型。'],
  fault_runtime: ['This browser does not run the model: it is too old, or WebAssembly is switched off.', '此浏览器无法运行模型：版本过旧，或已关闭 WebAssembly。'], fault_memory: ['There is too little memory for the model inside: close other pages, or use a shorter text.', '内存不足，无法运行文件中的模型：请关闭其他网页，或缩短文本。'], fault_nonfinite: ['The model’s weights are broken. Copy the file again.', '模型权重已损坏，请重新复制文件。'], fault_usage: ['{0}', '请求无效。'], fault_other: ['The model inside failed: {0}.', '文件中的模型运行出错。'], fault_picture: ['This picture cannot be read: {0}.', '无法读取这张图片。'],
  'score-accuracy': ['accuracy', '准确率'], 'score-exact_match': ['exact match', '完全匹配率'], 'score-macro_f1': ['macro-F1', '宏平均 F1'], 'score-micro_f1': ['micro-F1', '微平均 F1'],
  'score-character_error_rate': ['character error rate', '字符错误率'], 'score-token_error_rate': ['token error rate', 'token 错误率'], 'score-mean_error': ['mean error', '平均误差'], 'score-explained': ['variance explained', '方差解释率'],
  changes: ['Changed words are underlined.', '不同的词带有下划线。'], prefixKept: ['The beginning is held fixed; the model goes on from it.', '开头已固定，模型从这里接着译。'],
};

let language = 0;

export function setLanguage(code) {
  language = code === 'zh' ? 1 : 0;
  document.documentElement.lang = code === 'zh' ? 'zh-CN' : 'en';
}

// Fingers do not point, and have no arrow keys.
const isTouched = () => Boolean(globalThis.matchMedia?.('(pointer: coarse)').matches);

export function t(key, ...values) {
  const touched = TEXTS[`${key}-touch`], text = (touched && isTouched() ? touched : TEXTS[key])?.[language] ?? key;
  return values.reduce((written, value, index) => written.replaceAll(`{${index}}`, value), text);
}
// Languages of a model, such as "de → en"; empty where it does not know them.
export function direction(languages = []) {
  const sides = { source: t('source'), target: t('output') };
  return languages.every((name) => !name || sides[name]) ? '' : languages.filter(Boolean).map((name) => sides[name] ?? name).join(' → ');
}
// Name of a score in the language of the page, where it has one.
export function scoreName({ key, name }) {
  return TEXTS[`score-${key}`]?.[language] ?? name;
}
