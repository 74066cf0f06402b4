"""Models made quick, in bytes and by the engine, stay close to the model they were made of."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import small
from heedful.attention import Detail, Watch
from heedful.config.presets import PRESETS
from heedful.data.batch import Encoded, collate
from heedful.data.tokenizer import START
from heedful.decoding import Beam, Forced, Greedy, search
from heedful.models import Engine, Seq2Seq, quickest, to_int8

WIDE = {"embedding": 64, "encoder__hidden": 64, "decoder__hidden": 64, "attention__hidden": 64}
KNOWN: dict[str, dict[str, Any]] = {
    "rnnsearch": {},
    "cgru": {},
    "bigru-gru": {},
    "bigru-gru, fed its context": {"decoder__feed": "context", "decoder__read_out": "deep"},
    "bigru-gru, fed its vector": {"decoder__feed": "attentional", "decoder__read_out": "tanh"},
    "transformer": {"encoder__heads": 4, "decoder__heads": 4, "tie": "none"},
    "bigru-gru, fed it without tanh": {"decoder__feed": "attentional", "decoder__read_out": "affine"},
}


def model(name: str, changes: dict[str, Any], seed: int = 3) -> Seq2Seq:
    """Wide enough that its matrices are held in bytes, with weights that make it say something."""
    found = small.built(small.preset(name.split(",")[0], **(WIDE | changes)), 90).float()
    torch.manual_seed(seed)
    for parameter in found.parameters():
        torch.nn.init.normal_(parameter, std=0.15)
    return found


def watching(model: Seq2Seq) -> Watch:
    return Watch(Detail.WEIGHTS, frozenset({model.alignment or ""}))


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_be_held_in_bytes(name: str) -> None:
    whole = model(name, {"encoder__heads": 4, "decoder__heads": 4})
    rough = to_int8(whole)
    with torch.no_grad():
        exact, found = (m.score(small.batch()).logits for m in (whole, rough))
    assert 0 < (found - exact).norm() < 0.05 * exact.norm()


@pytest.mark.parametrize("name", KNOWN)
def test_the_engine_steps_as_the_model_in_bytes_does(name: str) -> None:
    whole = model(name, KNOWN[name])
    engine, rough = quickest(whole), to_int8(whole)
    assert isinstance(engine, Engine)
    with torch.no_grad():
        mine, _ = engine.encode(small.batch())
        theirs, _ = rough.encode(small.batch())
        last = torch.full((3,), START)
        for _ in range(4):
            found = engine.next(mine, last, 5, watching(whole))
            assert found is not None
            stepped = rough.step(theirs, last, watching(whole))
            logits = stepped.logits[:, 0]
            logits[:, [0, 2]] = float("-inf")
            logp = logits.log_softmax(dim=-1)
            torch.testing.assert_close(found.logp, logp.gather(1, found.words), rtol=0, atol=0.03)
            torch.testing.assert_close(found.logp[:, 0], logp.amax(dim=-1), rtol=0, atol=0.03)
            site = whole.alignment or ""
            weights, wanted = found.looks[site].weights, stepped.looks[site].weights
            assert weights is not None
            torch.testing.assert_close(weights, wanted, rtol=0, atol=0.01)
            for one, other in zip(found.state.cells, stepped.state.cells, strict=True):
                torch.testing.assert_close(one, other, rtol=0, atol=0.02)
            mine, theirs, last = found.state, stepped.state, found.words[:, 0]


@pytest.mark.parametrize("how", [Greedy(40), Beam(4, max_length=40)], ids=["greedy", "beam"])
@pytest.mark.parametrize("name", KNOWN)
def test_of_what_the_engine_writes_the_model_thinks_the_same(name: str, how: Greedy | Beam) -> None:
    whole = model(name, KNOWN[name])
    found = search(quickest(whole), small.batch(), how, watching(whole)).best
    for example, (mine, *_) in zip(small.examples(), found, strict=True):
        batch = collate([Encoded(example.source, list(mine.tokens))])
        exact = search(whole, batch, Forced(), watching(whole)).best[0][0]
        assert mine.token_logp == pytest.approx(exact.token_logp, abs=0.4)
        site = whole.alignment or ""
        torch.testing.assert_close(mine.looks[site], exact.looks[site], rtol=0, atol=0.06)


def test_the_transformers_engine_shows_where_it_looked_at_its_own_past() -> None:
    whole = model("transformer", KNOWN["transformer"])
    engine = quickest(whole)
    assert isinstance(engine, Engine)
    for how in (Greedy(12), Beam(3, max_length=12)):
        found = search(engine, small.batch(), how, Watch(Detail.WEIGHTS)).best
        for example, (mine, *_) in zip(small.examples(), found, strict=True):
            batch = collate([Encoded(example.source, list(mine.tokens))])
            exact = search(whole, batch, Forced(), Watch(Detail.WEIGHTS)).best[0][0]
            assert mine.looks.keys() == exact.looks.keys()
            for site, weights in mine.looks.items():
                torch.testing.assert_close(weights, exact.looks[site], rtol=0, atol=0.06)


def test_the_transformers_engine_reads_as_the_model_in_bytes_does() -> None:
    whole = model("transformer", KNOWN["transformer"] | {"encoder__read_end": False})
    engine, rough = quickest(whole), to_int8(whole)
    assert isinstance(engine, Engine)
    with torch.no_grad():
        mine, looks = engine.encode(small.batch(), Watch(Detail.WEIGHTS))
        theirs, wanted = rough.encode(small.batch(), Watch(Detail.WEIGHTS))
        plain, nothing = engine.encode(small.batch())
    assert looks.keys() == wanted.keys() == nothing.keys()
    assert all(look.weights is None for look in nothing.values())
    keep = whole.readable(small.batch())
    for site, memory in theirs.memory.items():
        assert torch.equal(mine.memory[site].keep, memory.keep)
        assert torch.equal(mine.memory[site].keys, plain.memory[site].keys)
        torch.testing.assert_close(mine.memory[site].keys[keep], memory.keys[keep], rtol=0, atol=0.05)
        torch.testing.assert_close(mine.memory[site].values[keep], memory.values[keep], rtol=0, atol=0.05)
    for site, look in looks.items():
        found, exact = look.weights, wanted[site].weights
        assert found is not None
        assert exact is not None
        torch.testing.assert_close(found[keep], exact[keep], rtol=0, atol=0.02)


def test_what_the_engine_does_not_know_is_left_to_the_model() -> None:
    assert isinstance(quickest(model("luong", {})), Seq2Seq)
    engine = quickest(model("cgru", {}))
    assert isinstance(engine, Engine)
    state, _ = engine.encode(small.batch())
    assert engine.next(state, torch.full((3,), START), 1, Watch(Detail.FULL)) is None


@pytest.mark.parametrize("most", [1, 6, 70])
@pytest.mark.parametrize("name", KNOWN)
def test_a_sentence_by_itself_is_written_as_step_after_step(name: str, most: int) -> None:
    whole = model(name, KNOWN[name])
    engine = quickest(whole)
    assert isinstance(engine, Engine)
    for example in small.examples():
        batch = collate([example])
        for watch in (Watch(), watching(whole), Watch(Detail.WEIGHTS)):
            mine = search(engine, batch, Greedy(most), watch).best[0][0]
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(type(engine), "alone", lambda *_: None)
                step_by_step = search(engine, batch, Greedy(most), watch).best[0][0]
            assert mine.tokens == step_by_step.tokens
            assert mine.finished == step_by_step.finished
            assert mine.token_logp == step_by_step.token_logp
            assert mine.looks.keys() == step_by_step.looks.keys()
            for site, weights in mine.looks.items():
                assert torch.equal(weights, step_by_step.looks[site])
