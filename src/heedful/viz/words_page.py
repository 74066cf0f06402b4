"""The words view as a page: the shaded words of each head, the labels, and every weight."""

from __future__ import annotations

import html

from heedful.trace.schema import Trace
from heedful.viz.base import ViewOptions
from heedful.viz.document import html_document
from heedful.viz.limits import check_count
from heedful.viz.weighted_text import WeightedText, weigh_words

MAX_PAGE_WORDS = 200_000  # of all heads together
LEGEND = (
    "Shade: relative to the largest weight; numbers: weights{gold}. Weights show where the model attended, not why it"
    " chose its label."
)
STYLE = """
body { font-size: 17px; max-width: 52rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; } h2 { font-size: 1.05rem; margin: 1.8rem 0 .4rem; }
.text { line-height: 2.3; font-size: 1.15rem; }
.word { display: inline-block; padding: 0 .3rem; margin: 0 .1rem; border-radius: 4px; text-align: center;
  line-height: 1.4; }
.word small { display: block; font-size: .65rem; opacity: .75; }
.gold { outline: 2px solid #d55e00; }
table { border-collapse: collapse; } td, th { padding: .15rem .8rem .15rem 0; text-align: left; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
meter { width: 14rem; }
.dim { color: #555; font-size: .9rem; }
@media (prefers-color-scheme: dark) { .dim { color: #b5b5b0; } }
"""


def words_html(trace: Trace, options: ViewOptions | None = None) -> str:
    """Return a page with the words by all heads together and by each head, the labels, and a table of weights."""
    options = options or ViewOptions()
    weighted = weigh_words(trace, options._replace(head=None))
    n_heads = trace.site(options.site).heads
    check_count(n_heads * len(weighted.words), MAX_PAGE_WORDS, "words")
    heads = [weigh_words(trace, options._replace(head=head)) for head in range(n_heads)] if n_heads > 1 else []
    parts = [
        f'<h1>{html.escape(weighted.label)}</h1><p class="dim">{html.escape(trace.model.name)}</p>',
        f'<p class="text">{_words(weighted)}</p>',
        _labels(weighted),
        *(f"<h2>Head {n}</h2><p class='text'>{_words(head)}</p>" for n, head in enumerate(heads)),
        _weights(weighted),
        f'<p class="dim">{LEGEND.format(gold="; ringed: gold words" if weighted.gold else "")}</p>',
    ]
    return html_document(f"{weighted.label}: {trace.source.text}", STYLE, "\n".join(parts))


def _words(weighted: WeightedText) -> str:
    spans = []
    for index, (word, share, weight) in enumerate(zip(weighted.words, weighted.shades, weighted.weights, strict=True)):
        ring = " gold" if index in weighted.gold else ""
        color = f"background: rgba(38, 115, 191, {0.7 * share:.3f})"
        spans.append(f'<span class="word{ring}" style="{color}">{html.escape(word)}<small>{weight:.2f}</small></span>')
    return " ".join(spans)


def _labels(weighted: WeightedText) -> str:
    rows = "".join(
        f'<tr><th>{html.escape(name)}</th><td class="n">{p:.3f}</td><td><meter value="{p:.4f}"></meter></td></tr>'
        for name, p in weighted.labels
    )
    return f"<h2>Labels</h2><table>{rows}</table>"


def _weights(weighted: WeightedText) -> str:
    rows = "".join(
        f'<tr><td>{html.escape(word)}</td><td class="n">{weight:.4f}</td></tr>'
        for word, weight in zip(weighted.words, weighted.weights, strict=True)
    )
    return (
        "<h2>All weights</h2><details><summary>as a table</summary>"
        f'<table><tr><th>word</th><th class="n">weight</th></tr>{rows}</table></details>'
    )
