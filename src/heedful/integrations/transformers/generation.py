"""Outputs by the model's own `generate`, with the user's generation settings, optionally with edited attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import StoppingCriteria, StoppingCriteriaList

from heedful.attention import NO_HOOKS, Hooks
from heedful.config import DecodingOptions
from heedful.decoding import NEVER, StopCondition
from heedful.errors import DataError
from heedful.integrations.transformers.adapted import AdaptedModel
from heedful.integrations.transformers.folder_checks import library_errors
from heedful.integrations.transformers.seq2seq import Seq2SeqAdapter

NAMES = {  # of our options -> those of `generate`
    "beam": "num_beams",
    "length_penalty": "length_penalty",
    "n_best": "num_return_sequences",
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "max_length": "max_new_tokens",
}
IGNORED = ("method", "seed", "batch_size")  # handled here
CONSTRAINTS = (  # generation settings with which a greedy output need not be the most likely token
    "bad_words_ids", "forced_bos_token_id", "forced_eos_token_id", "suppress_tokens", "begin_suppress_tokens",
    "no_repeat_ngram_size", "repetition_penalty", "encoder_no_repeat_ngram_size", "min_length", "min_new_tokens",
)  # fmt: skip


class Generated(NamedTuple):
    """The token ids of every output (row by row, `n_best` per input), without the start token."""

    ids: list[list[int]]
    method: str
    settings: Mapping[str, Any]


def generate(
    adapted: AdaptedModel,
    tensors: Mapping[str, Tensor],
    options: DecodingOptions,
    *,
    hooks: Hooks = NO_HOOKS,
    prefix: Sequence[int] = (),
    start: int | None = None,
    stop: StopCondition = NEVER,
) -> Generated:
    """Generate with the model's own settings, except those that `options` set; `prefix` fixes the first tokens.

    The prefix of a decoder-only model, and its prompt, are part of `tensors`; `start` is the id that an encoder-decoder
    begins with.
    """
    settings = _settings(options)
    criteria = StoppingCriteriaList([_Stop(stop, options.max_length)])
    recording = adapted.record(hooks) if hooks.edit is not None else nullcontext()
    with torch.random.fork_rng(enabled=bool(settings.get("do_sample"))), torch.inference_mode(), recording:
        if settings.get("do_sample"):
            torch.manual_seed(options.seed % 2**63)
        inner, arguments = _arguments(adapted, tensors, start, prefix)
        arguments |= settings
        with library_errors(f"{type(inner).__name__}: its generate failed"):
            output = inner.generate(**arguments, stopping_criteria=criteria, return_dict_in_generate=False)
    config: Any = adapted.inner.generation_config
    n_beams = settings.get("num_beams", config.num_beams) or 1
    sampled = settings.get("do_sample", config.do_sample)
    method = "sample" if sampled else "beam" if n_beams > 1 else "generate" if _is_constrained(config) else "greedy"
    rows = output.tolist()
    skipped = tensors["input_ids"].shape[1] if start is None else int(rows[0][:1] == [start])  # Whisper leaves it out
    ids = [_strip(row[skipped:], arguments.get("eos_token_id", config.eos_token_id)) for row in rows]
    return Generated(ids, method, {"method": method, "beam": n_beams, **settings})


def _settings(options: DecodingOptions) -> dict[str, Any]:
    """Return the arguments of `generate` for the options that were set."""
    given = {name: getattr(options, name) for name in options.model_fields_set}
    unknown = [name for name in given if name not in NAMES and name not in IGNORED and given[name]]
    if unknown:
        raise DataError(
            f"{unknown[0]}: models of transformers generate by their own `generate`, which has no such option;"
            f" it takes {', '.join(NAMES)}"
        )
    settings = {NAMES[name]: value for name, value in given.items() if name in NAMES}
    if given.get("method") == "sample":
        settings["do_sample"] = True
    if given.get("method") == "greedy":
        settings |= {"do_sample": False, "num_beams": 1}
    n_best = given.get("n_best", 1)
    if n_best > 1 and not settings.get("do_sample"):
        settings["num_beams"] = max(settings.get("num_beams", 1), n_best)
    return settings


def _is_constrained(config: Any) -> bool:
    return any(getattr(config, name, None) not in (None, 0, 1.0, []) for name in CONSTRAINTS)


def _arguments(
    adapted: AdaptedModel, tensors: Mapping[str, Tensor], start: int | None, prefix: Sequence[int]
) -> tuple[Any, dict[str, Any]]:
    """Return the model that generates, and its arguments."""
    if start is None:
        return adapted.inner, dict(tensors)
    assert isinstance(adapted, Seq2SeqAdapter)
    rows = len(next(iter(tensors.values())))
    return adapted.generation_inputs(tensors, torch.tensor([[start, *prefix]]).repeat(rows, 1))


def _strip(ids: list[int], ends: Any) -> list[int]:
    """Return an output up to its end token; what follows is padding."""
    ends = {ends} if isinstance(ends, int) else set(ends or ())
    last = next((position for position, i in enumerate(ids) if i in ends and position > 0), len(ids) - 1)
    return ids[: last + 1]


class _Stop(StoppingCriteria):
    """Raises when the time limit has passed or the caller has cancelled."""

    def __init__(self, stop: StopCondition, max_length: int) -> None:
        self.stop, self.max_length, self.step = stop, max_length, 0

    def __call__(self, input_ids: Tensor, scores: Any, **options: Any) -> Any:
        self.step += 1
        self.stop.check(self.step, self.max_length)
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)
