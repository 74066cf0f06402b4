"""The rows of docs/results.md: recipe, seeds, metrics, the value to reach and the published value."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """One row: a recipe, how it is trained, and how its models are evaluated."""

    name: str
    recipe: str
    title: str
    metrics: tuple[str, ...]
    targets: dict[str, float] = field(default_factory=dict)  # value to reach, per metric
    published: str = ""
    seeds: tuple[int, ...] = (1,)
    overrides: tuple[str, ...] = ()  # of the recipe; {seed} is replaced
    ensemble: bool = False
    ensemble_targets: dict[str, float] = field(default_factory=dict)
    baseline: str = ""  # name of a record of one of the *_baseline.py scripts on the same data
    group: str = ""  # the table has a mean over the rows of a group
    teachers: tuple[str, ...] = ()  # models whose translations of `distill_source` become extra training data
    distill_source: str = ""
    prepare: str = ""  # script in this folder that writes the row's data files
    model: str = ""  # row whose models are evaluated, if not this one's own
    test_files: tuple[str, ...] = ()  # in place of the recipe's test data

    @property
    def folder(self) -> str:
        """Model folder without the seed."""
        return self.model or self.name

    def lower_is_better(self, metric: str) -> bool:
        return metric.endswith("-error") or metric == "perplexity"


def train_command(row: Row, seed: int) -> list[str]:
    """Return the arguments of `heedful` that train one seed of a row."""
    overrides = [text.replace("{seed}", str(seed)) for text in row.overrides]
    if row.teachers:
        overrides.append(f'data.extra_train=["data:{row.distill_source}", "runs:figures/{row.name}.outputs"]')
    out = f"$HEEDFUL_RUNS/figures/{row.folder}-{seed}"
    return ["train", f"recipes/{row.recipe}.toml", *overrides, f"training.seed={seed}", "--out", out]


def teacher_command(row: Row) -> list[str]:
    """Return the arguments of `heedful` that translate the row's distillation sources with its teachers."""
    models = [part for name in row.teachers for part in ("-m", f"$HEEDFUL_RUNS/figures/{name}")]
    return ["translate", *models, "--beam", "5", f"$HEEDFUL_DATA/{row.distill_source}"]


THREE_SEEDS = (1, 2, 3)
ERROR_RATES = ("line-error", "symbol-error")
TO_GERMAN, TO_ENGLISH, TO_FRENCH = (("bleu-moses:" + lang, "bleu", "chrf") for lang in ("de", "en", "fr"))
G2P_LANGUAGES = tuple("arm_e bul dut fre geo hbs_latn hun jpn_hira kor vie_hanoi".split())
EXTRA_OVERRIDES = {"kor": ("tokenizer.decompose=true",)}  # syllables are split into letters
G2P_MEDIUM = Row(  # mean over the rows of the languages
    "g2p-medium",
    "g2p",
    "SIGMORPHON 2021, mean of the medium languages",
    ERROR_RATES,
    {"line-error": 12.5},
    "10.64 (ensemble, Ashby 2021)",
    ensemble_targets={"line-error": 10.64},
)
ROUGE = ("rouge-1", "rouge-2", "rouge-l")
REUTERS_TARGETS = {"rouge-1": 28.95, "rouge-2": 10.43, "rouge-l": 27.47}
JOINT_CORPUS = "runs:figures/both"
RAW_BLEU = tuple(f"caption-bleu-{n}-raw" for n in range(1, 5))
CAPTION_METRICS = (*RAW_BLEU, "meteor", "caption-bleu-4", "cider", "length-ratio")
SOFT_TARGETS = dict(zip((*RAW_BLEU, "meteor", "length-ratio"), (67.0, 44.8, 29.9, 19.5, 18.93, 0.95), strict=True))
BEST_TARGETS = {"caption-bleu-4": 22.0, "cider": 0.55}
CAPTION_TARGETS = {  # targets; published BLEU-1 to 4 without brevity penalty, METEOR; row of the initial weights
    "soft": (SOFT_TARGETS | BEST_TARGETS, "67 / 44.8 / 29.9 / 19.5, 18.93 (Xu 2015, soft)", ""),
    "wide": (SOFT_TARGETS | BEST_TARGETS, "67 / 44.8 / 29.9 / 19.5, 18.93 (Xu 2015, soft)", ""),
    "reward": (SOFT_TARGETS | BEST_TARGETS, "67 / 44.8 / 29.9 / 19.5, 18.93 (Xu 2015, soft)", "soft"),
    "hard": (SOFT_TARGETS, "67 / 45.7 / 31.4 / 21.3, 20.30 (Xu 2015, hard)", "soft"),
    "static": ({}, "63 / 41 / 27 / –, – (Google NIC)", ""),
    "transformer": ({}, "", ""),
}
CAPTION_TITLES = {
    "soft": "Flickr8k, soft",
    "wide": "Flickr8k, soft, wider and longer",
    "reward": "Flickr8k, soft, fine-tuned on CIDEr-D",
    "hard": "Flickr8k, hard (the bundled captioner)",
    "static": "Flickr8k, static",
    "transformer": "Flickr8k, Transformer",
}
RANKING = ("hr@10", "ndcg@10")
CLASSIFICATION = ("accuracy", "macro-f1", "weighted-f1")

