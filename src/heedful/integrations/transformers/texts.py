"""Texts and their tokens by a tokenizer of transformers: ids, words and special tokens, as traces show them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from heedful.errors import DataError, ModelError
from heedful.integrations.transformers.folder_checks import library_errors
from heedful.trace.schema import NO_WORD, Role, Side, Token

WORD_START = "▁"
CONTINUED = "##"  # before a piece that continues a word, in the vocabularies of BERT
REPLACEMENT = "\ufffd"  # what an incomplete character of several bytes decodes to
NO_LIMIT = 100_000  # a `model_max_length` above this is not one


class TextTokenizer:
    """A tokenizer of transformers, for one or both sides of a model."""

    def __init__(self, inner: Any, max_length: int | None) -> None:
        if not callable(getattr(inner, "convert_ids_to_tokens", None)):
            raise ModelError(f"expected a tokenizer of transformers, got {type(inner).__name__}")
        self.inner = inner
        own = getattr(inner, "model_max_length", None)
        limits = [limit for limit in (max_length, own) if isinstance(limit, int) and 0 < limit < NO_LIMIT]
        self.max_length = min(limits, default=None)
        self.special = frozenset(int(i) for i in inner.all_special_ids)
        self.is_wordpiece = any(token.startswith(CONTINUED) for token in inner.get_vocab())
        self.lowercases = bool(getattr(inner, "do_lower_case", False))

    def encode(self, text: str) -> list[int]:
        """Return the ids of an input, with the special tokens that the model wants."""
        with library_errors("the tokenizer failed"):
            return self._checked(list(self.inner(text)["input_ids"]))

    def encode_target(self, text: str) -> list[int]:
        """Return the ids of an output, with the special tokens that the model wants."""
        with library_errors("the tokenizer failed"):
            return self._checked(list(self.inner(text_target=text)["input_ids"]))

    def _checked(self, ids: list[int]) -> list[int]:
        if self.max_length is not None and len(ids) > self.max_length:
            raise DataError(f"the text has {len(ids):,} tokens, but the model reads at most {self.max_length:,}")
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text without special tokens."""
        with library_errors("the tokenizer failed"):
            text: str = self.inner.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text.strip()

    def piece(self, i: int) -> str:
        """Return a token as it is shown: "▁" before the first piece of a word, bytes as letters."""
        raw = self.inner.convert_ids_to_tokens(i)
        if raw is None:  # an id beyond the vocabulary: output layers are often larger
            return f"<{i}>"
        text = str(raw)
        if i in self.special or text.startswith(WORD_START):
            return text
        if self.is_wordpiece:
            return text.removeprefix(CONTINUED) if text.startswith(CONTINUED) else WORD_START + text
        if text[:1] in "ĠĊ" or not text.isascii():  # byte-level: the letters stand for bytes
            decoded = str(self.inner.decode([i], clean_up_tokenization_spaces=False))
            text = decoded if decoded and REPLACEMENT not in decoded else text
            text = WORD_START + text[1:] if text.startswith(" ") else text
        return text or f"<{i}>"

    def input_side(self, text: str, ids: Sequence[int]) -> Side:
        """Return an input's tokens and words: those between white space, by the offsets of a fast tokenizer."""
        words = self._words_by_offset(text, ids)
        return self._side(text, ids, words, text.split()) if words is not None else self.output_side(ids)

    def output_side(self, ids: Sequence[int], reference: str | None = None) -> Side:
        """Return an output's tokens and words: a token is of the word that the text has with it."""
        words = self.word_ids(ids)
        text = self.decode(ids)
        return self._side(text, ids, words, text.split(), reference)

    def word_ids(self, ids: Sequence[int]) -> list[int]:
        """Return the word of each token of an output, counted in the decoded text; -1 for special tokens."""
        words: list[int] = []
        waiting: list[int] = []  # tokens without letters, which belong to the next word
        count, before = 0, ""
        for position, i in enumerate(ids):
            after = self._prefix(ids[: position + 1])
            if i in self.special:
                words.append(NO_WORD)
                continue
            words.append(NO_WORD)
            waiting.append(position)
            if after.rstrip() != before.rstrip():
                count = len(after.split())
                for index in waiting:
                    words[index] = count - 1
                waiting = []
            before = after
        for index in waiting:
            words[index] = count - 1 if count else NO_WORD
        return words

    def input_word_ids(self, text: str, ids: Sequence[int]) -> list[int]:
        """Return the word of each token of an input; -1 for special tokens."""
        words = self._words_by_offset(text, ids)
        return self.word_ids(ids) if words is None else words

    def _prefix(self, ids: Sequence[int]) -> str:
        text = str(self.inner.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False))
        return text.lstrip()

    def _words_by_offset(self, text: str, ids: Sequence[int]) -> list[int] | None:
        """Return the word of each token by its place in the text; None without offsets."""
        if not getattr(self.inner, "is_fast", False):
            return None
        encoded = self.inner(text, return_offsets_mapping=True)
        if list(encoded["input_ids"]) != list(ids):
            return None
        ends = [match.end() for match in re.finditer(r"\S+", text)]
        words = []
        for i, (start, end) in zip(ids, encoded["offset_mapping"], strict=True):
            inside = text[start:end]
            first = start + len(inside) - len(inside.lstrip())
            word = sum(word_end <= first for word_end in ends)
            is_special = (i in self.special and end <= start) or end <= start
            words.append(NO_WORD if is_special or word >= len(ends) else word)
        return words

    def _side(
        self, text: str, ids: Sequence[int], words: Sequence[int], texts: Sequence[str], reference: str | None = None
    ) -> Side:
        tokens, before = [], NO_WORD
        for i, word in zip(ids, words, strict=True):
            piece = self.piece(i)
            if word not in (before, NO_WORD) and i not in self.special:  # GPT-2 marks the space before a word only
                piece = WORD_START + piece.removeprefix(WORD_START)
            elif self.is_wordpiece and word == before != NO_WORD:  # punctuation, which BERT splits off
                piece = piece.removeprefix(WORD_START)
            tokens.append(Token(text=piece, word=word if word < len(texts) else NO_WORD, role=self.role(i), id=i))
            before = word
        return Side(text=text, tokens=tokens, words=list(texts), reference=reference)

    def role(self, i: int) -> Role:
        """Return the role of a token: every special token is a start or an end token."""
        if i == self.inner.unk_token_id and i != self.inner.eos_token_id:
            return "unknown"
        if i not in self.special:
            return "normal"
        return "end" if i in (self.inner.eos_token_id, self.inner.sep_token_id, self.inner.pad_token_id) else "start"
