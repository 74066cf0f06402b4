"""A transformers model with named attention sites, whose attention can be recorded and edited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from transformers import PreTrainedModel

from heedful.attention import AttentionOutput, Hooks
from heedful.errors import ModelError
from heedful.integrations.transformers.attention_function import ModelRecording, ReadPositions
from heedful.integrations.transformers.fallback import record_fallback
from heedful.integrations.transformers.family import Family
from heedful.integrations.transformers.implementation import record_model
from heedful.integrations.transformers.sites import find_sites
from heedful.trace.schema import Site

Outputs = Mapping[str, list[AttentionOutput]]


class AdaptedModel:
    """A model and its sites. Nothing is stored in the model, and its own attention is back after every call."""

    def __init__(self, inner: PreTrainedModel, family: Family, alignment_site: str | None = None) -> None:
        self.inner = inner
        self.family = family
        self.model_sites = find_sites(inner, family.stacks)
        self.chosen_site = alignment_site
        names = [site.id for site in self.sites]
        if alignment_site is not None and alignment_site not in names:
            raise ModelError(f"alignment_site: {type(inner).__name__} has no site {alignment_site}; {', '.join(names)}")

    @property
    def sites(self) -> tuple[Site, ...]:
        """Every attention site."""
        return tuple(site.site for site in self.model_sites)

    @property
    def alignment_site(self) -> str | None:
        """The site whose weights serve as the alignment: that of the caller, or the default of the kind of model."""
        return self.chosen_site or self.default_site

    @property
    def default_site(self) -> str | None:
        """The last self-attention of the model."""
        return self.last_site

    @property
    def last_site(self) -> str:
        """The last self-attention of the model."""
        return [site.id for site in self.model_sites if site.site.kind == "self"][-1]

    @contextmanager
    def record(self, hooks: Hooks, *, rows: int = 1, read: ReadPositions | None = None) -> Iterator[Outputs]:
        """Record the calls of the model in this block, and edit them as the hooks say.

        `rows` is the number of hypotheses per sentence; `read` are queries of the last site that are their own site.
        """
        if self.inner.training:
            raise ModelError(f"{type(self.inner).__name__} is in training mode, so its outputs are random: call eval()")
        recording = ModelRecording(
            hooks,
            {id(site.module): site.id for site in self.model_sites},
            {},
            causal=frozenset(s.id for s in self.model_sites if s.stack == "dec" and s.site.kind == "self"),
            decoder=frozenset(s.id for s in self.model_sites if s.stack == "dec"),
            rows=rows,
            read={} if read is None else {self.last_site: read},
        )
        with ExitStack() as stack:
            outputs = stack.enter_context(record_model(self.inner, recording))
            stack.enter_context(record_fallback(self.model_sites))
            yield outputs
