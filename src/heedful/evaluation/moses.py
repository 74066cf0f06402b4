"""BLEU as papers on Multi30k count it: normalised, tokenised as Moses does, lower-cased."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version

from heedful.errors import DataError, nearest
from heedful.evaluation.tally import References, Tally, per_output
from heedful.evaluation.translation import bleu_tally

# those whose abbreviations sacremoses knows
LANGUAGES = tuple("ca cs de el en es fi fr ga hu is it lt lv nl pl pt ro ru sk sl sv ta zh".split())


def _cutter(language: str) -> Callable[[str], str]:
    try:
        from sacremoses import MosesPunctNormalizer, MosesTokenizer
    except ImportError:
        raise DataError("bleu-moses needs sacremoses: pip install 'heedful[papers]'") from None
    normal, tokens = MosesPunctNormalizer(language), MosesTokenizer(language)

    def cut(line: str) -> str:
        cut: str = tokens.tokenize(normal.normalize(line), return_str=True, escape=False)
        return cut.lower()

    return cut


def moses_bleu_tally(outputs: Sequence[str], references: References, *, language: str) -> Tally:
    """The counts behind `bleu-moses:LANGUAGE`."""
    if language not in LANGUAGES:
        raise DataError(f'bleu-moses: no language "{language}"; {nearest(language, LANGUAGES)}')
    cut = _cutter(language)
    listed = [[cut(line) for line in lines] for lines in per_output(outputs, references)]
    tally = bleu_tally([cut(line) for line in outputs], listed, tokenize="none")
    signature = tally.signature.replace("case:mixed", "case:lc")
    return Tally(
        "BLEU, Moses",
        tally.rows,
        tally.score,
        f"{signature}|moses:{language}|sacremoses:{version('sacremoses')}",
    )
