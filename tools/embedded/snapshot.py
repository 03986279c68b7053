"""A CTranslate2 Whisper folder written as a complete Hugging Face snapshot.

`write_snapshot` needs neither torch nor the network. English-only and multilingual models are told apart by their
vocabulary; suppress lists come from the folder's config.json, words and special tokens from its tokenizer.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.numpy import save_file

from tools.embedded.ct2 import read_container, whisper_shape, whisper_tensors
from tools.files import file_sha256

TIMESTAMPS = 1501  # <|0.00|> to <|30.00|> in steps of 20 ms
ENGLISH_ONLY_VOCABULARY = 51864
MARKER = "rehear.json"


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_snapshot(source: Path, out: Path, provenance: Mapping[str, Any], container: Path | None = None) -> Path:
    """Convert folder `source` (config.json, tokenizer.json, and model.bin or `container`) into folder `out`.

    `provenance` goes into the marker `rehear.json`, written last, with the sha256 of each file. Raises CheckError for a
    broken container.
    """
    out.mkdir(parents=True, exist_ok=True)
    tensors = whisper_tensors(read_container(container or source / "model.bin"))
    lists = json.loads((source / "config.json").read_text(encoding="utf-8"))
    tokenizer = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))
    shape = whisper_shape(tensors)
    ids = {token["content"]: int(token["id"]) for token in tokenizer["added_tokens"]}

    save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})
    _write_json(out / "config.json", model_config(shape, ids))
    _write_json(out / "generation_config.json", generation_config(shape, ids, lists))
    _write_json(out / "preprocessor_config.json", preprocessor_config(shape["num_mel_bins"]))
    write_tokenizer(out, tokenizer)
    files = {path.name: file_sha256(path) for path in sorted(out.iterdir()) if path.name != MARKER}
    _write_json(out / MARKER, {"v": 1, **provenance, "files": files})
    return out


def model_config(shape: Mapping[str, int], ids: Mapping[str, int]) -> dict[str, Any]:
    stop = ids["<|endoftext|>"]
    return {
        "architectures": ["WhisperForConditionalGeneration"],
        "model_type": "whisper",
        **shape,
        "activation_function": "gelu",
        "bos_token_id": stop,
        "eos_token_id": stop,
        "pad_token_id": stop,
        "decoder_start_token_id": ids["<|startoftranscript|>"],
        "num_hidden_layers": shape["encoder_layers"],
        "is_encoder_decoder": True,
        "scale_embedding": False,
        "tie_word_embeddings": True,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "encoder_layerdrop": 0.0,
        "decoder_layerdrop": 0.0,
        "init_std": 0.02,
        "use_cache": True,
        "dtype": "float32",
    }


def generation_config(shape: Mapping[str, int], ids: Mapping[str, int], lists: Mapping[str, Any]) -> dict[str, Any]:
    multilingual = shape["vocab_size"] > ENGLISH_ONLY_VOCABULARY
    stop = ids["<|endoftext|>"]
    config: dict[str, Any] = {
        "alignment_heads": lists["alignment_heads"],
        "begin_suppress_tokens": lists["suppress_ids_begin"],
        "bos_token_id": stop,
        "decoder_start_token_id": ids["<|startoftranscript|>"],
        "eos_token_id": stop,
        "is_multilingual": multilingual,
        "max_initial_timestamp_index": 50,
        "max_length": shape["max_target_positions"],
        "no_timestamps_token_id": ids["<|notimestamps|>"],
        "pad_token_id": stop,
        "prev_sot_token_id": ids["<|startofprev|>"],
        "return_timestamps": False,
        "suppress_tokens": lists["suppress_ids"],
    }
    if multilingual:
        tasks = {"transcribe": ids["<|transcribe|>"], "translate": ids["<|translate|>"]}
        languages = {name: at for name, at in ids.items() if at in set(lists["lang_ids"])}
        config |= {"task_to_id": tasks, "lang_to_id": languages}
    else:
        config["forced_decoder_ids"] = [[1, ids["<|notimestamps|>"]]]
    return config


def preprocessor_config(mels: int) -> dict[str, Any]:
    return {
        "feature_extractor_type": "WhisperFeatureExtractor",
        "processor_class": "WhisperProcessor",
        "feature_size": mels,
        "sampling_rate": 16000,
        "chunk_length": 30,
        "hop_length": 160,
        "n_fft": 400,
        "n_samples": 480000,
        "nb_max_frames": 3000,
        "padding_side": "right",
        "padding_value": 0.0,
        "return_attention_mask": False,
    }


def write_tokenizer(out: Path, tokenizer: Mapping[str, Any]) -> None:
    """tokenizer.json with the timestamps that CTranslate2's copy leaves out, and the older files beside it."""
    added = list(tokenizer["added_tokens"])
    special = [token["content"] for token in added]
    first = max(int(token["id"]) for token in added) + 1
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    added += [{"id": first + i, "content": f"<|{i * 0.02:.2f}|>", **plain} for i in range(TIMESTAMPS)]
    _write_json(out / "tokenizer.json", {**tokenizer, "added_tokens": added})
    model = tokenizer["model"]
    _write_json(out / "vocab.json", model["vocab"])
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
    (out / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n", encoding="utf-8")
    stop = "<|endoftext|>"
    names = {"bos_token": stop, "eos_token": stop, "pad_token": stop, "unk_token": stop}
    _write_json(out / "special_tokens_map.json", {**names, "additional_special_tokens": special})
    settings = {
        "tokenizer_class": "WhisperTokenizer",
        "processor_class": "WhisperProcessor",
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "errors": "replace",
        "model_max_length": 1024,
        "return_attention_mask": False,
        "additional_special_tokens": special,
    }
    _write_json(out / "tokenizer_config.json", {**names, **settings})
