/** Every text of the interface in Vietnamese and Chinese. Values in braces are filled in; numbers are the same in all. */
export const CATALOG = {
  // frame
  "Skip to the figure": ["Đến thẳng hình vẽ", "跳到图"],
  Views: ["Các khung nhìn", "视图"],
  Language: ["Ngôn ngữ", "语言"],
  Help: ["Trợ giúp", "帮助"],
  Walk: ["Từng bước", "逐步"],
  Alignment: ["Gióng hàng", "对齐"],
  "What-if": ["Nếu như", "假如"],
  Photo: ["Ảnh", "图片"],
  History: ["Lịch sử", "历史"],
  Keys: ["Phím tắt", "快捷键"],
  Close: ["Đóng", "关闭"],
  yes: ["có", "是"],
  no: ["không", "否"],
  more: ["thêm", "展开"],
  less: ["thu gọn", "收起"],
  "{first} and {last}": ["{first} và {last}", "{first}和{last}"],
  "play or pause (Walk)": ["phát hoặc tạm dừng (Từng bước)", "播放或暂停（逐步）"],
  "one stage back or forward; in a figure, the next cell": [
    "lùi hoặc tiến một giai đoạn; trong hình, sang ô bên cạnh",
    "后退或前进一个阶段；在图中移到下一格",
  ],
  "previous or next output word": ["từ đầu ra trước hoặc sau", "上一个或下一个输出词"],
  "first or last stage": ["giai đoạn đầu hoặc cuối", "第一个或最后一个阶段"],
  "score, softmax, context, combine, word": [
    "điểm, softmax, ngữ cảnh, kết hợp, từ",
    "得分、softmax、上下文、合并、词",
  ],
  "faster, slower": ["nhanh hơn, chậm hơn", "加快、减慢"],
  "matrix, lines or both (Alignment)": [
    "ma trận, đường nối hoặc cả hai (Gióng hàng)",
    "矩阵、连线或两者（对齐）",
  ],
  "numbers in the cells on or off": ["hiện hoặc ẩn số trong ô", "显示或隐藏格中的数字"],
  "table on or off": ["hiện hoặc ẩn bảng", "显示或隐藏表格"],
  "go to Walk, Alignment, What-if, Photo (images), History (recommendations)": [
    "đến Từng bước, Gióng hàng, Nếu như, Ảnh (hình ảnh), Lịch sử (gợi ý)",
    "前往逐步、对齐、假如、图片（图像）、历史（推荐）",
  ],
  "go to a figure, choose a cell": ["đến hình vẽ, chọn một ô", "进入图、选择一格"],
  "this help": ["trợ giúp này", "本帮助"],
  "Hover or focus a number to highlight what it was computed from. The address of the page contains the state of the view: copy it to share what you see.":
    [
      "Trỏ hoặc chọn một số để làm nổi bật những gì nó được tính từ đó. Địa chỉ trang chứa trạng thái của khung nhìn: hãy sao chép để chia sẻ.",
      "悬停或聚焦一个数字，可突出显示它由什么算出。页面地址包含视图的状态：复制即可分享。",
    ],

  // nouns
  word: ["từ", "词"],
  words: ["từ", "词"],
  "output word": ["từ đầu ra", "输出词"],
  "output words": ["từ đầu ra", "输出词"],
  "input word": ["từ đầu vào", "输入词"],
  "input words": ["từ đầu vào", "输入词"],
  item: ["mục", "物品"],
  items: ["mục", "物品"],
  "recommended item": ["mục được gợi ý", "推荐的物品"],
  "recommended items": ["mục được gợi ý", "推荐的物品"],
  "item of the history": ["mục trong lịch sử", "历史中的物品"],
  "items of the history": ["mục trong lịch sử", "历史中的物品"],
  "next word": ["từ tiếp theo", "下一个词"],
  "next words": ["từ tiếp theo", "下一个词"],
  "earlier word": ["từ trước đó", "先前的词"],
  "earlier words": ["từ trước đó", "先前的词"],
  label: ["nhãn", "标签"],
  labels: ["nhãn", "标签"],
  region: ["vùng", "区域"],
  regions: ["vùng", "区域"],
  "output position": ["vị trí đầu ra", "输出位置"],
  "output positions": ["vị trí đầu ra", "输出位置"],
  "earlier output position": ["vị trí đầu ra trước đó", "先前的输出位置"],
  "match the query": ["khớp với truy vấn", "与查询的匹配程度"],
  "match the recommended item": ["khớp với mục được gợi ý", "与推荐物品的匹配程度"],
  "it generated a word": ["nó sinh ra một từ", "它生成某个词"],
  "it recommended an item": ["nó gợi ý một mục", "它推荐某个物品"],
  "it expected a word": ["nó chờ đợi một từ", "它预期某个词"],
  "it predicted a label": ["nó dự đoán một nhãn", "它预测某个标签"],
  "The context is combined with the decoder's state.": [
    "Ngữ cảnh được kết hợp với trạng thái của bộ giải mã.",
    "上下文与解码器的状态合并。",
  ],
  "Every word of the vocabulary gets a probability; one is generated.": [
    "Mỗi từ trong từ vựng nhận một xác suất; một từ được sinh ra.",
    "词表中每个词得到一个概率；生成其中一个。",
  ],
  "The context is compared with the recommended item.": [
    "Ngữ cảnh được so với mục được gợi ý.",
    "上下文与推荐的物品比较。",
  ],
  "The higher the score, the more likely the item.": [
    "Điểm càng cao, mục càng có khả năng.",
    "得分越高，物品越可能。",
  ],
  "The context is combined with the word just read.": [
    "Ngữ cảnh được kết hợp với từ vừa đọc.",
    "上下文与刚读的词合并。",
  ],
  "Every word of the vocabulary gets a probability; the text continues with one of them.": [
    "Mỗi từ trong từ vựng nhận một xác suất; văn bản tiếp tục bằng một trong số đó.",
    "词表中每个词得到一个概率；文本以其中一个继续。",
  ],
  "The context is the vector of the whole text.": [
    "Ngữ cảnh là vectơ của cả văn bản.",
    "上下文是整个文本的向量。",
  ],
  "Every label gets a probability; the most likely is the prediction.": [
    "Mỗi nhãn nhận một xác suất; nhãn có xác suất cao nhất là dự đoán.",
    "每个标签得到一个概率；最可能的就是预测。",
  ],
  "a recommendation": ["một gợi ý", "一次推荐"],
  "a step": ["một bước", "一步"],
  "the model": ["mô hình", "模型"],

  // numbers
  "not a number": ["không phải số", "非数"],
  "less than {share}": ["dưới {share}", "小于 {share}"],
  "more than {share}": ["trên {share}", "大于 {share}"],
  "{n} numbers": ["{n} số", "{n} 个数"],
  "{n} numbers, largest absolute value {largest}": [
    "{n} số, giá trị tuyệt đối lớn nhất {largest}",
    "{n} 个数，最大绝对值 {largest}",
  ],
  "{weight} times {n} numbers": ["{weight} nhân {n} số", "{weight} 乘 {n} 个数"],
  sum: ["tổng", "和"],
  score: ["điểm", "得分"],
  weight: ["trọng số", "权重"],
  context: ["ngữ cảnh", "上下文"],
  query: ["truy vấn", "查询"],
  probability: ["xác suất", "概率"],
  "log-probability": ["log xác suất", "对数概率"],
  logit: ["logit", "logit"],
  effect: ["tác động", "影响"],
  change: ["thay đổi", "变化"],
  bias: ["độ lệch", "偏置"],
  dimension: ["chiều", "维度"],
  recomputed: ["tính lại", "重算"],
  "weight, recomputed": ["trọng số, tính lại", "权重（重算）"],
  masked: ["bị che", "被屏蔽"],
  "outside the window": ["ngoài cửa sổ", "在窗口之外"],
  "not computed": ["chưa tính", "未计算"],
  new: ["mới", "新"],
  original: ["gốc", "原来"],
  edited: ["đã sửa", "修改后"],
  generated: ["được sinh ra", "已生成"],
  "step {n}": ["bước {n}", "第 {n} 步"],
  "position {n}": ["vị trí {n}", "位置 {n}"],
  "weight {value}": ["trọng số {value}", "权重 {value}"],
  "at {site}": ["tại {site}", "在 {site}"],
  "model {name}": ["mô hình {name}", "模型 {name}"],
  "{n} parameters": ["{n} tham số", "{n} 个参数"],
  "layer {n}": ["tầng {n}", "第 {n} 层"],
  "head {head}": ["đầu {head}", "头 {head}"],
  "head {head} of 0–{last}": ["đầu {head} trong 0–{last}", "头 {head}（0–{last}）"],
  "mean of {n} heads": ["trung bình {n} đầu", "{n} 个头的平均"],
  "mean of all heads": ["trung bình mọi đầu", "所有头的平均"],
  "word {n} of {all}": ["từ {n} trên {all}", "第 {n} 个词，共 {all} 个"],
  "{output} {n} of {all}": ["{output} {n} trên {all}", "{output} {n}/{all}"],
  "{noun} (query)": ["{noun} (truy vấn)", "{noun}（查询）"],
  "earlier {noun}": ["{noun} trước đó", "先前的{noun}"],
  "row {row}, column {column}": ["hàng {row}, cột {column}", "第 {row} 行，第 {column} 列"],
  "the region in {place}": ["vùng ở {place}", "{place}的区域"],

  // figures
  Figure: ["Hình", "图"],
  matrix: ["ma trận", "矩阵"],
  lines: ["đường nối", "连线"],
  "matrix and lines": ["ma trận và đường nối", "矩阵和连线"],
  "whole words": ["cả từ", "整词"],
  "start and end tokens": ["token đầu và cuối", "起止词元"],
  numbers: ["số", "数字"],
  "shade by row": ["tô theo hàng", "按行着色"],
  table: ["bảng", "表格"],
  Site: ["Vị trí chú ý", "注意力位置"],
  Head: ["Đầu", "头"],
  "attention of the label": ["chú ý của nhãn", "标签的注意力"],
  "cross-attention": ["chú ý chéo", "交叉注意力"],
  "decoder self-attention": ["tự chú ý của bộ giải mã", "解码器自注意力"],
  "encoder self-attention": ["tự chú ý của bộ mã hóa", "编码器自注意力"],
  "copy attention": ["chú ý sao chép", "复制注意力"],
  "columns: {columns}; rows: {rows}": ["cột: {columns}; hàng: {rows}", "列：{columns}；行：{rows}"],
  "Arrow keys move between cells; the table below has all numbers.": [
    "Phím mũi tên di chuyển giữa các ô; bảng bên dưới có mọi số.",
    "方向键在格间移动；下方表格有全部数字。",
  ],
  "{figure}, as lines": ["{figure}, dạng đường nối", "{figure}，连线形式"],
  "{query} attends to {keys}": ["{query} chú ý đến {keys}", "{query} 关注 {keys}"],
  "no word in particular": ["không từ nào cụ thể", "没有特定的词"],
  "Weights under 1 % have no line; together they make up {share} of the weight.": [
    "Trọng số dưới 1 % không có đường nối; cộng lại chúng chiếm {share} trọng số.",
    "小于 1 % 的权重不画线；它们合计占权重的 {share}。",
  ],
  "gold link": ["liên kết chuẩn", "标准对齐"],
  "edited weights": ["trọng số đã sửa", "修改过的权重"],
  "Attention of each {query} to the {keys}": [
    "Chú ý của mỗi {query} đến các {keys}",
    "每个{query}对{keys}的注意力",
  ],
  "Every row has the weights of one query.": [
    "Mỗi hàng là các trọng số của một truy vấn.",
    "每一行是一个查询的权重。",
  ],
  "At this site a row may sum to less than 1.": [
    "Tại vị trí này tổng một hàng có thể nhỏ hơn 1.",
    "在此位置一行之和可小于 1。",
  ],
  "At this site a row may have any sum.": [
    "Tại vị trí này tổng một hàng là tùy ý.",
    "在此位置一行之和可为任意值。",
  ],
  "Rings and orange lines: gold links.": [
    "Vòng tròn và đường màu cam: liên kết chuẩn.",
    "圆环和橙色线：标准对齐。",
  ],
  "The darkest cell of a row is its largest weight, however small.": [
    "Ô đậm nhất của một hàng là trọng số lớn nhất, dù nhỏ đến đâu.",
    "一行中最深的格是其最大权重，无论多小。",
  ],
  "Start and end tokens are hidden, so rows may sum to less than 1.": [
    "Token đầu và cuối bị ẩn, nên tổng hàng có thể nhỏ hơn 1.",
    "起止词元已隐藏，因此一行之和可小于 1。",
  ],
  "Output positions are labeled by the word generated there; a query reads only earlier positions.": [
    "Vị trí đầu ra mang tên từ được sinh ra ở đó; truy vấn chỉ đọc các vị trí trước.",
    "输出位置以在该处生成的词命名；查询只读先前的位置。",
  ],
  "✎: edited weights.": ["✎: trọng số đã sửa.", "✎：修改过的权重。"],
  "This model has no attention, so there are no weights to show. Walk shows its output words.": [
    "Mô hình này không có chú ý nên không có trọng số để hiện. Từng bước cho thấy các từ đầu ra.",
    "此模型没有注意力，因此没有权重可显示。“逐步”显示其输出词。",
  ],

  // Walk
  Score: ["Điểm", "得分"],
  Softmax: ["Softmax", "Softmax"],
  Context: ["Ngữ cảnh", "上下文"],
  Combine: ["Kết hợp", "合并"],
  Word: ["Từ", "词"],
  Compare: ["So sánh", "比较"],
  Item: ["Mục", "物品"],
  Label: ["Nhãn", "标签"],
  Step: ["Bước", "步"],
  Uniform: ["Đều", "均匀"],
  "Smoothed softmax": ["Softmax làm trơn", "平滑 softmax"],
  Sparsemax: ["Sparsemax", "Sparsemax"],
  Entmax: ["Entmax", "Entmax"],
  Playback: ["Phát lại", "播放"],
  "Previous word": ["Từ trước", "上一个词"],
  "One step back": ["Lùi một bước", "后退一步"],
  "One step forward": ["Tiến một bước", "前进一步"],
  "Next word": ["Từ sau", "下一个词"],
  Play: ["Phát", "播放"],
  Pause: ["Tạm dừng", "暂停"],
  Speed: ["Tốc độ", "速度"],
  "How well does each {noun} {match}?": ["Mỗi {noun} {match} đến mức nào?", "每个{noun}{match}如何？"],
  "Scores, one per {noun}": ["Điểm, mỗi {noun} một điểm", "得分，每个{noun}一个"],
  "key of {position}": ["khóa của {position}", "{position}的键"],
  "Recomputed from the model's parameters when recorded: largest difference {difference}": [
    "Đã tính lại từ tham số mô hình khi ghi: sai khác lớn nhất {difference}",
    "记录时由模型参数重算：最大差异 {difference}",
  ],
  "Scores become attention weights, one per {noun}.": [
    "Điểm trở thành trọng số chú ý, mỗi {noun} một trọng số.",
    "得分变成注意力权重，每个{noun}一个。",
  ],
  "Scores are shown relative to the largest, {shift}: same weights.": [
    "Điểm được hiện so với điểm lớn nhất, {shift}: trọng số như nhau.",
    "得分相对最大值 {shift} 显示：权重相同。",
  ],
  "Weights, one per {noun}": ["Trọng số, mỗi {noun} một số", "权重，每个{noun}一个"],
  "✎ Edited at this step: not compared with the scores.": [
    "✎ Đã sửa ở bước này: không so với điểm.",
    "✎ 此步已修改：不与得分比较。",
  ],
  "This trace has no scores to recompute the weights from.": [
    "Bản ghi này không có điểm để tính lại trọng số.",
    "此记录没有可用来重算权重的得分。",
  ],
  "The sum of the values, one per {noun}, times their weights.": [
    "Tổng các giá trị, mỗi {noun} một giá trị, nhân với trọng số.",
    "各{noun}的值乘以权重之和。",
  ],
  "v: value vectors, scaled by their weights; none drawn under 1 %.": [
    "v: vectơ giá trị, nhân với trọng số; dưới 1 % không vẽ.",
    "v：值向量，按权重缩放；小于 1 % 不画。",
  ],
  "Values times their weights": ["Giá trị nhân trọng số", "值乘以权重"],
  "The rest of the model follows: this trace records its attention only.": [
    "Tiếp theo là phần còn lại của mô hình: bản ghi này chỉ có chú ý.",
    "之后是模型的其余部分：此记录只含注意力。",
  ],
  "This trace does not have the context.": ["Bản ghi này không có ngữ cảnh.", "此记录没有上下文。"],
  "This trace has weights only. Record it with --detail steps (or full, for every site) to see these numbers.":
    [
      "Bản ghi này chỉ có trọng số. Hãy ghi với --detail steps (hoặc full, cho mọi vị trí) để xem các số này.",
      "此记录只有权重。用 --detail steps（或 full，所有位置）记录即可看到这些数字。",
    ],
  "recomputed: the same to {difference}": [
    "tính lại: giống nhau đến {difference}",
    "重算：相差不超过 {difference}",
  ],
  "recomputed, does not agree: largest difference {difference}": [
    "tính lại, không khớp: sai khác lớn nhất {difference}",
    "重算不一致：最大差异 {difference}",
  ],
  "This trace does not have the scores.": ["Bản ghi này không có điểm.", "此记录没有得分。"],
  "Every {noun} gets a score for how well it matches the query; {best} has the highest, {score}.": [
    "Mỗi {noun} nhận một điểm cho mức khớp với truy vấn; {best} cao nhất, {score}.",
    "每个{noun}按与查询的匹配程度得分；{best}最高，{score}。",
  ],
  "These weights were edited; {top} has {share}.": [
    "Các trọng số này đã được sửa; {top} có {share}.",
    "这些权重已修改；{top}占 {share}。",
  ],
  "Scores become weights; {top} gets {share}.": [
    "Điểm trở thành trọng số; {top} nhận {share}.",
    "得分变成权重；{top}得到 {share}。",
  ],
  "The context is the sum of the values of all {nouns} times their weights, mostly that of {top}.": [
    "Ngữ cảnh là tổng giá trị của mọi {nouns} nhân trọng số, chủ yếu của {top}.",
    "上下文是所有{nouns}的值乘权重之和，主要来自{top}。",
  ],
  "{word} has a probability of {probability}.": [
    "{word} có xác suất {probability}.",
    "{word}的概率为 {probability}。",
  ],
  "{word} is generated; the trace does not have other candidates.": [
    "{word} được sinh ra; bản ghi không có ứng viên khác.",
    "生成{word}；记录中没有其他候选。",
  ],
  "the most likely {output}": ["{output} có khả năng nhất", "最可能的{output}"],
  "number {n} by probability": ["thứ {n} theo xác suất", "概率第 {n}"],
  "{word} comes next in the text: {rank}, with a probability of {probability} ({bits} bits).": [
    "{word} đến tiếp trong văn bản: {rank}, với xác suất {probability} ({bits} bit).",
    "文中接着是{word}：{rank}，概率 {probability}（{bits} 比特）。",
  ],
  "{word} was forced: {rank}, with a probability of {probability}.": [
    "{word} bị ép: {rank}, với xác suất {probability}.",
    "{word}是强制的：{rank}，概率 {probability}。",
  ],
  "{word} is the prediction: {rank}, with a probability of {probability}.": [
    "{word} là dự đoán: {rank}, với xác suất {probability}.",
    "预测为{word}：{rank}，概率 {probability}。",
  ],
  "{word} is generated: {rank}, with a probability of {probability}.": [
    "{word} được sinh ra: {rank}, với xác suất {probability}.",
    "生成{word}：{rank}，概率 {probability}。",
  ],
  "No site of this trace has one query per output word; Alignment shows its sites. Here are the output words and their most likely alternatives.":
    [
      "Không vị trí chú ý nào của bản ghi này có một truy vấn cho mỗi từ đầu ra; Gióng hàng cho thấy các vị trí đó. Đây là các từ đầu ra và những lựa chọn có khả năng nhất.",
      "此记录没有每个输出词一个查询的位置；“对齐”显示其位置。这里是输出词及其最可能的替代。",
    ],
  "This model has no attention over its input. Here are the output words and their most likely alternatives.":
    [
      "Mô hình này không có chú ý trên đầu vào. Đây là các từ đầu ra và những lựa chọn có khả năng nhất.",
      "此模型对输入没有注意力。这里是输出词及其最可能的替代。",
    ],
  "c is the context of the last layer, all heads projected together; the other lanes may show another site.":
    [
      "c là ngữ cảnh của tầng cuối, mọi đầu được chiếu chung; các cột khác có thể hiện vị trí khác.",
      "c 是最后一层的上下文，所有头一起投影；其他栏可能显示另一位置。",
    ],
  "c: the contexts of all heads, projected together.": [
    "c: ngữ cảnh của mọi đầu, được chiếu chung.",
    "c：所有头的上下文，一起投影。",
  ],
  "Of all {n} features, number {index} counts most here.": [
    "Trong {n} đặc trưng, số {index} quan trọng nhất ở đây.",
    "在全部 {n} 个特征中，第 {index} 个在此最重要。",
  ],
  "Copying: {share} of the probability is distributed over input words by the weights of “copy”.": [
    "Sao chép: {share} xác suất được phân cho các từ đầu vào theo trọng số của “copy”.",
    "复制：{share} 的概率按“copy”的权重分配给输入词。",
  ],
  "Items of this trace": ["Các mục của bản ghi này", "此记录的物品"],
  "Independent probabilities: they do not sum to 1.": [
    "Các xác suất độc lập: tổng không bằng 1.",
    "相互独立的概率：其和不为 1。",
  ],
  "z: logits. O, with one row per {output}, and b are learned.": [
    "z: logit. O, mỗi {output} một hàng, và b được học.",
    "z：logit。O（每个{output}一行）和 b 是学得的。",
  ],
  "The softmax has two levels, for frequent and for rare words.": [
    "Softmax có hai mức, cho từ thường gặp và từ hiếm.",
    "softmax 有两级：常用词和罕用词。",
  ],
  "This trace does not have the most likely {outputs}.": [
    "Bản ghi này không có các {outputs} có khả năng nhất.",
    "此记录没有最可能的{outputs}。",
  ],
  "Most likely {outputs}": ["Các {outputs} có khả năng nhất", "最可能的{outputs}"],
  "Most likely {outputs} at step {n}": [
    "Các {outputs} có khả năng nhất ở bước {n}",
    "第 {n} 步最可能的{outputs}",
  ],
  "Most likely {outputs}, original": ["Các {outputs} có khả năng nhất, gốc", "最可能的{outputs}（原来）"],
  "Most likely {outputs}, edited": ["Các {outputs} có khả năng nhất, đã sửa", "最可能的{outputs}（修改后）"],
  "all other {outputs} together {rest}": ["mọi {outputs} khác cộng lại {rest}", "其他{outputs}合计 {rest}"],
  "Perplexity of this distribution: {perplexity}.": [
    "Độ hỗn loạn (perplexity) của phân phối này: {perplexity}.",
    "此分布的困惑度：{perplexity}。",
  ],
  "This {output} was forced, not chosen.": [
    "{output} này bị ép, không được chọn.",
    "此{output}是强制的，并非选出。",
  ],
  "Scores and weights of {word}": ["Điểm và trọng số của {word}", "{word}的得分和权重"],
  "{symbol} of {word}": ["{symbol} của {word}", "{word}的 {symbol}"],
  "{name} (read-out)": ["{name} (đầu đọc)", "{name}（读出层）"],
  "Vectors of {word}": ["Các vectơ của {word}", "{word}的向量"],
  "the residual": ["phần dư", "残差"],
  "the output of the gated linear unit": ["đầu ra của đơn vị tuyến tính có cổng", "门控线性单元的输出"],
  "the context": ["ngữ cảnh", "上下文"],
  "the features: inputs of the output matrix": [
    "các đặc trưng: đầu vào của ma trận đầu ra",
    "特征：输出矩阵的输入",
  ],

  // formulas
  "Q and K are this head's learned projections.": [
    "Q và K là các phép chiếu được học của đầu này.",
    "Q 和 K 是此头学得的投影。",
  ],
  "{letters} and v are learned.": ["{letters} và v được học.", "{letters} 和 v 是学得的。"],
  "C is the coverage: the sum of this word's weights so far.": [
    "C là độ phủ: tổng trọng số của từ này đến nay.",
    "C 是覆盖度：此词至今的权重之和。",
  ],
  "W and v are learned; [ ; ] concatenates.": [
    "W và v được học; [ ; ] là phép nối.",
    "W 和 v 是学得的；[ ; ] 表示拼接。",
  ],
  "The dot product of query and key.": ["Tích vô hướng của truy vấn và khóa.", "查询与键的点积。"],
  "d is the width of q: the root keeps scores of wide vectors from growing.": [
    "d là số chiều của q: căn bậc hai giữ cho điểm của vectơ rộng không tăng.",
    "d 是 q 的宽度：根号使宽向量的得分不会变大。",
  ],
  "W is learned.": ["W được học.", "W 是学得的。"],
  "W is learned; the score depends on the position, not on the input word.": [
    "W được học; điểm phụ thuộc vị trí, không phụ thuộc từ đầu vào.",
    "W 是学得的；得分取决于位置而非输入词。",
  ],
  "W, b and h are learned; ⊙ is the elementwise product.": [
    "W, b và h được học; ⊙ là tích từng phần tử.",
    "W、b 和 h 是学得的；⊙ 是逐元素乘积。",
  ],
  "W, b and h are learned; [ ; ] concatenates.": [
    "W, b và h được học; [ ; ] là phép nối.",
    "W、b 和 h 是学得的；[ ; ] 表示拼接。",
  ],
  "from {n} more": ["từ {n} số khác", "来自其余 {n} 项"],
  "from more": ["từ các số khác", "来自其余项"],
  "Exponentials, normalized to sum to 1.": ["Hàm mũ, chuẩn hóa để tổng bằng 1.", "取指数，归一化使和为 1。"],
  "β = {beta}: below 1 the weights are flatter and need not sum to 1.": [
    "β = {beta}: dưới 1 trọng số phẳng hơn và tổng không nhất thiết bằng 1.",
    "β = {beta}：小于 1 时权重更平，和不必为 1。",
  ],
  "τ is such that the weights sum to 1; scores below it get weight 0.": [
    "τ sao cho tổng trọng số bằng 1; điểm dưới τ nhận trọng số 0.",
    "τ 使权重之和为 1；低于它的得分权重为 0。",
  ],
  "A baseline: all n keys get the same weight, whatever the scores.": [
    "Mốc so sánh: cả n khóa nhận cùng trọng số, bất kể điểm.",
    "基线：无论得分如何，n 个键权重相同。",
  ],
  "Only positions within {window} of the output position get a weight.": [
    "Chỉ các vị trí trong khoảng {window} quanh vị trí đầu ra có trọng số.",
    "只有距输出位置 {window} 以内的位置有权重。",
  ],
  "Only positions within {window} of p, a position that the model predicts, get a weight, scaled by a Gaussian; then they are renormalized.":
    [
      "Chỉ các vị trí trong khoảng {window} quanh p, vị trí mô hình dự đoán, có trọng số, nhân với hàm Gauss; rồi chuẩn hóa lại.",
      "只有距模型预测的位置 p 在 {window} 以内的位置有权重，乘以高斯函数；然后重新归一化。",
    ],
  "Only positions within {window} of p, a position that the model predicts, get a weight, scaled by a Gaussian; so they may sum to less than 1.":
    [
      "Chỉ các vị trí trong khoảng {window} quanh p, vị trí mô hình dự đoán, có trọng số, nhân với hàm Gauss; nên tổng có thể nhỏ hơn 1.",
      "只有距模型预测的位置 p 在 {window} 以内的位置有权重，乘以高斯函数；因此和可小于 1。",
    ],
  "Then one position is sampled from these weights, and gets all of the weight.": [
    "Rồi một vị trí được lấy mẫu theo các trọng số này và nhận toàn bộ trọng số.",
    "然后按这些权重采样一个位置，它得到全部权重。",
  ],
  "Then the position with the largest weight is taken, and gets all of the weight.": [
    "Rồi vị trí có trọng số lớn nhất được chọn và nhận toàn bộ trọng số.",
    "然后取权重最大的位置，它得到全部权重。",
  ],
  "q: the embedding of the recommended item. b is its learned bias.": [
    "q: vectơ nhúng của mục được gợi ý. b là độ lệch được học của nó.",
    "q：推荐物品的嵌入。b 是其学得的偏置。",
  ],
  "The features of the text.": ["Các đặc trưng của văn bản.", "文本的特征。"],
  "The features of the text are the context.": [
    "Các đặc trưng của văn bản chính là ngữ cảnh.",
    "文本的特征就是上下文。",
  ],
  "An LSTM step whose previous state h̃ and memory m̃ are read from the tape. The gates i, f, o and the update g are computed from h̃ and the word just read.":
    [
      "Một bước LSTM với trạng thái trước h̃ và bộ nhớ m̃ đọc từ băng. Các cổng i, f, o và cập nhật g được tính từ h̃ và từ vừa đọc.",
      "一步 LSTM，其先前状态 h̃ 和记忆 m̃ 从带上读取。门 i、f、o 和更新 g 由 h̃ 和刚读的词算出。",
    ],
  "P projects to the width of the embeddings.": [
    "P chiếu về số chiều của vectơ nhúng.",
    "P 投影到嵌入的宽度。",
  ],
  "The context c is added to the residual r. feed is the feed-forward network, norm is layer normalization.":
    [
      "Ngữ cảnh c được cộng vào phần dư r. feed là mạng truyền thẳng, norm là chuẩn hóa tầng.",
      "上下文 c 加到残差 r。feed 是前馈网络，norm 是层归一化。",
    ],
  "The context c is added to the output g of the gated linear unit and to the residual r; each root keeps the variance of a sum. A, a, W and b are learned.":
    [
      "Ngữ cảnh c được cộng vào đầu ra g của đơn vị tuyến tính có cổng và phần dư r; mỗi căn giữ phương sai của tổng. A, a, W và b được học.",
      "上下文 c 加到门控线性单元的输出 g 和残差 r；每个根号保持和的方差。A、a、W 和 b 是学得的。",
    ],
  "y: the embeddings of the last words. H and b are learned; [ ; ] concatenates.": [
    "y: vectơ nhúng của các từ cuối. H và b được học; [ ; ] là phép nối.",
    "y：最后几个词的嵌入。H 和 b 是学得的；[ ; ] 表示拼接。",
  ],
  "P and p project to the width of the embeddings.": [
    "P và p chiếu về số chiều của vectơ nhúng.",
    "P 和 p 投影到嵌入的宽度。",
  ],
  "State and context, concatenated.": ["Trạng thái và ngữ cảnh, nối lại.", "状态与上下文拼接。"],
  "The decoder's state.": ["Trạng thái của bộ giải mã.", "解码器的状态。"],
  "W is learned; [ ; ] concatenates.": ["W được học; [ ; ] là phép nối.", "W 是学得的；[ ; ] 表示拼接。"],
  "W and b are learned; [ ; ] concatenates.": [
    "W và b được học; [ ; ] là phép nối.",
    "W 和 b 是学得的；[ ; ] 表示拼接。",
  ],
  "W and b are learned.": ["W và b được học.", "W 和 b 是学得的。"],
  "y: the embedding of the previous word. L and b are learned.": [
    "y: vectơ nhúng của từ trước. L và b được học.",
    "y：前一个词的嵌入。L 和 b 是学得的。",
  ],
  "y: the embedding of the previous word. L and b are learned; c is after the gate, if there is one.": [
    "y: vectơ nhúng của từ trước. L và b được học; c là sau cổng, nếu có.",
    "y：前一个词的嵌入。L 和 b 是学得的；c 在门之后（若有）。",
  ],
  "y: the embedding of the previous word. L and b are learned; max is over pairs of numbers (maxout).": [
    "y: vectơ nhúng của từ trước. L và b được học; max lấy theo từng cặp số (maxout).",
    "y：前一个词的嵌入。L 和 b 是学得的；max 取自成对的数（maxout）。",
  ],
  "the recommended item": ["mục được gợi ý", "推荐的物品"],
  "the encoder's final state": ["trạng thái cuối của bộ mã hóa", "编码器的最终状态"],
  "a learned vector": ["một vectơ được học", "一个学得的向量"],
  "the word just read": ["từ vừa đọc", "刚读的词"],
  "the decoder's hidden state": ["trạng thái ẩn của bộ giải mã", "解码器的隐藏状态"],
  "the embeddings of the last words": ["vectơ nhúng của các từ cuối", "最后几个词的嵌入"],
  "the query": ["truy vấn", "查询"],
  "the decoder's previous state": ["trạng thái trước của bộ giải mã", "解码器的前一状态"],
  "the decoder's state": ["trạng thái của bộ giải mã", "解码器的状态"],

  // What-if of a recorded trace
  "This model has no attention, so there are no weights to change.": [
    "Mô hình này không có chú ý nên không có trọng số để thay đổi.",
    "此模型没有注意力，因此没有权重可改。",
  ],
  "This trace has no counterfactuals, which are computed for short texts only. Record it with {command}.": [
    "Bản ghi này không có phản thực, vốn chỉ được tính cho văn bản ngắn. Hãy ghi với {command}.",
    "此记录没有反事实（只对短文本计算）。请用 {command} 记录。",
  ],
  "the change of the item's probability by the edit": [
    "thay đổi xác suất của mục do sửa đổi",
    "修改引起的物品概率变化",
  ],
  "the total variation distance between the output distributions with and without the edit (0: no change; 1: everything changes)":
    [
      "khoảng cách biến phân toàn phần giữa phân phối đầu ra có và không có sửa đổi (0: không đổi; 1: đổi hết)",
      "有无修改时输出分布的总变差距离（0：不变；1：全变）",
    ],
  "Earlier words stay the same.": ["Các từ trước giữ nguyên.", "先前的词不变。"],
  Edit: ["Sửa đổi", "修改"],
  "all weight on it": ["dồn hết trọng số", "全部权重给它"],
  "no weight on it": ["bỏ hết trọng số", "不给它权重"],
  "What if {subject} attended to one {noun} only?": [
    "Nếu {subject} chỉ chú ý đến một {noun} thì sao?",
    "如果{subject}只关注一个{noun}会怎样？",
  ],
  "What if {subject} did not attend to one {noun}?": [
    "Nếu {subject} không chú ý đến một {noun} thì sao?",
    "如果{subject}不关注某个{noun}会怎样？",
  ],
  "Each number is {change}.": ["Mỗi số là {change}.", "每个数字是{change}。"],
  "The brightness of a region is {change}.": ["Độ sáng của một vùng là {change}.", "区域的亮度是{change}。"],
  "Choose a cell to see the most likely outputs.": [
    "Chọn một ô để xem các đầu ra có khả năng nhất.",
    "选择一格可查看最可能的输出。",
  ],
  "Choose a region to see the most likely outputs.": [
    "Chọn một vùng để xem các đầu ra có khả năng nhất.",
    "选择一个区域可查看最可能的输出。",
  ],
  "Words of the caption": ["Các từ của chú thích", "描述中的词"],
  "The image, bright where the edit changes most": [
    "Hình ảnh, sáng ở nơi sửa đổi tác động nhiều nhất",
    "图像，修改影响最大处最亮",
  ],
  "Change of the output distribution": ["Thay đổi của phân phối đầu ra", "输出分布的变化"],
  "{input} is masked.": ["{input} bị che.", "{input}被屏蔽。"],
  "With all weight on {input}": ["Khi dồn hết trọng số vào {input}", "把全部权重给{input}时"],
  "Without weight on {input}": ["Khi {input} không có trọng số", "不给{input}权重时"],
  "the probability of {word} would be {after} instead of {before}.": [
    "xác suất của {word} sẽ là {after} thay vì {before}.",
    "{word}的概率将是 {after} 而非 {before}。",
  ],
  "the most likely {output} would be {after} instead of {before}.": [
    "{output} có khả năng nhất sẽ là {after} thay vì {before}.",
    "最可能的{output}将是{after}而非{before}。",
  ],
  "the most likely {output} would still be {after}.": [
    "{output} có khả năng nhất vẫn là {after}.",
    "最可能的{output}仍是{after}。",
  ],
  "Change of the probability:": ["Thay đổi xác suất:", "概率变化："],
  "Total variation distance:": ["Khoảng cách biến phân toàn phần:", "总变差距离："],
  "{share} of the probability moves": ["{share} xác suất dịch chuyển", "{share} 的概率发生移动"],

  // header and footer
  "Attention trace": ["Bản ghi chú ý", "注意力记录"],
  Text: ["Văn bản", "文本"],
  Input: ["Đầu vào", "输入"],
  Output: ["Đầu ra", "输出"],
  Reference: ["Tham chiếu", "参考"],
  "Edited: {edits}.": ["Đã sửa: {edits}.", "已修改：{edits}。"],
  "Weights show where the model attended. They do not explain why {caveat}.": [
    "Trọng số cho thấy mô hình chú ý vào đâu. Chúng không giải thích vì sao {caveat}.",
    "权重显示模型关注何处，并不解释为什么{caveat}。",
  ],
  "Numbers of this file do not agree with each other; see the end of the page.": [
    "Các số trong tệp này không khớp nhau; xem cuối trang.",
    "此文件中的数字互不一致；见页末。",
  ],
  "the most likely label": ["nhãn có khả năng nhất", "最可能的标签"],
  "greedy decoding": ["giải mã tham lam", "贪心解码"],
  "beam search": ["tìm kiếm chùm", "束搜索"],
  "beam search, beam size {n}": ["tìm kiếm chùm, cỡ chùm {n}", "束搜索，束宽 {n}"],
  sampling: ["lấy mẫu", "采样"],
  "reads the text word by word": ["đọc văn bản từng từ", "逐词阅读文本"],
  "forced decoding: the output was given": ["giải mã ép buộc: đầu ra cho trước", "强制解码：输出已给定"],
  "items ranked by score": ["các mục xếp theo điểm", "按得分排列的物品"],
  "No attention: there are no weights to recompute.": [
    "Không có chú ý: không có trọng số để tính lại.",
    "没有注意力：没有权重可重算。",
  ],
  "Recomputing …": ["Đang tính lại …", "正在重算……"],
  "This trace has nothing to recompute.": [
    "Bản ghi này không có gì để tính lại.",
    "此记录没有可重算的内容。",
  ],
  "scores from their terms": ["điểm từ các số hạng", "由各项算得的得分"],
  "weights from the scores": ["trọng số từ điểm", "由得分算得的权重"],
  "contexts from the weights": ["ngữ cảnh từ trọng số", "由权重算得的上下文"],
  "sum of weights": ["tổng trọng số", "权重之和"],
  "sums of weights": ["tổng trọng số", "权重之和"],
  "Every {kinds} on this page was recomputed here from the recorded numbers and matches.": [
    "Mọi {kinds} trên trang này đã được tính lại tại đây từ các số đã ghi và khớp.",
    "本页的每个{kinds}都已由记录的数字在此重算，结果一致。",
  ],
  "This page recomputed every {kinds}, and does not agree with the file.": [
    "Trang này đã tính lại mọi {kinds} và không khớp với tệp.",
    "本页重算了每个{kinds}，与文件不一致。",
  ],
  "Largest difference": ["Sai khác lớn nhất", "最大差异"],
  "sums of the rows of weights": ["tổng các hàng trọng số", "权重各行之和"],
  "weights recomputed from scores": ["trọng số tính lại từ điểm", "由得分重算的权重"],
  "contexts recomputed from weights": ["ngữ cảnh tính lại từ trọng số", "由权重重算的上下文"],
  "scores recomputed from the model's parameters": [
    "điểm tính lại từ tham số mô hình",
    "由模型参数重算的得分",
  ],
  "features recomputed from the model's parameters": [
    "đặc trưng tính lại từ tham số mô hình",
    "由模型参数重算的特征",
  ],
  "log-probabilities recomputed from the model's parameters": [
    "log xác suất tính lại từ tham số mô hình",
    "由模型参数重算的对数概率",
  ],
  "every greedy choice is the most likely word": [
    "mọi lựa chọn tham lam là từ có khả năng nhất",
    "每次贪心选择都是最可能的词",
  ],
  "weights differ between steps": ["trọng số khác nhau giữa các bước", "各步权重不同"],
  "1 check when recorded: passed": ["1 phép kiểm khi ghi: đạt", "记录时 1 项检查：通过"],
  "{n} checks when recorded: all passed": ["{n} phép kiểm khi ghi: đạt hết", "记录时 {n} 项检查：全部通过"],
  "Checks when recorded: {failed} of {n} failed": [
    "Phép kiểm khi ghi: {failed} trên {n} không đạt",
    "记录时的检查：{n} 项中 {failed} 项未通过",
  ],

  // History
  "score with it minus score without it": ["điểm khi có trừ điểm khi không có", "有它与没有它的得分之差"],
  "The input of this trace is not a history.": [
    "Đầu vào của bản ghi này không phải lịch sử.",
    "此记录的输入不是历史。",
  ],
  "History items for {item}": ["Các mục lịch sử cho {item}", "{item}的历史物品"],
  "Recommended items, best first": ["Các mục được gợi ý, tốt nhất trước", "推荐的物品，最好的在前"],
  "The history is empty.": ["Lịch sử trống.", "历史为空。"],
  "{item} has the largest weight, {weight}.": [
    "{item} có trọng số lớn nhất, {weight}.",
    "{item}的权重最大，{weight}。",
  ],
  "{item} has the largest effect: without it the score would be {amount} lower.": [
    "{item} có tác động lớn nhất: không có nó điểm sẽ thấp hơn {amount}.",
    "{item}影响最大：没有它得分会低 {amount}。",
  ],
  "{item} has the largest effect: without it the score would be {amount} higher.": [
    "{item} có tác động lớn nhất: không có nó điểm sẽ cao hơn {amount}.",
    "{item}影响最大：没有它得分会高 {amount}。",
  ],
  "The weights need not sum to 1.": ["Tổng trọng số không nhất thiết bằng 1.", "权重之和不必为 1。"],
  "The history has {n} items; their order does not matter.": [
    "Lịch sử có {n} mục; thứ tự không quan trọng.",
    "历史有 {n} 个物品；顺序无关紧要。",
  ],
  "Items of the history, largest effect first": [
    "Các mục lịch sử, tác động lớn nhất trước",
    "历史物品，影响最大的在前",
  ],
  "{n} more items with smaller effects are in the table.": [
    "{n} mục nữa với tác động nhỏ hơn nằm trong bảng.",
    "另有 {n} 个影响较小的物品在表格中。",
  ],
  "Effect of {item}": ["Tác động của {item}", "{item}的影响"],
  "Weight of {item}": ["Trọng số của {item}", "{item}的权重"],
  "Recommended items, largest effect first": [
    "Các mục được gợi ý, tác động lớn nhất trước",
    "推荐的物品，影响最大的在前",
  ],
  "Every item of the history": ["Mọi mục của lịch sử", "历史的全部物品"],

  // Photo
  "The input of this trace is not an image.": [
    "Đầu vào của bản ghi này không phải hình ảnh.",
    "此记录的输入不是图像。",
  ],
  "This model has no attention over the regions of the image.": [
    "Mô hình này không có chú ý trên các vùng của hình ảnh.",
    "此模型对图像区域没有注意力。",
  ],
  "Attention for {word}": ["Chú ý cho {word}", "{word}的注意力"],
  "The image, bright where the word attends": ["Hình ảnh, sáng ở nơi từ chú ý đến", "图像，该词关注处最亮"],
  "The selected region ({place}) has {share}.": [
    "Vùng được chọn ({place}) có {share}.",
    "所选区域（{place}）占 {share}。",
  ],
  "For {word} the largest weight is that of {place}: {share}. The grid is the model's, {rows} by {columns}, without smoothing.":
    [
      "Với {word} trọng số lớn nhất là của {place}: {share}. Lưới là của mô hình, {rows} nhân {columns}, không làm trơn.",
      "对{word}，{place}的权重最大：{share}。网格是模型自己的，{rows} × {columns}，未平滑。",
    ],
  "Words that attend to this region ({place})": [
    "Các từ chú ý đến vùng này ({place})",
    "关注此区域的词（{place}）",
  ],
  "Words that attend to the region, largest weight first": [
    "Các từ chú ý đến vùng, trọng số lớn nhất trước",
    "关注该区域的词，权重最大的在前",
  ],
  "Weights of each region for each word": ["Trọng số của mỗi vùng cho mỗi từ", "每个区域对每个词的权重"],

  // Heads and Beam
  Write: ["Viết", "书写"],
  Heads: ["Các đầu", "注意力头"],
  Beam: ["Chùm", "束"],
  Classify: ["Phân loại", "分类"],
  Read: ["Đọc", "阅读"],
  Train: ["Huấn luyện", "训练"],
  Lesson: ["Bài học", "课堂"],
  "This model has no attention, so it has no heads.": [
    "Mô hình này không có chú ý nên không có đầu nào.",
    "此模型没有注意力，因此没有头。",
  ],
  "fold attention sinks": ["gập các đầu chú ý vào token đặc biệt", "折叠注意力汇"],
  "Every head of every layer: {n} in all": [
    "Mọi đầu của mọi tầng: tổng cộng {n}",
    "每一层的每个头：共 {n} 个",
  ],
  "Rows are queries, columns are keys, as in Alignment. Choose a head to see it there.": [
    "Hàng là truy vấn, cột là khóa, như trong Gióng hàng. Chọn một đầu để xem ở đó.",
    "行是查询，列是键，与“对齐”相同。选择一个头即可在那里查看。",
  ],
  "{n} heads with more than half of their weight on start and end tokens are folded.": [
    "{n} đầu có hơn nửa trọng số ở token đầu và cuối đã được gập.",
    "{n} 个头有一半以上权重在起止词元上，已折叠。",
  ],
  "All heads of this site are folded.": ["Mọi đầu của vị trí này đã được gập.", "此位置的所有头都已折叠。"],
  "{site}, head {head}: mean entropy {entropy} bits": [
    "{site}, đầu {head}: entropy trung bình {entropy} bit",
    "{site}，头 {head}：平均熵 {entropy} 比特",
  ],
  "{n} bits": ["{n} bit", "{n} 比特"],
  "Every head": ["Mọi đầu", "每个头"],
  head: ["đầu", "头"],
  "mean entropy, bits": ["entropy trung bình, bit", "平均熵（比特）"],
  "weight on start and end tokens": ["trọng số ở token đầu và cuối", "起止词元上的权重"],
  continued: ["được nối tiếp", "继续"],
  pruned: ["bị loại", "剪除"],
  finished: ["hoàn tất", "完成"],
  "This trace has no beam. Beam search with a size of at least 2 records one.": [
    "Bản ghi này không có chùm. Tìm kiếm chùm với cỡ từ 2 trở lên sẽ ghi lại.",
    "此记录没有束。束宽至少为 2 的束搜索会记录它。",
  ],
  "This tree has {n} nodes, too many to draw.": [
    "Cây này có {n} nút, quá nhiều để vẽ.",
    "此树有 {n} 个节点，过多而无法绘制。",
  ],
  "Hypotheses of the beam, {n} wide": ["Các giả thuyết của chùm, rộng {n}", "束的假设，宽 {n}"],
  "Every column is a step. Line width: probability of the token. ×: pruned, ■: finished. Choose a hypothesis to read it.":
    [
      "Mỗi cột là một bước. Độ dày nét: xác suất của token. ×: bị loại, ■: hoàn tất. Chọn một giả thuyết để đọc.",
      "每列是一步。线宽：词元概率。×：剪除，■：完成。选择一个假设即可阅读。",
    ],
  "{token}, step {n}: probability {probability}, {state}": [
    "{token}, bước {n}: xác suất {probability}, {state}",
    "{token}，第 {n} 步：概率 {probability}，{state}",
  ],
  "{state} at step {n} · log-probability {logp} · this token {probability}": [
    "{state} ở bước {n} · log xác suất {logp} · token này {probability}",
    "第 {n} 步{state} · 对数概率 {logp} · 此词元 {probability}",
  ],
  "Force this branch": ["Ép nhánh này", "强制此分支"],
  "Open its Walk": ["Mở Từng bước của nó", "打开其“逐步”"],
  "Every hypothesis": ["Mọi giả thuyết", "每个假设"],
  hypothesis: ["giả thuyết", "假设"],
  step: ["bước", "步"],
  state: ["trạng thái", "状态"],
  "log-probability of all tokens": ["log xác suất của mọi token", "所有词元的对数概率"],

  // studio: frame
  Model: ["Mô hình", "模型"],
  model: ["mô hình", "模型"],
  Translate: ["Dịch", "翻译"],
  Summarize: ["Tóm tắt", "摘要"],
  Reply: ["Trả lời", "回复"],
  Transduce: ["Chuyển đổi", "转换"],
  "Caption pictures": ["Chú thích ảnh", "描述图片"],
  "Classify texts": ["Phân loại văn bản", "文本分类"],
  "Read and predict": ["Đọc và dự đoán", "阅读与预测"],
  Recommend: ["Gợi ý", "推荐"],
  "Type a sentence": ["Gõ một câu", "输入一个句子"],
  "Type a text to classify": ["Gõ một văn bản để phân loại", "输入要分类的文本"],
  "Type a text to read": ["Gõ một văn bản để đọc", "输入要阅读的文本"],
  "Try:": ["Thử:", "试试："],
  "Working …": ["Đang làm việc …", "正在计算……"],
  "{n} ms after the last key": ["{n} ms sau phím cuối", "最后按键后 {n} 毫秒"],
  "The server does not answer. Nothing is lost: this page goes on as soon as it is back.": [
    "Máy chủ không trả lời. Không mất gì cả: trang sẽ tiếp tục ngay khi máy chủ trở lại.",
    "服务器没有响应。内容不会丢失：服务器恢复后本页立即继续。",
  ],
  "Save this page": ["Lưu trang này", "保存本页"],

  // Write
  "What if it had looked elsewhere?": ["Nếu nó nhìn chỗ khác thì sao?", "如果它看别处会怎样？"],
  "“{word}” looked mostly at “{key}”: {share} of its attention.": [
    "“{word}” chủ yếu nhìn “{key}”: {share} sự chú ý.",
    "“{word}”主要看“{key}”：占其注意力的 {share}。",
  ],
  "Weights by words": ["Trọng số theo từ", "按词的权重"],
  "The beginning “{prefix}” is kept; the model wrote the rest.": [
    "Phần đầu “{prefix}” được giữ; mô hình viết phần còn lại.",
    "开头“{prefix}”保留；其余由模型写出。",
  ],
  "Let the model choose again": ["Để mô hình chọn lại", "让模型重新选择"],
  "Instead of “{word}”": ["Thay cho “{word}”", "代替“{word}”"],
  "Pieces of the word": ["Các mảnh của từ", "词的各部分"],
  "Force “{token}”, probability {probability}": [
    "Ép “{token}”, xác suất {probability}",
    "强制“{token}”，概率 {probability}",
  ],
  "Choose one: everything before it stays, the model writes the rest again.": [
    "Chọn một: mọi thứ trước nó giữ nguyên, mô hình viết lại phần còn lại.",
    "选择一个：之前的内容保留，其余由模型重写。",
  ],
  "(end)": ["(hết)", "（结束）"],
  "Best outputs of the beam": ["Các đầu ra tốt nhất của chùm", "束的最佳输出"],
  "score: mean log-probability per token, as the search ranks it": [
    "điểm: log xác suất trung bình mỗi token, như tìm kiếm xếp hạng",
    "得分：每词元平均对数概率，搜索按此排序",
  ],
  "Choose one to see where its words looked.": [
    "Chọn một để xem các từ của nó nhìn đâu.",
    "选择一个，看它的词看向何处。",
  ],

  // What-if, live
  "History of changes": ["Lịch sử thay đổi", "修改历史"],
  Undo: ["Hoàn tác", "撤销"],
  Redo: ["Làm lại", "重做"],
  "Start over": ["Bắt đầu lại", "重新开始"],
  "Output before and after the change": ["Đầu ra trước và sau thay đổi", "修改前后的输出"],
  now: ["bây giờ", "现在"],
  "Choose a word of the output, then drag one of its bars: the model writes again with your weight.": [
    "Chọn một từ của đầu ra, rồi kéo một thanh: mô hình viết lại với trọng số của bạn.",
    "选择一个输出词，拖动它的一根条：模型会按你的权重重写。",
  ],
  "The output stays the same with your weights.": [
    "Đầu ra không đổi với trọng số của bạn.",
    "用你的权重，输出不变。",
  ],
  "Your weights changed 1 word.": ["Trọng số của bạn đã đổi 1 từ.", "你的权重改变了 1 个词。"],
  "Your weights changed {n} words.": ["Trọng số của bạn đã đổi {n} từ.", "你的权重改变了 {n} 个词。"],
  "Where “{word}” looks": ["“{word}” nhìn đâu", "“{word}”看向何处"],
  "Look everywhere equally": ["Nhìn đều mọi nơi", "平均地看各处"],
  "Try it: look only at “{word}”": ["Thử: chỉ nhìn “{word}”", "试试：只看“{word}”"],
  "Mask head {head}": ["Che đầu {head}", "屏蔽头 {head}"],
  "Drag a bar, or focus it and press the arrow keys. The other weights are rescaled; earlier words stay, later ones are written again.":
    [
      "Kéo một thanh, hoặc chọn nó rồi nhấn phím mũi tên. Các trọng số khác được chia lại; từ trước giữ nguyên, từ sau được viết lại.",
      "拖动一根条，或聚焦后按方向键。其他权重按比例调整；之前的词不变，之后的重写。",
    ],
  "Weight of “{word}”": ["Trọng số của “{word}”", "“{word}”的权重"],
  "No weight on “{word}” in any step": ["Không trọng số cho “{word}” ở mọi bước", "任何步都不给“{word}”权重"],
  "All weights: paint": ["Mọi trọng số: tô", "全部权重：涂画"],
  "Press a cell to give it all of the weight, or none if it has most; keep pressing and move to paint more.":
    [
      "Nhấn một ô để dồn hết trọng số, hoặc bỏ hết nếu nó đang có phần lớn; giữ và di chuyển để tô tiếp.",
      "按一格给它全部权重（若已占多数则清零）；按住移动可继续涂。",
    ],
  "Your changes": ["Các thay đổi của bạn", "你的修改"],
  "Take back {edit}": ["Bỏ {edit}", "撤回 {edit}"],
  "Copy the link": ["Sao chép liên kết", "复制链接"],

  // Compare
  "One input, several models": ["Một đầu vào, nhiều mô hình", "同一输入，多个模型"],
  "Point at a word: it is marked in every model. “Uniform” and “no attention” change the weights of a trained model; it is not trained again.":
    [
      "Trỏ vào một từ: nó được đánh dấu ở mọi mô hình. “Đều” và “không chú ý” đổi trọng số của mô hình đã huấn luyện; nó không được huấn luyện lại.",
      "指向一个词：每个模型中都会标出。“均匀”和“无注意力”改变已训练模型的权重，并不重新训练。",
    ],
  "as it was trained": ["như đã huấn luyện", "保持训练所得"],
  "uniform attention": ["chú ý đều", "均匀注意力"],
  "no attention": ["không chú ý", "无注意力"],
  "Model {n}": ["Mô hình {n}", "模型 {n}"],
  "Attention of model {n}": ["Chú ý của mô hình {n}", "模型 {n} 的注意力"],
  "Remove model {n}": ["Bỏ mô hình {n}", "移除模型 {n}"],
  "Add a model": ["Thêm mô hình", "添加模型"],
  "Mean probability per token: {p}": ["Xác suất trung bình mỗi token: {p}", "每词元平均概率：{p}"],
  "{n} words differ from the first": ["{n} từ khác với cái đầu", "与第一个相差 {n} 个词"],
  Outputs: ["Các đầu ra", "输出"],
  "mean log-probability per token": ["log xác suất trung bình mỗi token", "每词元平均对数概率"],

  // Classify, Read, Photo, History
  "The darker a word, the larger its weight. The weights show where the model looked, not why it decided.": [
    "Từ càng đậm, trọng số càng lớn. Trọng số cho thấy mô hình nhìn đâu, không phải vì sao nó quyết định.",
    "词越深，权重越大。权重显示模型看向何处，而非为何如此决定。",
  ],
  "{bits} bits in all; perplexity per token {perplexity}. Taller bars: more surprising words. Choose a word to see which earlier words its prediction looked at.":
    [
      "Tổng {bits} bit; perplexity mỗi token {perplexity}. Cột càng cao, từ càng bất ngờ. Chọn một từ để xem dự đoán của nó đã nhìn những từ trước nào.",
      "共 {bits} 比特；每词元困惑度 {perplexity}。条越高，词越出人意料。选择一个词，看预测它时看了哪些先前的词。",
    ],
  "{word}: {bits} bits": ["{word}: {bits} bit", "{word}：{bits} 比特"],
  bits: ["bit", "比特"],
  "Expected instead of “{word}”": ["Được chờ đợi thay cho “{word}”", "代替“{word}”的预期"],
  "Surprisal of every word": ["Độ bất ngờ của mỗi từ", "每个词的惊异度"],
  "weight for the chosen word": ["trọng số cho từ được chọn", "对所选词的权重"],
  Picture: ["Ảnh", "图片"],
  "Drop a picture here, paste one, or choose a file": [
    "Thả ảnh vào đây, dán, hoặc chọn tệp",
    "把图片拖到这里、粘贴或选择文件",
  ],
  "Another picture: drop, paste or choose it": [
    "Ảnh khác: thả, dán hoặc chọn",
    "另一张图片：拖放、粘贴或选择",
  ],
  "The picture stays on this machine. The captioner knows people, dogs and sports best.": [
    "Ảnh ở lại trên máy này. Mô hình biết rõ nhất người, chó và thể thao.",
    "图片留在本机。此模型最熟悉人、狗和运动。",
  ],
  "Paint over a part of the picture": ["Tô che một phần ảnh", "涂掉图片的一部分"],
  "Back to the original picture": ["Trở lại ảnh gốc", "恢复原图"],
  "Picture to paint over; keyboard: arrow keys move the brush, Space paints": [
    "Ảnh để tô; bàn phím: mũi tên di chuyển cọ, phím cách để tô",
    "可涂画的图片；键盘：方向键移动画笔，空格涂画",
  ],
  "Caption again": ["Chú thích lại", "重新描述"],
  Cancel: ["Hủy", "取消"],
  "Items of the history": ["Các mục của lịch sử", "历史中的物品"],
  "Search the catalog and add items to the history": [
    "Tìm trong danh mục và thêm vào lịch sử",
    "搜索目录并把物品加入历史",
  ],
  "Remove {item}": ["Bỏ {item}", "移除{item}"],

  // Lesson
  "This model has no attention over its input, so there is nothing to guess.": [
    "Mô hình này không có chú ý trên đầu vào nên không có gì để đoán.",
    "此模型对输入没有注意力，没有可猜的。",
  ],
  "Where did the model look when it wrote “{word}”?": [
    "Mô hình nhìn đâu khi viết “{word}”?",
    "模型写“{word}”时看向何处？",
  ],
  "Choose the input word that you expect to have the largest weight. Choose another output word to change the question.":
    [
      "Chọn từ đầu vào mà bạn nghĩ có trọng số lớn nhất. Chọn từ đầu ra khác để đổi câu hỏi.",
      "选择你认为权重最大的输入词。选择另一个输出词可换题。",
    ],
  "The ribbons show the weights of every word.": [
    "Các dải cho thấy trọng số của mọi từ.",
    "丝带显示每个词的权重。",
  ],
  "Right: “{word}” got {share}.": ["Đúng: “{word}” được {share}.", "正确：“{word}”占 {share}。"],
  "You chose “{guess}” with {guessed}; the largest weight is that of “{word}”: {share}.": [
    "Bạn chọn “{guess}” với {guessed}; trọng số lớn nhất là của “{word}”: {share}.",
    "你选了“{guess}”（{guessed}）；权重最大的是“{word}”：{share}。",
  ],
  "{right} of {all} right": ["đúng {right} trên {all}", "{all} 题答对 {right} 题"],

  // the faithfulness strip
  "Does this look matter?": ["Cái nhìn này có quan trọng không?", "这一眼重要吗？"],
  "as it is": ["như hiện tại", "原样"],
  "equal weights": ["trọng số đều", "均等权重"],
  "shuffled weights": ["trọng số xáo trộn", "打乱权重"],
  "For “{word}” the weights matter: in {n} of {all} tests another token becomes the most likely.": [
    "Với “{word}” trọng số quan trọng: trong {n} trên {all} phép thử, token khác trở thành có khả năng nhất.",
    "对“{word}”，权重重要：{all} 项检验中有 {n} 项使另一个词元成为最可能。",
  ],
  "For “{word}” the weights matter somewhat: its probability falls by up to {amount}.": [
    "Với “{word}” trọng số có phần quan trọng: xác suất giảm tới {amount}.",
    "对“{word}”，权重有些重要：其概率最多下降 {amount}。",
  ],
  "For “{word}” the weights hardly matter: the model would write it anyway.": [
    "Với “{word}” trọng số hầu như không quan trọng: mô hình vẫn sẽ viết nó.",
    "对“{word}”，权重几乎不重要：模型无论如何都会写它。",
  ],

  // Train
  "Watch attention being learned": ["Xem chú ý được học như thế nào", "观看注意力如何学成"],
  "training loss": ["mất mát huấn luyện", "训练损失"],
  "validation loss": ["mất mát kiểm định", "验证损失"],
  "quality (BLEU)": ["chất lượng (BLEU)", "质量（BLEU）"],
  "alignment error": ["lỗi gióng hàng", "对齐错误率"],
  "entropy of attention, bits": ["entropy của chú ý, bit", "注意力的熵（比特）"],
  "Every validation as a table": ["Mọi lần kiểm định dạng bảng", "每次验证的表格"],
  Validations: ["Các lần kiểm định", "验证"],
  "A world of sentences": ["Một thế giới câu", "句子的世界"],
  "Start training": ["Bắt đầu huấn luyện", "开始训练"],
  "Your own sentences": ["Câu của riêng bạn", "你自己的句子"],
  "Two columns separated by a tab: source and target, one pair per line": [
    "Hai cột cách nhau bằng tab: nguồn và đích, mỗi dòng một cặp",
    "两列以制表符分隔：源与目标，每行一对",
  ],
  "File with two columns": ["Tệp hai cột", "两列的文件"],
  "Train on them": ["Huấn luyện trên đó", "用它们训练"],
  Training: ["Huấn luyện", "训练"],
  training: ["đang huấn luyện", "训练中"],
  "stopped; it can go on": ["đã dừng; có thể tiếp tục", "已停止；可继续"],
  done: ["xong", "完成"],
  failed: ["thất bại", "失败"],
  "step {n} of {all}": ["bước {n} trên {all}", "第 {n} 步，共 {all} 步"],
  Stop: ["Dừng", "停止"],
  "Go on": ["Tiếp tục", "继续"],
  "Open the trained model": ["Mở mô hình đã huấn luyện", "打开训练好的模型"],
  "New training": ["Huấn luyện mới", "新的训练"],
  "Attention over the training": ["Chú ý qua quá trình huấn luyện", "训练过程中的注意力"],
  Sentence: ["Câu", "句子"],
  "Validation {n} of {all}, step {step}": [
    "Kiểm định {n} trên {all}, bước {step}",
    "第 {n} 次验证，共 {all} 次，第 {step} 步",
  ],
  "The weights of this validation are no longer kept.": [
    "Trọng số của lần kiểm định này không còn được giữ.",
    "此次验证的权重已不再保留。",
  ],
  "Move the slider to see the attention at each validation.": [
    "Kéo thanh trượt để xem chú ý ở mỗi lần kiểm định.",
    "移动滑块可查看每次验证时的注意力。",
  ],
  "Rings: true word alignment.": ["Vòng: gióng hàng từ đúng.", "圆环：真实词对齐。"],

  // opening
  "The model is being opened: a few seconds the first time.": [
    "Đang mở mô hình: lần đầu mất vài giây.",
    "正在打开模型：第一次需要几秒钟。",
  ],

  // the studio: changes, first steps, empty views, tests
  "Head {head} is masked": ["Đầu {head} bị che", "注意力头 {head} 已屏蔽"],
  "“{word}” → “{key}”: {value}": ["“{word}” → “{key}”: {value}", "“{word}” → “{key}”：{value}"],
  "No weight on “{key}”": ["Không có trọng số ở “{key}”", "“{key}”没有权重"],
  "“{word}” looks everywhere equally": ["“{word}” nhìn mọi nơi như nhau", "“{word}”均等地看各处"],
  "The link has them all: whoever opens it sees what you see.": [
    "Liên kết chứa tất cả: ai mở nó sẽ thấy những gì bạn thấy.",
    "链接包含全部更改：打开的人看到的与你相同。",
  ],
  "The same on the command line": ["Tương tự trên dòng lệnh", "在命令行中同样操作"],
  "(start)": ["(đầu)", "（开头）"],
  "no weight where it is largest": ["bỏ trọng số lớn nhất", "去掉最大的权重"],
  "with this region painted gray": ["vùng này bị tô xám", "把此区域涂灰"],
  "without this word in the input": ["đầu vào không có từ này", "输入中去掉此词"],
  "without this item in the history": ["lịch sử không có mục này", "历史中去掉此物品"],
  "Save as animation (GIF)": ["Lưu thành ảnh động (GIF)", "保存为动画（GIF）"],
  "Type a sentence, or take this one.": ["Gõ một câu, hoặc dùng câu này.", "输入一句话，或使用这一句。"],
  "Point at an output word: lines lead to what it looked at.": [
    "Trỏ vào một từ đầu ra: các đường dẫn đến nơi nó đã nhìn.",
    "指向一个输出词：连线指向它看过的词。",
  ],
  "Change where it looked, and see the word change.": [
    "Đổi nơi nó nhìn và xem từ thay đổi.",
    "改变它看的地方，看词如何变化。",
  ],
  "The darker a word, the more the model looked at it.": [
    "Từ càng đậm, mô hình nhìn nó càng nhiều.",
    "词的颜色越深，模型看得越多。",
  ],
  "Change where it looked, and see the label change.": [
    "Đổi nơi nó nhìn và xem nhãn thay đổi.",
    "改变它看的地方，看标签如何变化。",
  ],
  "First steps": ["Những bước đầu", "入门步骤"],
  "You changed a weight, and the output changed. Next: compare models, follow every number, or train one.": [
    "Bạn đã đổi một trọng số và đầu ra đã thay đổi. Tiếp theo: so sánh các mô hình, theo dõi từng con số, hoặc tự huấn luyện.",
    "你改变了一个权重，输出随之改变。接下来：比较模型、逐步查看每个数字，或训练一个模型。",
  ],
  "Change where it looked": ["Đổi nơi nó nhìn", "改变它看的地方"],
  Done: ["Xong", "完成"],
  Skip: ["Bỏ qua", "跳过"],
  "Items found": ["Các mục tìm thấy", "找到的物品"],
  "The catalog has no such item; try a shorter name.": [
    "Danh mục không có mục này; hãy thử tên ngắn hơn.",
    "目录中没有此物品；请尝试更短的名称。",
  ],
  "What would you watch next?": ["Bạn sẽ xem gì tiếp theo?", "接下来看什么？"],
  "Add a few items that you like. The model scores every other item, and shows which of yours it looked at.":
    [
      "Thêm vài mục bạn thích. Mô hình chấm điểm mọi mục khác và cho thấy nó đã nhìn vào mục nào của bạn.",
      "添加几个你喜欢的物品。模型会给其他所有物品打分，并显示它看了你的哪些物品。",
    ],
  "Start with three well-known ones": ["Bắt đầu với ba mục nổi tiếng", "从三个知名的开始"],
  "The link holds this exercise, with the answer hidden, for your students.": [
    "Liên kết chứa bài tập này, đáp án được giấu, dành cho học sinh của bạn.",
    "链接包含此练习并隐藏答案，可发给学生。",
  ],
  "The model describes the picture, and shows for every word of its caption where it looked.": [
    "Mô hình mô tả bức ảnh và cho thấy nó đã nhìn vào đâu với mỗi từ của chú thích.",
    "模型描述图片，并显示说明中每个词看了哪里。",
  ],
  "Try it with a portrait": ["Thử với một bức chân dung", "用一张肖像试试"],
  "a page that works without this server": ["trang hoạt động không cần máy chủ", "无需服务器即可打开的网页"],
  "a picture": ["hình ảnh", "图片"],
  "a drawing that can be edited": ["bản vẽ có thể chỉnh sửa", "可编辑的矢量图"],
  "a figure for a paper": ["hình cho bài báo", "论文插图"],
  "all numbers": ["mọi con số", "全部数字"],
  "go to Write, Compare, What-if, Lesson, Train": [
    "đến Viết, So sánh, Nếu như, Bài học, Huấn luyện",
    "前往书写、比较、假如、课堂、训练",
  ],
  "take a change back; with Shift, do it again": [
    "hoàn tác một thay đổi; thêm Shift để làm lại",
    "撤销更改；加 Shift 则重做",
  ],
  "on a bar: change the weight by 0.05, set it to 0 or 1": [
    "trên một thanh: đổi trọng số 0.05, đặt về 0 hoặc 1",
    "在条上：权重加减 0.05，或设为 0 或 1",
  ],
  "Show the first steps again": ["Xem lại những bước đầu", "再次显示入门步骤"],
  "Type something above, or take one of the examples.": [
    "Hãy gõ vào ô trên, hoặc chọn một ví dụ.",
    "请在上方输入，或选用一个例子。",
  ],
  "Tests one decision: with equal and shuffled weights, and without what it looked at most.": [
    "Thử một quyết định: với trọng số đều, xáo trộn, và không có thứ nó nhìn nhiều nhất.",
    "检验一个决定：权重均等、打乱，以及去掉它看得最多的部分。",
  ],
  "This step looks at nothing, so there is nothing to test.": [
    "Bước này không nhìn vào đâu, nên không có gì để thử.",
    "这一步什么也没看，因此无可检验。",
  ],
  "Score and rank of “{word}”. It looked most at {place}.": [
    "Điểm và thứ hạng của “{word}”. Nó nhìn nhiều nhất vào {place}.",
    "“{word}”的得分与名次。看得最多的是{place}。",
  ],
  "Probability of “{word}”, and the most likely token. It looked most at {place}.": [
    "Xác suất của “{word}” và token có khả năng nhất. Nó nhìn nhiều nhất vào {place}.",
    "“{word}”的概率，以及最可能的词元。看得最多的是{place}。",
  ],
  "too small to be listed": ["quá nhỏ để liệt kê", "太小，未列出"],
  "For “{word}” the weights matter: in {n} of {all} tests its rank changes.": [
    "Với “{word}” trọng số quan trọng: trong {n} trên {all} phép thử, thứ hạng thay đổi.",
    "对“{word}”，权重重要：{all} 项检验中有 {n} 项使名次改变。",
  ],
  "For “{word}” the weights hardly matter: its rank stays the same.": [
    "Với “{word}” trọng số hầu như không quan trọng: thứ hạng giữ nguyên.",
    "对“{word}”，权重几乎无关紧要：名次不变。",
  ],
  "A small translator learns an invented world whose true word alignment is known. Its attention becomes visible within two minutes.":
    [
      "Một mô hình dịch nhỏ học một thế giới tự tạo có gióng hàng từ đúng đã biết. Chú ý của nó hiện ra trong vòng hai phút.",
      "一个小型翻译模型学习一个虚构世界，其真实词对齐已知。两分钟内即可看到它的注意力。",
    ],
  Languages: ["Ngôn ngữ", "语言"],
  "{n} pairs": ["{n} cặp", "{n} 对"],
  "To mask a head, choose it above.": [
    "Để che một đầu, hãy chọn nó ở trên.",
    "要屏蔽一个头，请在上方选择它。",
  ],
  "This input is too long to paint; its weights can be dragged as bars.": [
    "Đầu vào quá dài để tô; có thể kéo các thanh trọng số.",
    "输入太长，无法涂抹；可拖动权重条。",
  ],
  "Your weights changed the label.": ["Trọng số của bạn đã đổi nhãn.", "你的权重改变了标签。"],
} as const;
