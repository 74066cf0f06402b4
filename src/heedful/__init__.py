"""heedful: train, use, inspect and measure attention models.

>>> import heedful
>>> model = heedful.load("en-fr")  # a bundled model, or a model folder
>>> model("The cat sleeps.")
'Le chat dort.'
>>> trace = model.trace("The cat sleeps.")  # every number of the computation
>>> trace
<Trace of en-fr: 'The cat sleeps.' -> 'Le chat dort.', 5 x 6 tokens, 1 attention site>

| name | what it is |
|---|---|
| `load(name)` | a trained model: a bundled one or a folder |
| `train(data, task=...)` | a new model, from pairs, a data frame, a file or a `Recipe` |
| `Recipe` | every setting of a training: `Recipe.load("recipe.toml")`, `Recipe.from_dict({...})` |
| `Model` | what `load` and `train` return: call it, or use `trace`, `evaluate`, `measure`, `save` |
| `from_transformers(model, tokenizer)` | a model of Hugging Face transformers, to be traced and measured like ours |
| `record(model)` | traces of any PyTorch model with `nn.MultiheadAttention`, such as `nn.Transformer` |
| `Trace` | the record of one run: `plot`, `show`, `to_numpy`, `to_pandas`, `save`, `load` |
| `align(pairs)` | word links of sentence pairs, by a statistical aligner |
| `plot(trace)` | draws a trace, or any matrix of weights, into your own axes |
| `Client(url)` | the models of a server that `heedful serve` runs |
| `attention` | the attention mechanisms as PyTorch modules |
| `register` | your own scores, metrics, views and tasks, which recipes can name |

Names are imported when they are first used: `import heedful` alone does not import PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedful import attention
    from heedful.api import Model, load
    from heedful.api.alignment import align
    from heedful.api.training import train
    from heedful.config import Recipe
    from heedful.integrations.transformers.model import from_transformers
    from heedful.registry import register
    from heedful.serve.client import Client
    from heedful.trace.record_modules import record
    from heedful.trace.schema import Trace
    from heedful.viz.plot import plot

    __version__: str

__all__ = [
    "load",
    "train",
    "from_transformers",
    "record",
    "Recipe",
    "Model",
    "Trace",
    "align",
    "plot",
    "attention",
    "register",
    "Client",
]
MODULES = {
    "Client": "serve.client",
    "Model": "api",
    "Recipe": "config",
    "Trace": "trace.schema",
    "align": "api.alignment",
    "from_transformers": "integrations.transformers.model",  # needs the extra "transformers"
    "load": "api",
    "plot": "viz.plot",
    "record": "trace.record_modules",
    "register": "registry",
    "train": "api.training",  # imports Fabric, which using a model does not need
}


def __getattr__(name: str) -> Any:
    """Import public names when they are first used, so that `import heedful` does not import torch."""
    if name in MODULES:
        return getattr(import_module(f"heedful.{MODULES[name]}"), name)
    if name == "attention":
        return import_module("heedful.attention")
    if name == "__version__":
        return import_module("importlib.metadata").version("heedful")
    raise AttributeError(f"module 'heedful' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Return the public names, for completion in consoles and notebooks."""
    return sorted([*__all__, "__version__", "__doc__"])
