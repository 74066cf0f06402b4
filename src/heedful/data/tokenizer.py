"""Tokenisers: from a line to numbers and back. A thin cover over the `tokenizers` library.

Four kinds. `word` splits at white space and `character` into code points; what is rare is `<unk>`. `bpe`
and `unigram` learn pieces of words over bytes. Bytes rather than a "▁" with a fallback: nothing is ever
unknown, and every text comes back as it was typed, "▁" included. A fallback needs the same 256 entries beside
those of the characters, which a vocabulary of a few thousand pieces would feel.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, Self

import tokenizers
from tokenizers import Regex, models, normalizers, pre_tokenizers, trainers

from heedful.config import TokenizerConfig
from heedful.data.readers import TextPair
from heedful.errors import ModelError

PAD, UNK, START, END = 0, 1, 2, 3  # the same in every vocabulary
SPECIALS = ("<pad>", "<unk>", "<s>", "</s>")
# In the library's vocabulary they begin with a space, which no token of a text can hold: a user's "</s>" is
# only text, even where the training text is full of it.
_NAMES = tuple(f" {name}" for name in SPECIALS)
NO_WORD = -1  # of the tokens that belong to no word of the text

_SPACE = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())  # as str.split() knows it
_PIECES = (  # a word with the space before it; letters, digits and the rest apart
    rf" ?\p{{L}}[\p{{L}}\p{{M}}]*| ?\p{{N}}+| ?[^\p{{L}}\p{{N}}{_SPACE}]+"
    rf"|[{_SPACE}]+(?![^{_SPACE}])|[{_SPACE}]"
)
Kind = Literal["word", "character", "bytes"]


def _byte_table() -> dict[str, int]:
    """The printable character that stands for each byte in byte-level vocabularies (GPT-2's table)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {chr(byte): byte for byte in plain}
    others = [byte for byte in range(256) if byte not in set(plain)]
    return table | {chr(256 + i): byte for i, byte in enumerate(others)}


_BYTES = _byte_table()


class Tokenizer:
    """One side's vocabulary. Ids 0-3 are `<pad> <unk> <s> </s>`; no other id is special."""

    def __init__(self, inner: tokenizers.Tokenizer) -> None:
        self._inner = inner
        self.kind = _kind(inner)
        self._known: dict[int, bytes] = {}  # what tokens are written as, as they come up

    @property
    def small(self) -> bool:
        """Does it know small letters only?"""
        normalizer = self._inner.normalizer
        return normalizer is not None and "a" in normalizer.normalize_str("A")

    @classmethod
    def learn(cls, lines: Iterable[str], config: TokenizerConfig) -> Self:
        """A vocabulary of the commonest words, characters or pieces of these lines, read once.

        >>> tokenizer = Tokenizer.learn(["a cat", "a dog"], TokenizerConfig())
        >>> tokenizer.tokens(tokenizer.encode("a bird"))
        ['a', '<unk>', '</s>']
        """
        if config.kind in ("bpe", "unigram"):
            return cls(_pieces(lines, config))
        return cls(_counted(lines, config))

    def encode(self, line: str) -> list[int]:
        """The ids of a line with the end token behind them."""
        ids: list[int] = self._inner.encode(line, add_special_tokens=False).ids
        return [*ids, END]

    def encode_all(self, lines: Sequence[str]) -> list[list[int]]:
        """The same for many lines, on as many cores as the library finds."""
        with _parallel():
            found = self._inner.encode_batch_fast(list(lines), add_special_tokens=False)
        return [[*encoding.ids, END] for encoding in found]

    def cut(self, line: str, most: int) -> str:
        """The whole words at the beginning of a line that make at most so many tokens.

        Of a word that alone makes more, as many characters.

        >>> tokenizer = Tokenizer.learn(["a cat"], TokenizerConfig(kind="character"))
        >>> tokenizer.cut("a cat", 5), tokenizer.cut("a cat", 4), tokenizer.cut("cats", 2)
        ('a cat', 'a', 'ca')
        """
        ids = self.encode(line)
        if len(ids) - 1 <= most:
            return line
        whole = self.words(ids)[most]  # so many words are before the one that does not fit
        if whole > 0:
            return " ".join(line.split()[:whole])
        text = line.strip()[:most]  # a character makes a token or more
        while len(self.encode(text)) - 1 > most:
            text = text[: len(text) // 2]
        return text

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Each token as a person would read it: a space is "▁", a part of a character its bytes."""
        return [self.shown(i) for i in ids]

    def decode(self, ids: Sequence[int]) -> str:
        """The line these ids write, without what ends or pads it."""
        ids = [i for i in ids if i not in (PAD, START, END)]
        if self.kind == "word":
            return " ".join(self.tokens(ids))
        text = b"".join(map(self._bytes, ids)).decode("utf-8", errors="replace")
        return text.removeprefix(" ") if self.kind == "bytes" else text

    def words(self, ids: Sequence[int]) -> list[int]:
        """For each token the index of its word, of the text split at white space.

        A space belongs to the word behind it (at the end of the line: before it); padding, start, end and
        spaces in a text of nothing else have `NO_WORD`.

        >>> tokenizer = Tokenizer.learn(["ab a"], TokenizerConfig(kind="character"))
        >>> tokenizer.words(tokenizer.encode("ab a"))
        [0, 0, 1, 1, -1]
        """
        real = [i not in (PAD, START, END) for i in ids]
        if self.kind == "word":
            numbers = iter(range(len(ids)))
            return [next(numbers) if is_real else NO_WORD for is_real in real]
        raw = [self._bytes(i) if is_real else b"" for i, is_real in zip(ids, real, strict=True)]
        of_byte = _word_of_each_byte(b"".join(raw))
        starts = accumulate(map(len, raw), initial=0)
        return [of_byte[at] if is_real else NO_WORD for is_real, at in zip(real, starts, strict=False)]

    def word_texts(self, ids: Sequence[int]) -> list[str]:
        """The words that `words` counts."""
        return self.decode(ids).split()

    def names(self) -> list[str]:
        """Every token by its id, in the library's spelling; of words that is their own."""
        return [self._name(i) for i in range(len(self))]

    def __len__(self) -> int:
        return int(self._inner.get_vocab_size())

    def to_json(self) -> str:
        """Everything there is to it, the same text for the same vocabulary."""
        return str(self._inner.to_str(pretty=False))

    def save(self, path: Path) -> None:
        path.write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        try:
            inner = tokenizers.Tokenizer.from_str(path.read_text(encoding="utf-8"))
        except Exception as error:  # the library raises a bare Exception for a broken file
            raise ModelError(f"{path}: not a tokeniser: {error}") from None
        if tuple(map(inner.id_to_token, range(len(_NAMES)))) != _NAMES or inner.get_added_tokens_decoder():
            raise ModelError(
                f"{path}: not a tokeniser of heedful: its first ids are not {' '.join(SPECIALS)}"
            )
        return cls(inner)

    def _name(self, id: int) -> str:
        """The token in the library's spelling; an id outside the vocabulary is unknown."""
        name = self._inner.id_to_token(id) if id >= len(SPECIALS) else None
        return name if name is not None else SPECIALS[id if 0 <= id < len(SPECIALS) else UNK]

    def _bytes(self, id: int) -> bytes:
        found = self._known.get(id)
        if found is None:
            found = self._known[id] = self._spelt(id)
        return found

    def _spelt(self, id: int) -> bytes:
        name = self._name(id)
        if self.kind == "bytes" and id >= len(SPECIALS):
            return bytes(_BYTES[character] for character in name if character in _BYTES)
        return name.encode("utf-8")

    def shown(self, id: int) -> str:
        """One token as a person would read it."""
        if id < len(SPECIALS) or self.kind == "word":
            return self._name(id)
        text = self._bytes(id).decode("utf-8", errors="surrogateescape")
        parts = (f"<{ord(c) - 0xDC00:02X}>" if "\udc80" <= c <= "\udcff" else c for c in text)
        return "".join(parts).replace(" ", "▁")


def learn_both(pairs: Iterable[TextPair], config: TokenizerConfig) -> tuple[Tokenizer, Tokenizer]:
    """The tokenisers of source and target. `pairs` is read twice, or once where one vocabulary is shared."""
    if config.shared:
        both = Tokenizer.learn((text for pair in pairs for text in pair[:2]), config)
        return both, both
    kind = config.kind if config.target_kind == "same" else config.target_kind
    target = config.model_copy(update={"kind": kind, "decompose": False})  # what is written stays whole
    return (
        Tokenizer.learn((pair.source for pair in pairs), config),
        Tokenizer.learn((pair.target for pair in pairs), target),
    )


def _kind(inner: tokenizers.Tokenizer) -> Kind:
    if not isinstance(inner.model, models.WordLevel):
        return "bytes"
    split = json.loads(inner.to_str())["pre_tokenizer"]
    return "word" if split["behavior"] == "Removed" else "character"


def _normalizers(config: TokenizerConfig) -> list[normalizers.Normalizer]:
    steps: list[normalizers.Normalizer] = [normalizers.Lowercase()] if config.lowercase else []
    if config.decompose:
        steps.append(normalizers.NFD())
    if config.kind == "character":  # so that what parts words is never unknown
        steps.append(normalizers.Replace(Regex(f"[{_SPACE}]"), " "))
    elif config.kind in ("bpe", "unigram"):  # so that a first word is written like any other
        steps.append(normalizers.Prepend(" "))
    return steps


def _counted(lines: Iterable[str], config: TokenizerConfig) -> tokenizers.Tokenizer:
    """Words or characters by their count, equal counts by the alphabet."""
    normalizer = normalizers.Sequence(_normalizers(config))
    cut: Callable[[str], Iterable[str]] = str.split if config.kind == "word" else str
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(cut(normalizer.normalize_str(line)))
    always = [" "] if config.kind == "character" else []
    known = sorted((t for t, n in counts.items() if n >= config.min_count), key=lambda t: (-counts[t], t))
    names = [*_NAMES, *always, *(token for token in known if token not in always)][: config.size]
    vocabulary = {name: i for i, name in enumerate(names)}
    inner = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token=_NAMES[UNK]))
    inner.normalizer = normalizer
    word = config.kind == "word"
    inner.pre_tokenizer = pre_tokenizers.Split(
        Regex(f"[{_SPACE}]+" if word else r"(?m)."), "removed" if word else "isolated"
    )
    return inner


