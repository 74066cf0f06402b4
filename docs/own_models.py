"""Write two small models of transformers, which docs/own-model.ipynb opens: a translator and a classifier.

They learn the generated worlds for some seconds each, so that there is something to see.

    python docs/own_models.py FOLDER
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from heedful.config import WorldConfig
from heedful.data.pairs import TextPair, world_pairs

PAD, END, UNK, START = range(4)
ROWS, TRANSLATOR_STEPS, CLASSIFIER_STEPS = 64, 400, 120


def word_tokenizer(texts: Sequence[str], template: str) -> Any:
    """Return a tokenizer of words, as transformers opens it."""
    words = sorted({word for text in texts for word in text.split()})
    vocabulary = {token: i for i, token in enumerate(["<pad>", "</s>", "<unk>", "<s>", *words])}
    inner: Any = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.post_processor = processors.TemplateProcessing(
        single=template, special_tokens=[("</s>", END), ("<s>", START)]
    )
    first = {"cls_token": "<s>"} if template.startswith("<s>") else {}
    make: Any = transformers.PreTrainedTokenizerFast
    return make(tokenizer_object=inner, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", **first)


def train(model: Any, tokenizer: Any, pairs: Sequence[TextPair], steps: int, labels: Sequence[str] = ()) -> None:
    """Train a model for some steps."""
    torch.manual_seed(1)
    rng = random.Random(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)
    for _ in range(steps):
        rows = rng.sample(list(pairs), ROWS)
        batch = dict(tokenizer([row.source for row in rows], padding=True, return_tensors="pt"))
        batch.pop("token_type_ids", None)
        if labels:
            batch["labels"] = torch.tensor([labels.index(row.target) for row in rows])
        else:
            ids = tokenizer([row.target for row in rows], padding=True, return_tensors="pt")["input_ids"]
            batch["labels"] = ids.masked_fill(ids == PAD, -100)
        model(**batch).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()


def write_translator(folder: Path) -> list[TextPair]:
    """Write a Marian-shaped translator of the world "phrases"; return held-out pairs with gold links."""
    splits = world_pairs(WorldConfig(train=6_000, valid=10, test=60, max_words=9))
    tokenizer = word_tokenizer([text for pair in splits["train"] for text in (pair.source, pair.target)], "$A </s>")
    config = transformers.MarianConfig(
        vocab_size=len(tokenizer), d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, max_position_embeddings=64, dropout=0.0,
        pad_token_id=PAD, eos_token_id=END, decoder_start_token_id=PAD, forced_eos_token_id=None, init_std=0.1,
    )  # fmt: skip
    model = transformers.MarianMTModel(config)
    generation: Any = model.generation_config
    generation.max_new_tokens = 30
    train(model, tokenizer, splits["train"], TRANSLATOR_STEPS)
    _save(folder, model, tokenizer)
    return splits["test"]


def write_classifier(folder: Path) -> list[TextPair]:
    """Write a BERT-shaped classifier of the world "moods"; return held-out texts with their labels."""
    splits = world_pairs(WorldConfig(name="moods", train=3_000, valid=10, test=60, max_words=12))
    labels = sorted({pair.target for pair in splits["train"]})
    tokenizer = word_tokenizer([pair.source for pair in splits["train"]], "<s> $A </s>")
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        max_position_embeddings=64, id2label=dict(enumerate(labels)), hidden_dropout_prob=0.0, pad_token_id=PAD,
        attention_probs_dropout_prob=0.0, initializer_range=0.1,
    )  # fmt: skip
    model: Any = transformers.BertForSequenceClassification(config)
    train(model, tokenizer, splits["train"], CLASSIFIER_STEPS, labels)
    _save(folder, model, tokenizer)
    return splits["test"]


def _save(folder: Path, model: Any, tokenizer: Any) -> None:
    logging: Any = transformers.utils.logging
    logging.disable_progress_bar()
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    base = Path(sys.argv[1])
    write_translator(base / "translator")
    write_classifier(base / "classifier")
