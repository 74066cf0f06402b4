"""The cost of recording a transformers model: CPU time of a trace over that of the model's own eager attention.

    python benchmarks/transformers_overhead.py

A trace generates greedily and computes the output once more with hooks on. Compared, on one thread, are `generate` with
eager attention, `generate` with recording on in every step, and a whole trace at `weights` without what-if.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from transformers import MarianConfig, MarianMTModel, PreTrainedTokenizerFast

import heedful
from heedful.attention import Detail, Hooks

STEPS, ROUNDS = 40, 5


def build() -> heedful.Model:
    """Return a translator of the size of OPUS-MT (6 layers, 8 heads, 512 wide) with random weights and 8,000 words."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    vocabulary = {"<pad>": 0, "</s>": 1, "<unk>": 2} | {f"w{i}": i for i in range(3, 8_000)}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()  # type: ignore[assignment]
    inner.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])  # type: ignore[assignment]
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")
    torch.manual_seed(1)
    config = MarianConfig(
        vocab_size=8_000, d_model=512, encoder_layers=6, decoder_layers=6, encoder_attention_heads=8,
        decoder_attention_heads=8, encoder_ffn_dim=2048, decoder_ffn_dim=2048, pad_token_id=0, eos_token_id=1,
        decoder_start_token_id=0, forced_eos_token_id=None,
    )  # fmt: skip
    model = MarianMTModel(config).eval()
    model.generation_config.min_new_tokens = model.generation_config.max_new_tokens = STEPS
    return heedful.from_transformers(model, tokenizer, name="marian")


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of a call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    """Print the median CPU times and their ratios."""
    torch.set_num_threads(1)
    model = build()
    adapter = model.loaded.model
    line = " ".join(f"w{i}" for i in range(10, 40))
    ids = torch.tensor([model.loaded.text.encode(line)])

    def generate() -> None:
        with torch.inference_mode():
            model.model.generate(input_ids=ids)

    def generate_recorded() -> None:
        with adapter.record(Hooks(Detail.WEIGHTS)):
            generate()

    def trace() -> None:
        model.trace(line, detail="weights", what_if=False)

    model.model.set_attn_implementation("eager")
    works = {"eager generate": generate, "recorded generate": generate_recorded, "trace at weights": trace}
    times: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        work()
    for _ in range(ROUNDS):
        for name, work in works.items():
            times[name].append(cpu_seconds(work))
    base = statistics.median(times["eager generate"])
    for name, values in times.items():
        ratios = [value / own for value, own in zip(values, times["eager generate"], strict=True)]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        print(f"{name:<20}{statistics.median(values):7.3f} s {statistics.median(values) / base:6.2f} ({spread})")


if __name__ == "__main__":
    main()
