"""Small transformers models with random weights, and tokenizers trained on a few sentences."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

transformers: Any = import_module("transformers")  # untyped in parts
SENTENCE = "The cat sleeps on the old chair."
LINES = [SENTENCE, "A dog eats the red fish, quickly.", "Le chat dort sur la vieille chaise.", "Un chien mange."] * 5
PAD, END, UNK, START, MASK = range(5)
SPECIALS = ["<pad>", "</s>", "<unk>", "<s>", "<mask>"]


def tokenizer(kind: str = "metaspace", template: str = "$A </s>") -> Any:
    """Return a subword tokenizer; `kind` is "metaspace", "bytes" (as GPT-2 has) or "wordpiece" (as BERT has)."""
    inner: Any
    trainer: Any
    if kind == "wordpiece":
        inner = Tokenizer(models.WordPiece(unk_token="<unk>"))
        inner.pre_tokenizer, inner.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(vocab_size=100, special_tokens=SPECIALS, show_progress=False)
    else:
        inner = Tokenizer(models.BPE(unk_token="<unk>"))
        is_bytes = kind == "bytes"
        inner.pre_tokenizer = (
            pre_tokenizers.ByteLevel(add_prefix_space=False) if is_bytes else pre_tokenizers.Metaspace()
        )
        inner.decoder = decoders.ByteLevel() if is_bytes else decoders.Metaspace()
        alphabet = pre_tokenizers.ByteLevel.alphabet() if is_bytes else []
        trainer = trainers.BpeTrainer(
            vocab_size=300 if is_bytes else 80, special_tokens=SPECIALS, initial_alphabet=alphabet, show_progress=False
        )
    inner.train_from_iterator(LINES, trainer)
    if template:
        inner.post_processor = processors.TemplateProcessing(
            single=template, special_tokens=[("</s>", END), ("<s>", START)]
        )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", mask_token="<mask>",
        bos_token="<s>" if "<s>" in template else None, cls_token="<s>" if "<s>" in template else None,
    )  # fmt: skip


def randomize(model: Any, seed: int = 1, spread: float = 0.5) -> Any:
    """Give a model matrices that are large enough for attention to differ from uniform and to matter."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * spread)
    return model.eval()


def sizes(vocabulary: int) -> dict[str, Any]:
    """Return the sizes of a small encoder-decoder."""
    return {
        "vocab_size": vocabulary, "d_model": 16, "encoder_layers": 3, "decoder_layers": 3, "encoder_ffn_dim": 32,
        "max_position_embeddings": 40, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "decoder_ffn_dim": 32,
    }  # fmt: skip


def marian(vocabulary: int) -> Any:
    config = transformers.MarianConfig(
        **sizes(vocabulary), pad_token_id=PAD, decoder_start_token_id=PAD, eos_token_id=END, forced_eos_token_id=None
    )
    model = randomize(transformers.MarianMTModel(config))
    model.generation_config.max_length = 12
    return model


def t5(vocabulary: int) -> Any:
    config = transformers.T5Config(
        vocab_size=vocabulary, d_model=16, d_kv=4, num_heads=4, num_layers=3, d_ff=32,
        pad_token_id=PAD, eos_token_id=END, decoder_start_token_id=PAD,
    )  # fmt: skip
    model = randomize(transformers.T5ForConditionalGeneration(config))
    model.generation_config.max_length = 12
    return model


def bart(vocabulary: int, multilingual: bool = False) -> Any:
    """Return BART, which starts with its end token; or mBART, whose first output token is a language code."""
    special = {"pad_token_id": PAD, "eos_token_id": END, "bos_token_id": START, "decoder_start_token_id": END}
    code = {"forced_eos_token_id": None}
    if multilingual:
        model = transformers.MBartForConditionalGeneration(
            transformers.MBartConfig(**sizes(vocabulary), **special, **code)
        )
    else:
        model = transformers.BartForConditionalGeneration(
            transformers.BartConfig(**sizes(vocabulary), **special, **code)
        )
    randomize(model)
    model.generation_config.max_length = 12
    if multilingual:
        model.generation_config.forced_bos_token_id = MASK
    return model


def bert(vocabulary: int, kind: str = "BertForSequenceClassification") -> Any:
    """Return BERT, RoBERTa or DistilBERT with a head or without one, by the name of its class."""
    model_class = getattr(transformers, kind)
    labels = {0: "bad", 1: "fair", 2: "good"}
    if "Distil" in kind:
        config = model_class.config_class(
            vocab_size=vocabulary,
            dim=16,
            n_layers=3,
            n_heads=4,
            hidden_dim=32,
            max_position_embeddings=40,
            id2label=labels,
        )
    else:
        config = model_class.config_class(
            vocab_size=vocabulary, hidden_size=16, num_hidden_layers=3, num_attention_heads=4, intermediate_size=32,
            max_position_embeddings=42, id2label=labels, pad_token_id=PAD,
        )  # fmt: skip
    return randomize(model_class(config))
