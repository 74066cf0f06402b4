"""Trains vocabularies: words, characters, and subwords over bytes.

Subwords are sequences of bytes, not of characters with a byte fallback: no text contains unknown subwords, and every
text is decoded exactly, "▁" included. A fallback needs the same 256 entries in addition to those of the characters,
which is a lot for a vocabulary of a few thousand subwords.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import tokenizers
from tokenizers import Regex, models, normalizers, pre_tokenizers, trainers

from heedful.config import TokenizerConfig

PAD, UNK, START, END = 0, 1, 2, 3  # the same in every vocabulary
SPECIALS = ("<pad>", "<unk>", "<s>", "</s>")
# In the library's vocabulary they begin with a space, which no token of a text contains: "</s>" in a text is only
# text, even where the training text is full of it.
SPECIAL_NAMES = tuple(f" {name}" for name in SPECIALS)

SPACE = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())  # as str.split() defines it
CHARACTER = r"(?m)."  # any code point
SUBWORD_BOUNDARIES = (  # a word with the space before it; letters, digits and the rest apart
    rf" ?\p{{L}}[\p{{L}}\p{{M}}]*| ?\p{{N}}+| ?[^\p{{L}}\p{{N}}{SPACE}]+"
    rf"|[{SPACE}]+(?![^{SPACE}])|[{SPACE}]"
)


def _byte_table() -> dict[str, int]:
    """Return the byte of each printable character that stands for one in byte-level vocabularies (GPT-2's table)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {chr(byte): byte for byte in printable}
    others = [byte for byte in range(256) if byte not in set(printable)]
    return table | {chr(256 + i): byte for i, byte in enumerate(others)}


BYTE_OF_CHARACTER = _byte_table()


def train_units(lines: Iterable[str], config: TokenizerConfig) -> tokenizers.Tokenizer:
    """Return a vocabulary of words or characters by frequency; equal frequencies in alphabetical order."""
    normalizer = normalizers.Sequence(_normalizers(config))
    split: Callable[[str], Iterable[str]] = str.split if config.kind == "word" else str
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(split(normalizer.normalize_str(line)))
    always = [" "] if config.kind == "character" else []
    frequent = sorted((t for t, n in counts.items() if n >= config.min_count), key=lambda t: (-counts[t], t))
    names = [*SPECIAL_NAMES, *always, *(token for token in frequent if token not in always)][: config.vocab_size]
    vocabulary = {name: i for i, name in enumerate(names)}
    inner = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token=SPECIAL_NAMES[UNK]))
    inner.normalizer = normalizer
    word = config.kind == "word"
    inner.pre_tokenizer = pre_tokenizers.Split(
        Regex(f"[{SPACE}]+" if word else CHARACTER), "removed" if word else "isolated"
    )
    return inner


def train_subwords(lines: Iterable[str], config: TokenizerConfig) -> tokenizers.Tokenizer:
    """Return a vocabulary of subwords over bytes: byte-pair encoding, or a unigram language model."""
    bpe = config.kind == "bpe"
    inner = tokenizers.Tokenizer(models.BPE() if bpe else models.Unigram())
    inner.normalizer = normalizers.Sequence(_normalizers(config))
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SUBWORD_BOUNDARIES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    common: dict[str, Any] = {
        "vocab_size": config.vocab_size,
        "special_tokens": list(SPECIAL_NAMES),
        "initial_alphabet": pre_tokenizers.ByteLevel.alphabet(),
        "show_progress": False,
    }
    trainer = (
        trainers.BpeTrainer(min_frequency=config.min_count, **common)
        if bpe
        else trainers.UnigramTrainer(unk_token=SPECIAL_NAMES[UNK], **common)
    )
    with all_cores():
        inner.train_from_iterator(lines, trainer)
    tree = json.loads(inner.to_str())
    tree["added_tokens"] = []  # else the library would search the text for the special names
    if not bpe:
        tree["model"]["vocab"] = _reproducible_unigram(tree["model"]["vocab"])
    return tokenizers.Tokenizer.from_str(json.dumps(tree))


def _normalizers(config: TokenizerConfig) -> list[normalizers.Normalizer]:
    steps: list[normalizers.Normalizer] = [normalizers.Lowercase()] if config.lowercase else []
    if config.decompose:
        steps.append(normalizers.NFD())
    if config.kind == "character":  # so that white space is never unknown
        steps.append(normalizers.Replace(Regex(f"[{SPACE}]"), " "))
    elif config.kind in ("bpe", "unigram"):  # so that a first word has the subwords of any other
        steps.append(normalizers.Prepend(" "))
    return steps


def _reproducible_unigram(scored: list[tuple[str, float | None]]) -> list[tuple[str, float]]:
    """Return a unigram vocabulary that is the same in every run.

    The library sums in an order that changes from run to run, and gives the single bytes that its pruning removed
    the lowest score plus 0, 0.0001, 0.0002 ... in random order: here they get the lowest score.
    """
    subwords = [(subword, score or 0.0) for subword, score in scored[len(SPECIAL_NAMES) :]]  # None: no training text
    lowest = min(score for _, score in subwords)
    pruned = lowest + 0.0001 * (len(BYTE_OF_CHARACTER) + 0.5)
    rounded = [
        (subword, round(lowest if len(subword) == 1 and score < pruned else score, 6)) for subword, score in subwords
    ]
    specials = [(name, 0.0) for name in SPECIAL_NAMES]
    return [*specials, *sorted(rounded, key=lambda entry: (-entry[1], entry[0]))]


_VARIABLE = "TOKENIZERS_PARALLELISM"
_OFF = "off"  # one of the library's words for false; users write another, so it marks our own setting
_threaded: set[int] = set()  # process ids of this process and its parents that have used several threads


@contextmanager
def all_cores() -> Iterator[None]:
    """Let the library use all cores inside the block and one outside: it warns when a process forks after threads.

    In a forked child of such a process it uses one core, because threads do not survive a fork and waiting for them
    would never end. The variable is not changed if the user has set it.
    """
    if os.environ.get(_VARIABLE, _OFF) != _OFF or _threaded - {os.getpid()}:
        yield
        return
    _threaded.add(os.getpid())
    os.environ[_VARIABLE] = "true"
    try:
        yield
    finally:
        os.environ[_VARIABLE] = _OFF
