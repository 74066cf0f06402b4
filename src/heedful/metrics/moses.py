"""BLEU as papers on Multi30k compute it: punctuation normalized, tokenized by Moses, lowercased."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version

from heedful.errors import DataError
from heedful.metrics.state import MetricSpec, MetricState, References, list_references
from heedful.metrics.translation import bleu_state

# the languages whose abbreviations sacremoses knows
LANGUAGES = tuple("ca cs de el en es fi fr ga hu is it lt lv nl pl pt ro ru sk sl sv ta zh".split())


def moses_tokenizer(language: str) -> Callable[[str], str]:
    """Return a function that normalizes punctuation, tokenizes and lowercases a line."""
    try:
        from sacremoses import MosesPunctNormalizer, MosesTokenizer
    except ImportError:
        raise DataError("bleu-moses needs sacremoses: pip install 'heedful[papers]'") from None
    normalizer, tokenizer = MosesPunctNormalizer(language), MosesTokenizer(language)

    def tokenize(line: str) -> str:
        tokens: str = tokenizer.tokenize(normalizer.normalize(line), return_str=True, escape=False)
        return tokens.lower()

    return tokenize


def moses_bleu_state(outputs: Sequence[str], references: References, *, language: str) -> MetricState:
    """Return the counts of `bleu-moses:LANGUAGE`."""
    tokenize = moses_tokenizer(language)
    listed = [[tokenize(line) for line in lines] for lines in list_references(outputs, references)]
    state = bleu_state([tokenize(line) for line in outputs], listed, tokenize="none")
    signature = state.signature.replace("case:mixed", "case:lc")
    signature = f"{signature}|moses:{language}|sacremoses:{version('sacremoses')}"
    return MetricState("BLEU, Moses", state.rows, state.score, signature)


BLEU_MOSES = MetricSpec(
    "bleu-moses",
    moses_bleu_state,
    "BLEU as papers on Multi30k compute it: Moses tokens, lowercased; append the language, as in bleu-moses:de",
    parameter="language",
    parameter_values=LANGUAGES,
)
