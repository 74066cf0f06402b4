"""The page of a model with 12 layers and 12 heads on 40 tokens: its size, and how long it takes to open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser, Page

import heedful
from chromium import chromium
from heedful.trace.schema import Trace
from heedful.viz.page import page_link, write_page

TOKENS = [f"word{i}" for i in range(40)]
MAX_RATIO = 5  # of the browser's work for it to that for one layer with one head


def trace(layers: int, heads: int, *, with_decoder: bool = False) -> Trace:
    """Return a trace of random weights, of an encoder or of an encoder-decoder."""
    generator = torch.Generator().manual_seed(1)

    def attentions() -> list[torch.Tensor]:
        return [torch.randn(1, heads, 40, 40, generator=generator).softmax(-1) for _ in range(layers)]

    if not with_decoder:
        return Trace.from_attentions(attentions(), TOKENS)
    decoder = {"cross_attentions": attentions(), "decoder_attentions": attentions(), "target_tokens": TOKENS}
    return Trace.from_attentions(attentions(), TOKENS, **decoder)  # type: ignore[arg-type]


@pytest.mark.parametrize("with_decoder", [False, True], ids=["encoder", "encoder-decoder"])
def test_the_page_of_all_weights_is_below_five_megabytes(with_decoder: bool, tmp_path: Path) -> None:
    large = trace(12, 12, with_decoder=with_decoder)
    assert len(large.sites) == (36 if with_decoder else 12)
    write_page(large, tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 5_000_000
    large.save(tmp_path / "trace.json")
    assert heedful.Trace.load(tmp_path / "trace.json").weights("enc.11.self").shape == (40, 12, 40)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@contextmanager
def opened(browser: Browser, file: Path, view: str = "alignment") -> Iterator[tuple[Page, float]]:
    """Yield a page that is drawn and recomputed, and the seconds that the browser computed until then."""
    page = browser.new_page()
    counters = page.context.new_cdp_session(page)
    counters.send("Performance.enable")
    page.goto(file.as_uri() + page_link(view))
    page.wait_for_selector("#recomputed:not([data-state=busy])")
    metrics = {metric["name"]: metric["value"] for metric in counters.send("Performance.getMetrics")["metrics"]}
    yield page, float(metrics["TaskDuration"])
    page.close()


@pytest.mark.browser
def test_every_head_can_be_picked_and_opens_in_a_few_times_what_one_takes(browser: Browser, tmp_path: Path) -> None:
    """benchmarks/page_opening.py measures seconds, on an idle machine."""
    seconds = []
    for name, shape in (("warm-up", (1, 1)), ("one", (1, 1)), ("all", (12, 12))):
        write_page(trace(*shape), tmp_path / f"{name}.html")
        with opened(browser, tmp_path / f"{name}.html") as (page, taken):
            seconds.append(taken)
            n_sites, n_heads = page.locator("#site option").count(), page.locator("#head option").count()
    assert seconds[2] / seconds[1] < MAX_RATIO
    assert n_sites == 12
    assert n_heads == 13  # and their mean


@pytest.mark.browser
def test_the_page_invents_nothing_that_follows_attention(browser: Browser, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from integrations import tiny_transformers as tiny

    tokenizer = tiny.tokenizer("wordpiece", "<s> $A </s>")
    model = heedful.from_transformers(tiny.bert(len(tokenizer)), tokenizer, name="bert")
    write_page(model.trace(tiny.SENTENCE, what_if=False), tmp_path / "page.html")
    with opened(browser, tmp_path / "page.html", "walk") as (page, _):
        text = page.inner_text("#page")
    assert "this trace records its attention only" in text
    for wrong in ("the vector of the whole text", "a learned vector", "This trace has weights only"):
        assert wrong not in text