def _pieces(lines: Iterable[str], config: TokenizerConfig) -> tokenizers.Tokenizer:
    """Pieces of words over bytes: by joining the commonest pairs (BPE), or by likelihood (unigram)."""
    bpe = config.kind == "bpe"
    inner = tokenizers.Tokenizer(models.BPE() if bpe else models.Unigram())
    inner.normalizer = normalizers.Sequence(_normalizers(config))
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    common: dict[str, Any] = {
        "vocab_size": config.size,
        "special_tokens": list(_NAMES),
        "initial_alphabet": pre_tokenizers.ByteLevel.alphabet(),
        "show_progress": False,
    }
    trainer = (
        trainers.BpeTrainer(min_frequency=config.min_count, **common)
        if bpe
        else trainers.UnigramTrainer(unk_token=_NAMES[UNK], **common)
    )
    with _parallel():
        inner.train_from_iterator(lines, trainer)
    tree = json.loads(inner.to_str())
    tree["added_tokens"] = []  # else the library would look for the special names in the text
    if not bpe:
        tree["model"]["vocab"] = _settled(tree["model"]["vocab"])
    return tokenizers.Tokenizer.from_str(json.dumps(tree))


def _settled(scored: list[tuple[str, float | None]]) -> list[tuple[str, float]]:
    """A unigram vocabulary that is the same in every run.

    The library sums in an order that changes from run to run, and gives the single bytes that its pruning
    took away the lowest score plus 0, 0.0001, 0.0002 ... in random order: they get the lowest score.
    """
    pieces = [(piece, score or 0.0) for piece, score in scored[len(_NAMES) :]]  # None: nothing to learn from
    lowest = min(score for _, score in pieces)
    pruned = lowest + 0.0001 * (len(_BYTES) + 0.5)
    settled = [
        (piece, round(lowest if len(piece) == 1 and score < pruned else score, 6)) for piece, score in pieces
    ]
    specials = [(name, 0.0) for name in _NAMES]
    return [*specials, *sorted(settled, key=lambda entry: (-entry[1], entry[0]))]