ROWS = (
    Row(
        "multi30k-en-de-cgru",
        "multi30k-en-de-cgru",
        "Multi30k en-de, `cgru`",
        TO_GERMAN,
        {"bleu-moses:de": 38.1},
        "38.1 ± 0.8 (LIUM-CVC 2017)",
        THREE_SEEDS,
    ),
    *(
        row
        for lang, metrics, target, published, teachers in (
            ("de", TO_GERMAN, 41.0, "41.02", ("multi30k-en-de-1", "multi30k-en-de-cgru-2", "multi30k-en-de-cgru-3")),
            ("fr", TO_FRENCH, 61.8, "61.80", ("multi30k-en-fr-1",)),
        )
        for row in (
            Row(
                f"multi30k-en-{lang}",
                f"multi30k-en-{lang}",
                f"Multi30k en-{lang}, wide `cgru`",
                metrics,
                {f"bleu-moses:{lang}": target},
                f"{published} (Wu 2021, Transformer-Tiny)",
            ),
            Row(
                f"multi30k-en-{lang}-distilled",
                f"multi30k-en-{lang}-distilled",
                f"Multi30k en-{lang}, wide `cgru`, distilled",
                metrics,
                {f"bleu-moses:{lang}": target},
                f"{published} (Wu 2021, Transformer-Tiny)",
                (2,),
                (f"training.init_from=runs:figures/multi30k-en-{lang}-1",),
                teachers=teachers,
                distill_source="multi30k/train.en.gz",
            ),
        )
    ),
    *(
        Row(
            f"multi30k-{stage}-{lang}",
            f"multi30k-{stage}",
            f"Multi30k en-{lang}, {title}",
            metrics,
            {f"bleu-moses:{lang}": target},
            f"{published} (Wu 2021, Transformer-Tiny)",
            overrides=(
                f'data.train=["{JOINT_CORPUS}/train{part}.en", "{JOINT_CORPUS}/train{part}.both"]',
                f'data.valid=["{JOINT_CORPUS}/val{part}.en", "{JOINT_CORPUS}/val{part}.both"]',
                *((f"training.init_from=runs:figures/{first}",) if first else ()),
            ),
            prepare="joint_corpus.py",
            model="" if first else "multi30k-both",
            test_files=(f"$HEEDFUL_RUNS/figures/both/test.{lang}.en", f"$HEEDFUL_RUNS/figures/both/test.{lang}.both"),
        )
        for lang, metrics, target, published in (("de", TO_GERMAN, 41.0, "41.02"), ("fr", TO_FRENCH, 61.8, "61.80"))
        for stage, title, part, first in (
            ("both", "one Transformer for German and French", "", ""),
            ("both-one", "that Transformer, fine-tuned on one language", f".{lang}", "multi30k-both-1"),
        )
    ),
    *(
        Row(
            f"multi30k-de-en-{preset}",
            f"multi30k-de-en-{preset}",
            f"Multi30k de-en, `{preset}`" + (", bidirectional" if preset.startswith("seq2seq") else ""),
            TO_ENGLISH,
            {"bleu-moses:en": target},
            published,
        )
        for preset, target, published in (
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
        ERROR_RATES,
        {"line-error": 45.0},
        "41.94 (ensemble, Ashby 2021)",
        THREE_SEEDS,
        (
            'data.train=["data:sigmorphon2021_g2p/high.train.tsv.gz"]',
            'data.valid=["data:sigmorphon2021_g2p/high.dev.tsv.gz"]',
            'data.test=["data:sigmorphon2021_g2p/high.test.tsv.gz"]',
            'data.where=["1=eng_us"]',
        ),
        ensemble=True,
        ensemble_targets={"line-error": 41.94},
    ),
    Row(
        "english-sounds",
        "english-sounds",
        "SIGMORPHON 2021, English (US), with more words of WikiPron",
        ERROR_RATES,
        {"line-error": 38.0},
        "41.94 (ensemble, Ashby 2021)",
        prepare="english_sounds.py",
    ),
    *(
        Row(
            f"g2p-{language}",
            "g2p",
            f"SIGMORPHON 2021, {language}",
            ERROR_RATES,
            seeds=THREE_SEEDS,
            overrides=(f'data.where=["1={language}"]', *EXTRA_OVERRIDES.get(language, ())),
            ensemble=True,
            group=G2P_MEDIUM.title,
        )
        for language in G2P_LANGUAGES
    ),
    *(
        Row(
            f"reuters-{preset}",
            f"reuters-{preset}",
            f"Reuters headlines, `{preset}`",
            ROUGE,
            REUTERS_TARGETS,
            baseline="reuters-lead" if preset == "transformer" else "",  # printed after the last of the three
        )
        for preset in ("rnnsearch", "abs", "transformer")
    ),
    *(
        Row(
            f"flickr8k-{name}",
            f"flickr8k-{name}",
            CAPTION_TITLES[name],
            CAPTION_METRICS,
            targets,
            published,
            overrides=() if not first else (f"training.init_from=runs:figures/flickr8k-{first}-{{seed}}",),
        )
        for name, (targets, published, first) in CAPTION_TARGETS.items()  # after the row of its initial weights
    ),
    *(
        Row(
            f"ptb-{name}",
            f"ptb-{name}",
            f"Penn Treebank by sentence, {title}",
            ("perplexity",),
            {} if target is None else {"perplexity": target},
            published,
        )
        for name, title, target, published in (
            ("lstm", "LSTM", 115.0, "115 (Cheng 2016; 114.5 Zaremba 2014, contiguous)"),
            ("lstmn", "LSTMN", 108.0, "108 (Cheng 2016)"),
            ("lstmn-3", "LSTMN, 3 layers", 102.0, "102 (Cheng 2016)"),
            ("transformer", "causal Transformer", None, ""),
        )
    ),
    Row(
        "ptb-lstmn-plain",
        "ptb-lstmn",
        "Penn Treebank by sentence, LSTMN without recency",
        ("perplexity",),
        {"perplexity": 108.0},
        "108 (Cheng 2016)",
        overrides=("model.language_model.recency=false",),
    ),
    *(
        Row(
            f"novels-{name}",
            f"novels-{name}",
            f"Novels by sentence, {title}",
            ("perplexity",),
            prepare="novel_sentences.py",
        )
        for name, title in (("lstm", "LSTM"), ("lstmn", "LSTMN with as many parameters"))
    ),
    Row(
        "vietnews",
        "vietnews",
        "VietNews, lead to title (Vietnamese)",
        ROUGE,
        {"rouge-1": 32.25, "rouge-2": 18.14, "rouge-l": 26.96},  # the whole lead
        baseline="vietnews-lead",
    ),
    Row(
        "paper-titles",
        "paper-titles",
        "ACL Anthology, abstract to title",
        ROUGE,
        baseline="paper-titles-lead",
        prepare="paper_titles.py",
    ),
    Row(
        "assistant",
        "assistant",
        "Schema-guided dialogues (a part), utterance to reply",
        ("bleu", "chrf"),
        baseline="assistant-retrieval",
    ),
    Row("tatoeba-en-vi", "tatoeba-en-vi", "Tatoeba en-vi, 7,260 training pairs", ("bleu", "chrf")),
    Row("tatoeba-en-fr", "tatoeba-en-fr", "Tatoeba en-fr", ("bleu", "chrf")),
    Row("en-fr", "en-fr", "Everyday en-fr, the bundled translator", ("bleu", "chrf")),
    Row(
        "sst2",
        "sst2",
        "SST-2, no pretrained vectors",
        CLASSIFICATION,
        {"accuracy": 85.0},
        "88.2 with (Zhou 2016)",
        THREE_SEEDS,
        baseline="sst2-bigrams",
    ),
    Row(
        "sst2-bpe",
        "sst2",
        "SST-2, BPE subwords instead of words",
        CLASSIFICATION,
        {"accuracy": 85.0},
        seeds=(1, 2),
        overrides=(
            "tokenizer.kind=bpe",
            "tokenizer.bpe_dropout=0.1",
            "tokenizer.vocab_size=8000",
            "training.epochs=4",
        ),
    ),
    Row(  # after these two, its teachers
        "sst2-distilled",
        "sst2-distilled",
        "SST-2, distilled from five models, with unlabeled spans",
        CLASSIFICATION,
        {"accuracy": 85.0},
        seeds=THREE_SEEDS,
        prepare="unlabeled_spans.py",
    ),
    Row(
        "sst5",
        "sst5",
        "SST-5, no pretrained vectors",
        CLASSIFICATION,
        {"accuracy": 41.0},
        "49.8 with (Zhou 2016)",
        THREE_SEEDS,
        baseline="sst5-bigrams",
    ),
    Row(
        "trec",
        "trec",
        "TREC-6, no pretrained vectors, tuned with 10 % held out, then trained with 1 % held out",
        CLASSIFICATION,
        {"accuracy": 91.5},
        "93.8 with (Zhou 2016)",
        THREE_SEEDS,
        ("data.split_valid=0.01",),  # tuned with 10 % held out
        baseline="trec-bigrams",
    ),
    Row(
        "vsfc",
        "vsfc",
        "UIT-VSFC, sentiment (Vietnamese)",
        ("weighted-f1", "accuracy", "macro-f1"),
        {"weighted-f1": 91.0},
        seeds=THREE_SEEDS,
        baseline="vsfc-bigrams",
    ),
    Row(
        "intents",
        "intents",
        "BANKING77, no pretrained vectors, tuned with 10 % held out, then trained with 1 % held out",
        CLASSIFICATION,
        {"accuracy": 90.0},
        "93.7 with BERT (Casanueva 2020)",
        overrides=("data.split_valid=0.01",),  # tuned with 10 % held out
        baseline="intents-bigrams",
    ),
    Row(
        "sentiment",
        "sentiment",
        "Tweets, three sentiments, no pretrained vectors",
        CLASSIFICATION,
        {"accuracy": 76.0, "macro-f1": 76.0},
        baseline="sentiment-bigrams",
        prepare="tweet_phrases.py",
    ),
    Row(  # after `sst2`, which initializes it
        "sst5-from-sst2",
        "sst5",
        "SST-5, initialized from `sst2`",
        CLASSIFICATION,
        {"accuracy": 43.0},
        seeds=THREE_SEEDS,
        overrides=(
            "training.init_from=runs:figures/sst2-{seed}",
            "training.learning_rate=0.0007",
            "training.epochs=6",
        ),
    ),
    Row(  # after `sst2-distilled`, which initializes it, and the row above, its teachers
        "sst5-distilled",
        "sst5-distilled",
        "SST-5, initialized from `sst2-distilled`, distilled from the three above, with unlabeled spans",
        CLASSIFICATION,
        {"accuracy": 43.0},
        seeds=THREE_SEEDS,
        overrides=("training.init_from=runs:figures/sst2-distilled-{seed}",),
        prepare="unlabeled_spans.py",
    ),
    Row(
        "sst5-lstmn",
        "sst5",
        "SST-5, LSTMN encoder",
        CLASSIFICATION,
        published="47.6 with vectors (Cheng 2016, one layer)",
        seeds=THREE_SEEDS,
        overrides=("model.preset=classify-lstmn",),
    ),
    Row(
        "movielens-popularity",
        "movielens-popularity",
        "MovieLens-1M, popularity (ties count against the model)",
        ("hr@10", "ndcg@10", "hr@10:ties-for", "ndcg@10:ties-for"),
        {"hr@10": 45.2, "ndcg@10": 25.26},
        "45.36 / 25.43, ties in its favor (He 2018)",
    ),
    Row(
        "movielens-fism",
        "movielens-fism",
        "MovieLens-1M, FISM, embedding size 16",
        RANKING,
        {"hr@10": 65.3, "ndcg@10": 38.6},
        "66.5 / 39.5 (He 2018)",
    ),
    Row(  # after `movielens-fism`, which initializes it
        "movielens-nais",
        "movielens-nais",
        "MovieLens-1M, NAIS-prod, embedding size 16",
        RANKING,
        {"hr@10": 67.3, "ndcg@10": 40.6},
        "69.7 / 41.9 (He 2018)",
        overrides=("training.init_from=runs:figures/movielens-fism-{seed}",),
    ),
    *(
        Row(
            f"films-{name}",
            f"films-{name.removesuffix('-32')}",
            f"MovieTweetings, {title}",
            RANKING,
            overrides=overrides,
            prepare="film_ratings.py",
        )
        for name, title, overrides in (
            ("popularity", "popularity (ties count against the model)", ()),
            ("fism", "FISM, embedding size 16", ()),
            (
                "fism-32",
                "FISM, embedding size 32",
                ("model.embedding=32", "training.epochs=30", "training.learning_rate=0.005"),
            ),
            (
                "nais",  # after `films-fism`, which initializes it
                "NAIS-prod, embedding size 16",
                ("training.init_from=runs:figures/films-fism-{seed}",),
            ),
        )
    ),
    Row("world-moods", "world-moods", "Mood world, attention pooling", CLASSIFICATION, {"accuracy": 97.0}),
    Row(
        "world-lengths-bigru",
        "world-lengths",
        "Phrase world, 3-60 words, `bigru-gru`",
        ("exact",),
        overrides=("model.preset=bigru-gru",),
    ),
    Row(
        "world-lengths-cgru",
        "world-lengths",
        "Phrase world, 3-60 words, `cgru`",
        ("exact",),
        overrides=("model.preset=cgru",),
    ),
    Row(  # after `world-lengths-cgru`, which initializes it
        "world-lengths-more",
        "world-lengths",
        "Phrase world, 3-60 words, `cgru`, continued on new sentences",
        ("exact",),
        overrides=(
            "model.preset=cgru",
            "training.init_from=runs:figures/world-lengths-cgru-{seed}",
            "data.world.seed=2",
            "data.world.train=150_000",
            "data.world.test=24_000",  # about 400 per length
            "training.learning_rate=0.002",
            "training.warmup_steps=100",
        ),
    ),
    *(
        Row(
            name,
            "world-lengths",
            f"Phrase world, {words}, `seq2seq`, bidirectional",
            ("exact",),
            overrides=(
                "model.preset=seq2seq",
                "model.encoder.bidirectional=true",
                "model.encoder.hidden=256",
                *overrides,
            ),
        )
        for name, words, overrides in (
            (
                "world-lengths-plain-short",
                "3-14 words",
                ("data.world.max_words=14", "data.world.train=200_000", "training.batch_tokens=500"),
            ),
            (
                "world-lengths-plain",
                "3-60 words, after 3-14 words",
                (
                    "training.init_from=runs:figures/world-lengths-plain-short-{seed}",
                    "data.world.train=100_000",
                    "training.learning_rate=0.002",
                    "training.warmup_steps=100",
                ),
            ),
        )
    ),
)
GROUPS = (G2P_MEDIUM,)
BY_NAME = {row.name: row for row in ROWS}


@dataclass(frozen=True)
class Comparison:
    """Title, varied settings and budget of one table."""

    title: str
    recipe: str
    variants: tuple[str, ...]
    budget: str
    seeds: int
    vary: tuple[str, ...] = ()
    baselines: bool = True

    def command(self, name: str, jobs: int) -> list[str]:
        """Return the arguments of `heedful`."""
        options = [part for variant in self.variants for part in ("--variant", variant)]
        options += [part for key in self.vary for part in ("--vary", key)]
        options += ["--seeds", str(self.seeds), "--budget", self.budget, "--jobs", str(jobs)]
        options += [] if self.baselines else ["--no-baselines"]
        return ["compare", f"recipes/{self.recipe}.toml", *options, "--out", f"$HEEDFUL_RUNS/figures/{name}"]


POOLINGS = ("model.classifier.query=learned", "model.classifier.pooling=mean")
INPUT_FEEDING = ("model.decoder.input_feeding=none,attentional",)
COMPARISONS = {
    "luong": Comparison(
        "Which score? Luong 2015, table 4, on Multi30k",
        "multi30k-luong",
        tuple(f"model.attention.score={score}" for score in ("location", "dot", "general", "concat")),
        "1900steps",
        2,
        INPUT_FEEDING,
    ),
    "luong-local": Comparison(
        "Global or local attention? Luong 2015, table 4, on Multi30k",
        "multi30k-luong",
        tuple(f"model.attention.placement={placement}" for placement in ("global", "local-m", "local-p")),
        "1900steps",
        2,
        INPUT_FEEDING,
        baselines=False,  # the table above has them
    ),
    "pooling-trec": Comparison(
        "Attention pooling or mean pooling: TREC-6",
        "trec",
        POOLINGS,
        "1900steps",
        3,
        ("model.classifier.lm_auxiliary=0",),
        baselines=False,
    ),
    "pooling-sst5": Comparison(
        "Attention pooling or mean pooling: SST-5", "sst5", POOLINGS, "1700steps", 3, baselines=False
    ),
}
