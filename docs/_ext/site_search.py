"""Search in Chinese without a dictionary of words: texts and queries are divided into pairs of characters."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from sphinx.application import Sphinx
from sphinx.search import languages
from sphinx.search.zh import SearchChinese

HAN = re.compile(r"[\u3400-\u9fff]+")


class SearchChinesePairs(SearchChinese):
    """Words in Latin letters as they are; of "平方根", "平方" and "方根". `search-zh.js` does the same to a query."""

    def split(self, input: str) -> list[str]:
        """Return the terms of a text."""
        latin = self.latin1_letters.findall(input)
        self.latin_terms.update(latin)
        return [first + second for run in HAN.findall(input) for first, second in pairwise(run)] + latin


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    languages["zh"] = SearchChinesePairs
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