def _word_of_each_byte(raw: bytes) -> list[int]:
    """For each byte, and for the end, the index of the word it is in or, for white space, before."""
    found: list[int] = []
    word, outside, spaces = NO_WORD, True, 0
    for character in raw.decode("utf-8", errors="surrogateescape"):
        size = len(character.encode("utf-8", errors="surrogateescape"))
        if character.isspace():
            outside, spaces = True, spaces + size
            continue
        word += outside
        found += [word] * (spaces + size)
        outside, spaces = False, 0
    return found + [word] * (spaces + 1)


_VARIABLE = "TOKENIZERS_PARALLELISM"
_ONE = "off"  # one of the library's words for false, by which we know our own setting again
_threaded: set[int] = set()  # the process that has used several threads


@contextmanager
def _parallel() -> Iterator[None]:
    """All cores inside, one outside: the library warns where a process forks after it has used several.

    A process that was forked off such a one keeps to one core: the threads did not come along, and waiting
    for them would have no end.
    """
    if os.environ.get(_VARIABLE, _ONE) != _ONE or _threaded - {os.getpid()}:
        yield  # as the user says, or as we said before the fork
        return
    _threaded.add(os.getpid())
    os.environ[_VARIABLE] = "true"
    try:
        yield
    finally:
        os.environ[_VARIABLE] = _ONE
