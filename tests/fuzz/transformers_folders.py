"""Cases of folders of transformers, named `hf:m`, in which files were changed or added."""

from __future__ import annotations

import json
import pickle
from random import Random
from typing import Any

from fuzz.case import LINK, OUTSIDE, Case
from fuzz.corpus import Corpus
from fuzz.model_folders import SIZES, STRANGERS, TOKENIZER_PARTS, mutate_safetensors
from fuzz.mutate import mutate_bytes, mutate_tree, odd_string

CODE = {"AutoConfig": "evil.Config", "AutoModel": "evil.Net", "AutoTokenizer": ["evil.Net", None]}
SETTINGS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("architectures", (["os.system"], ["PreTrainedModel"], ["pipeline"], ["BertModel"], [], ["evil.Net"], [3])),
    ("auto_map", (CODE, {"AutoModel": "owner/name--evil.Net"}, "x")),
    ("model_type", ("bert", "marian", "llama", "evil", "", "t5", None, "timm_wrapper", "llava")),
    ("_attn_implementation", ("owner/name", "owner/name:kernel", "eager", "flash_attention_2", 3)),
    ("attn_implementation", ("owner/name",)),
    ("_name_or_path", ("http://127.0.0.1:9/x", "owner/name", "../../outside")),
    ("tokenizer_class", ("EvilTokenizer", "BertTokenizer", "os.system")), ("dtype", ("float16", "evil", "int8", 3)),
    ("quantization_config", ({"quant_method": "bitsandbytes", "load_in_8bit": True}, {"quant_method": "evil"}, {})),
    ("d_model", SIZES), ("hidden_size", SIZES), ("vocab_size", SIZES), ("max_position_embeddings", SIZES),
    ("encoder_layers", SIZES), ("num_hidden_layers", SIZES), ("encoder_attention_heads", SIZES),
    ("num_attention_heads", SIZES), ("decoder_start_token_id", SIZES), ("eos_token_id", SIZES), ("pad_token_id", SIZES),
    ("id2label", ({}, {"0": 1}, {"x": "y"}, None)), ("is_encoder_decoder", (True, False)), ("num_labels", SIZES),
    ("max_length", SIZES), ("num_beams", SIZES),
)  # fmt: skip
COMMANDS = {
    "marian": (("translate",), ("translate", "--json", "--beam", "2"), ("trace", "The cat sleeps.", "-o", "t.json")),
    "bert": (("trace", "The cat sleeps.", "-o", "t.json"), ("trace", "a", "-o", "t.json", "--what-if")),
}


class _Evil:
    def __reduce__(self) -> Any:
        return __import__, ("stranger.evil",)


def transformers_case(corpus: Corpus, rng: Random) -> Case:
    """Return a changed folder of transformers and a command that uses it."""
    model = rng.choice(sorted(corpus.transformers))
    files = dict(corpus.transformers[model])
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice((*sorted(files), "config.json", "config.json"))
        files[name] = _mutate_file(name, files[name], rng)
    if rng.random() < 0.15:
        _add_file(files, rng)
    if rng.random() < 0.04:
        name = rng.choice(sorted(files))
        files[name] = LINK + f"../../{OUTSIDE}/secret.tsv".encode()
    argv = rng.choice(COMMANDS[model])
    outputs = ("t.json",) if "t.json" in argv else ()
    content = {f"m/{name}": data for name, data in files.items()}
    return Case("transformers", (*argv, "-m", "hf:m"), content, b"The cat sleeps.\n", outputs, private=True)


def _mutate_file(name: str, data: bytes, rng: Random) -> bytes:
    try:
        if name.endswith(".safetensors") and rng.random() < 0.8:
            return mutate_safetensors(data, rng)
        if name.endswith(".json") and rng.random() < 0.9:
            tree = json.loads(data)
            if "tokenizer.json" in name and rng.random() < 0.4:
                tree[rng.choice(("padding", "normalizer", "pre_tokenizer", "truncation", "decoder"))] = rng.choice(
                    TOKENIZER_PARTS
                )
            elif "config" in name and rng.random() < 0.6:
                key, values = rng.choice(SETTINGS)
                tree[key] = rng.choice(values)
            else:
                tree = mutate_tree(tree, rng, rng.choice((1, 1, 2)))
            return json.dumps(tree).encode()
    except (ValueError, TypeError, LookupError):
        pass  # it was changed before, and is not of its format any more
    return mutate_bytes(data, rng, rng.choice((1, 1, 3)))


def _add_file(files: dict[str, bytes], rng: Random) -> None:
    """Add a file that transformers looks for: code, pickled weights, shards outside, an adapter."""
    choice = rng.randrange(4)
    if choice == 0:
        config = {"auto_map": CODE, "model_type": rng.choice(("evil", "bert")), "architectures": ["Net"]}
        files["config.json"], files["evil.py"] = json.dumps(config).encode(), b"import stranger.evil\n"
    elif choice == 1:
        files.pop("model.safetensors", None)
        files["pytorch_model.bin"] = pickle.dumps(_Evil())
    elif choice == 2:
        files.pop("model.safetensors", None)
        shard = rng.choice((f"../../{OUTSIDE}/secret.tsv", "/etc/hostname", "http://127.0.0.1:9/x", odd_string(rng)))
        files["model.safetensors.index.json"] = json.dumps({"metadata": {}, "weight_map": {"x": shard}}).encode()
    else:
        names = ("owner/name", "http://127.0.0.1:9/x", "../../outside", rng.choice(STRANGERS))
        adapter = {"base_model_name_or_path": rng.choice(names), "peft_type": "LORA"}
        files["adapter_config.json"] = json.dumps(adapter).encode()
