"""What is to be reached: each row a recipe, its seeds, how it is scored, and the published figure."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """One line of docs/results.md. `bars`: metric, "at least" or "at most", value."""

    name: str
    recipe: str
    title: str
    metrics: tuple[str, ...]
    bars: dict[str, float] = field(default_factory=dict)
    published: str = ""
    seeds: tuple[int, ...] = (1,)
    sets: tuple[str, ...] = ()  # {seed} is the training's
    ensemble: bool = False
    together: dict[str, float] = field(default_factory=dict)  # bars of the ensemble
    baseline: str = ""  # the record of something simple on the same data (bigrams.py, leads.py)
    part: str = ""  # rows of one part are averaged in the table
    teachers: tuple[str, ...] = ()  # models that write the targets of `taught` first
    taught: str = ""  # sources they read
    made: str = ""  # a script beside this one that makes its files
    model: str = ""  # whose model it scores, if several rows are of one
    tested: tuple[str, ...] = ()  # on which files, in place of the recipe's test data

    @property
    def folder(self) -> str:
        """Of its models, less the seed."""
        return self.model or self.name

    def at_most(self, metric: str) -> bool:
        return metric.endswith("-error") or metric == "perplexity"


THREE = (1, 2, 3)
ERRORS = ("line-error", "symbol-error")
DE, EN, FR = (("bleu-moses:" + lang, "bleu", "chrf") for lang in ("de", "en", "fr"))
LANGUAGES = tuple("arm_e bul dut fre geo hbs_latn hun jpn_hira kor vie_hanoi".split())
SPELT = {"kor": ("tokenizer.decompose=true",)}  # a syllable is its letters
MEDIUM = Row(  # the mean of the languages' rows
    "g2p-medium",
    "g2p",
    "SIGMORPHON 2021, mean of the medium languages",
    ERRORS,
    {"line-error": 12.5},
    "10.64 (ensemble, Ashby 2021)",
    together={"line-error": 10.64},
)
HEADLINE = ("rouge-1", "rouge-2", "rouge-l")
FIRST_12 = {"rouge-1": 28.95, "rouge-2": 10.43, "rouge-l": 27.47}
BACK = "Multi30k de-en"
BOTH = "../build/figures/both"
RAW = tuple(f"caption-bleu-{n}-raw" for n in range(1, 5))
CAPTION = (*RAW, "meteor", "caption-bleu-4", "cider", "length-ratio")
SOFT = dict(zip((*RAW, "meteor", "length-ratio"), (67.0, 44.8, 29.9, 19.5, 18.93, 0.95), strict=True))
BEST = {"caption-bleu-4": 22.0, "cider": 0.55}
SEEN = {  # bars; what was published: BLEU-1 to 4 without brevity penalty, METEOR; the row it begins with
    "soft": (SOFT | BEST, "67 / 44.8 / 29.9 / 19.5, 18.93 (Xu 2015, soft)", ""),
    "wide": (SOFT | BEST, "67 / 44.8 / 29.9 / 19.5, 18.93 (Xu 2015, soft)", ""),
    "reward": (SOFT | BEST, "67 / 44.8 / 29.9 / 19.5, 18.93 (Xu 2015, soft)", "soft"),
    "hard": (SOFT, "67 / 45.7 / 31.4 / 21.3, 20.30 (Xu 2015, hard)", "soft"),
    "static": ({}, "63 / 41 / 27 / –, – (Google NIC)", ""),
    "transformer": ({}, "", ""),
}
CAPTIONERS = {
    "soft": "Flickr8k, soft",
    "wide": "Flickr8k, soft, wider and longer",
    "reward": "Flickr8k, soft, taught by CIDEr-D",
    "hard": "Flickr8k, hard (the bundled captioner)",
    "static": "Flickr8k, static",
    "transformer": "Flickr8k, Transformer",
}
RANKED = ("hr@10", "ndcg@10")
CLASSES = ("accuracy", "macro-f1", "weighted-f1")

ROWS = (
    Row(
        "multi30k-en-de-cgru",
        "multi30k-en-de-cgru",
        "Multi30k en-de, `cgru`",
        DE,
        {"bleu-moses:de": 38.1},
        "38.1 ± 0.8 (LIUM-CVC 2017)",
        THREE,
    ),
    *(
        row
        for lang, metrics, bar, published, teachers in (
            ("de", DE, 41.0, "41.02", ("multi30k-en-de-1", "multi30k-en-de-cgru-2", "multi30k-en-de-cgru-3")),
            ("fr", FR, 61.8, "61.80", ("multi30k-en-fr-1",)),
        )
        for row in (
            Row(
                f"multi30k-en-{lang}",
                f"multi30k-en-{lang}",
                f"Multi30k en-{lang}, `cgru`, wider",
                metrics,
                {f"bleu-moses:{lang}": bar},
                f"{published} (Wu 2021, Transformer-Tiny)",
            ),
            Row(
                f"multi30k-en-{lang}-taught",
                f"multi30k-en-{lang}-taught",
                f"Multi30k en-{lang}, the wider one, taught on",
                metrics,
                {f"bleu-moses:{lang}": bar},
                f"{published} (Wu 2021, Transformer-Tiny)",
                (2,),
                (f"training.start_from=build/figures/multi30k-en-{lang}-1",),
                teachers=teachers,
                taught="multi30k/train.en.gz",
            ),
        )
    ),
    *(
        Row(
            f"multi30k-{stage}-{lang}",
            f"multi30k-{stage}",
            f"Multi30k en-{lang}, {title}",
            metrics,
            {f"bleu-moses:{lang}": bar},
            f"{published} (Wu 2021, Transformer-Tiny)",
            sets=(
                f'data.train=["{BOTH}/train{part}.en", "{BOTH}/train{part}.both"]',
                f'data.valid=["{BOTH}/val{part}.en", "{BOTH}/val{part}.both"]',
                *((f"training.start_from=../build/figures/{begun}",) if begun else ()),
            ),
            made="both.py",
            model="" if begun else "multi30k-both",
            tested=(f"build/figures/both/test.{lang}.en", f"build/figures/both/test.{lang}.both"),
        )
        for lang, metrics, bar, published in (("de", DE, 41.0, "41.02"), ("fr", FR, 61.8, "61.80"))
        for stage, title, part, begun in (
            ("both", "one Transformer for German and French", "", ""),
            ("both-one", "that Transformer, gone on with one language", f".{lang}", "multi30k-both-1"),
        )
    ),
    *(
        Row(
            f"multi30k-de-en-{preset}",
            f"multi30k-de-en-{preset}",
            f"{BACK}, `{preset}`" + (", read from both ends" if preset.startswith("seq2seq") else ""),
            EN,
            {"bleu-moses:en": bar},
            published,
        )
        for preset, bar, published in (
            ("seq2seq", 18.8, "13.76 (bentrevett), 18.76 (maximus-21)"),
            ("seq2seq-every-step", 22.0, "20.61 (bentrevett)"),
            ("rnnsearch", 33.5, "28.30 (bentrevett), 33.47 (msarmi9), 38.45 (maximus-21)"),
            ("transformer", 36.5, "36.52 (bentrevett)"),
        )
    ),
    Row(
        "g2p-eng-us",
        "g2p",
        "SIGMORPHON 2021, English (US)",
        ERRORS,
        {"line-error": 45.0},
        "41.94 (ensemble, Ashby 2021)",
        THREE,
        (
            'data.train=["data:sigmorphon2021_g2p/high.train.tsv.gz"]',
            'data.valid=["data:sigmorphon2021_g2p/high.dev.tsv.gz"]',
            'data.test=["data:sigmorphon2021_g2p/high.test.tsv.gz"]',
            'data.where=["1=eng_us"]',
        ),
        ensemble=True,
        together={"line-error": 41.94},
    ),
    *(
        Row(
            f"g2p-{language}",
            "g2p",
            f"SIGMORPHON 2021, {language}",
            ERRORS,
            seeds=THREE,
            sets=(f'data.where=["1={language}"]', *SPELT.get(language, ())),
            ensemble=True,
            part=MEDIUM.title,
        )
        for language in LANGUAGES
    ),
    *(
        Row(
            f"reuters-{preset}",
            f"reuters-{preset}",
            f"Reuters headlines, `{preset}`",
            HEADLINE,
            FIRST_12,
            baseline="reuters-lead" if preset == "transformer" else "",  # behind the last of the three
        )
        for preset in ("rnnsearch", "abs", "transformer")
    ),
    *(
        Row(
            f"flickr8k-{name}",
            f"flickr8k-{name}",
            CAPTIONERS[name],
            CAPTION,
            bars,
            published,
            sets=() if not first else (f"training.start_from=../build/figures/flickr8k-{first}-{{seed}}",),
        )
        for name, (bars, published, first) in SEEN.items()  # behind the one they begin with
    ),
    *(
        Row(
            f"ptb-{name}",
            f"ptb-{name}",
            f"Penn Treebank by sentence, {title}",
            ("perplexity",),
            {} if bar is None else {"perplexity": bar},
            published,
        )
        for name, title, bar, published in (
            ("lstm", "LSTM", 115.0, "115 (Cheng 2016; 114.5 Zaremba 2014, contiguous)"),
            ("lstmn", "LSTMN", 108.0, "108 (Cheng 2016)"),
            ("lstmn-3", "LSTMN, 3 layers", 102.0, "102 (Cheng 2016)"),
            ("transformer", "causal Transformer", None, ""),
        )
    ),
    Row(
        "ptb-lstmn-plain",
        "ptb-lstmn",
        "Penn Treebank by sentence, LSTMN whose slots have no places",
        ("perplexity",),
        {"perplexity": 108.0},
        "108 (Cheng 2016)",
        sets=("model.reader.recency=false",),
    ),
    Row(
        "vietnews",
        "vietnews",
        "VietNews, lead to title (Vietnamese)",
        HEADLINE,
        {"rouge-1": 32.25, "rouge-2": 18.14, "rouge-l": 26.96},  # of the whole lead (leads.py)
        baseline="vietnews-lead",
    ),
    Row("tatoeba-en-vi", "tatoeba-en-vi", "Tatoeba en-vi, 7,260 pairs to learn from", ("bleu", "chrf")),
    Row("tatoeba-en-fr", "tatoeba-en-fr", "Tatoeba en-fr, the bundled translator", ("bleu", "chrf")),
    Row(
        "sst2",
        "sst2",
        "SST-2, no pretrained vectors",
        CLASSES,
        {"accuracy": 85.0},
        "88.2 with (Zhou 2016)",
        THREE,
        baseline="sst2-bigrams",
    ),
    Row(
        "sst2-pieces",
        "sst2",
        "SST-2, pieces of words in place of words",
        CLASSES,
        {"accuracy": 85.0},
        seeds=(1, 2),
        sets=(
            "tokenizer.kind=bpe",
            "tokenizer.dropout=0.1",
            "tokenizer.size=8000",
            "training.epochs=4",
        ),
    ),
    Row(  # behind these two, by which it is taught
        "sst2-taught",
        "sst2-taught",
        "SST-2, taught by five models, further texts from the training sentences",
        CLASSES,
        {"accuracy": 85.0},
        seeds=THREE,
        made="spans.py",
    ),
    Row(
        "sst5",
        "sst5",
        "SST-5, no pretrained vectors",
        CLASSES,
        {"accuracy": 41.0},
        "49.8 with (Zhou 2016)",
        THREE,
        baseline="sst5-bigrams",
    ),
    Row(
        "trec",
        "trec",
        "TREC-6, no pretrained vectors, tuned on a tenth, then trained on all but a hundredth",
        CLASSES,
        {"accuracy": 91.5},
        "93.8 with (Zhou 2016)",
        THREE,
        ("data.split_valid=0.01",),  # tuned with a tenth held out
        baseline="trec-bigrams",
    ),
    Row(
        "vsfc",
        "vsfc",
        "UIT-VSFC, sentiment (Vietnamese)",
        ("weighted-f1", "accuracy", "macro-f1"),
        {"weighted-f1": 91.0},
        seeds=THREE,
        baseline="vsfc-bigrams",
    ),
    Row(  # behind `sst2`, whose models it begins with
        "sst5-from-sst2",
        "sst5",
        "SST-5, begun with `sst2`'s reader",
        CLASSES,
        {"accuracy": 43.0},
        seeds=THREE,
        sets=(
            "training.start_from=../build/figures/sst2-{seed}",
            "training.rate=0.0007",
            "training.epochs=6",
        ),
    ),
    Row(  # behind `sst2-taught`, with which it begins, and the row above, by which it is taught
        "sst5-taught",
        "sst5-taught",
        "SST-5, begun with `sst2-taught`, taught by the three above, further texts",
        CLASSES,
        {"accuracy": 43.0},
        seeds=THREE,
        sets=("training.start_from=../build/figures/sst2-taught-{seed}",),
        made="spans.py",
    ),
    Row(
        "sst5-lstmn",
        "sst5",
        "SST-5, an LSTMN as the reader",
        CLASSES,
        published="47.6 with vectors (Cheng 2016, one layer)",
        seeds=THREE,
        sets=("model.preset=classify-lstmn",),
    ),
    Row(
        "movielens-popularity",
        "movielens-popularity",
        "MovieLens-1M, popularity (ties against it)",
        ("hr@10", "ndcg@10", "hr@10:ties-for", "ndcg@10:ties-for"),
        {"hr@10": 45.2, "ndcg@10": 25.26},
        "45.36 / 25.43, ties for it (He 2018)",
    ),
    Row(
        "movielens-fism",
        "movielens-fism",
        "MovieLens-1M, FISM, vectors of 16",
        RANKED,
        {"hr@10": 65.3, "ndcg@10": 38.6},
        "66.5 / 39.5 (He 2018)",
    ),
    Row(  # behind `movielens-fism`, whose vectors it begins with
        "movielens-nais",
        "movielens-nais",
        "MovieLens-1M, NAIS-prod, vectors of 16",
        RANKED,
        {"hr@10": 67.3, "ndcg@10": 40.6},
        "69.7 / 41.9 (He 2018)",
        sets=("training.start_from=../build/figures/movielens-fism-{seed}",),
    ),
    Row("world-moods", "world-moods", "Mood world, one look", CLASSES, {"accuracy": 97.0}),
    Row(
        "world-lengths-bigru",
        "world-lengths",
        "Phrase world, 3-60 words, `bigru-gru`",
        ("exact",),
        sets=("model.preset=bigru-gru",),
    ),
    Row(
        "world-lengths-cgru",
        "world-lengths",
        "Phrase world, 3-60 words, `cgru`",
        ("exact",),
        sets=("model.preset=cgru",),
    ),
    Row(  # behind `world-lengths-cgru`, with which it begins
        "world-lengths-more",
        "world-lengths",
        "Phrase world, 3-60 words, `cgru`, gone on with other sentences",
        ("exact",),
        sets=(
            "model.preset=cgru",
            "training.start_from=../build/figures/world-lengths-cgru-{seed}",
            "data.world.seed=2",
            "data.world.train=150_000",
            "data.world.test=24_000",  # 400 of a length
            "training.rate=0.002",
            "training.warmup=100",
        ),
    ),
    *(
        Row(
            name,
            "world-lengths",
            f"Phrase world, {words}, `seq2seq`, read from both ends",
            ("exact",),
            sets=(
                "model.preset=seq2seq",
                "model.encoder.bidirectional=true",
                "model.encoder.hidden=256",
                *sets,
            ),
        )
        for name, words, sets in (
            (
                "world-lengths-plain-short",
                "3-14 words",
                ("data.world.max_words=14", "data.world.train=200_000", "training.batch_tokens=500"),
            ),
            (
                "world-lengths-plain",
                "3-60 words, begun with 3-14 words",
                (
                    "training.start_from=../build/figures/world-lengths-plain-short-{seed}",
                    "data.world.train=100_000",
                    "training.rate=0.002",
                    "training.warmup=100",
                ),
            ),
        )
    ),
)
PARTS = (MEDIUM,)
BY_NAME = {row.name: row for row in ROWS}
