"""Tiny random Whispers with a tokenizer of their own, English-only and multilingual, written as Hugging Face folders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import GenerationConfig, WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration

from tools.embedded.snapshot import write_tokenizer

LANGUAGES = ("en", "zh", "de", "es", "fr")


def _tokenizer(languages: Sequence[str]) -> dict:
    """Byte-level BPE of 256 bytes and a few merges, then Whisper's special tokens in Whisper's order."""
    letters = sorted(ByteLevel.alphabet())
    vocab = {letter: at for at, letter in enumerate(letters)}
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("i", "n"), ("a", "n")]
    for left, right in merges:
        vocab[left + right] = len(vocab)
    tokenizer = Tokenizer(BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer, tokenizer.decoder = ByteLevel(add_prefix_space=False), ByteLevelDecoder()
    names = ["endoftext", "startoftranscript", *languages, "translate", "transcribe", "startoflm", "startofprev"]
    names += ["nospeech", "notimestamps"]
    tokenizer.add_special_tokens([AddedToken(f"<|{name}|>", normalized=False) for name in names])
    return json.loads(tokenizer.to_str())


def tiny_whisper(
    folder: Path, multilingual: bool = True, seed: int = 0, dtype: torch.dtype = torch.float32, sharp: float = 4.0
) -> Path:
    """Write a random Whisper (2 + 2 layers, width 32) to `folder`. `sharp` scales its weights: peaked distributions."""
    folder.mkdir(parents=True)
    raw = _tokenizer(LANGUAGES)
    write_tokenizer(folder, raw)
    ids = {token["content"]: token["id"] for token in raw["added_tokens"]}
    stop, start = ids["<|endoftext|>"], ids["<|startoftranscript|>"]
    torch.manual_seed(seed)
    special = {"bos_token_id": stop, "eos_token_id": stop, "pad_token_id": stop, "decoder_start_token_id": start}
    shape = {f"{side}_{what}": n for side in ("encoder", "decoder") for what, n in (("layers", 2), ("ffn_dim", 64))}
    heads = {f"{side}_attention_heads": 2 for side in ("encoder", "decoder")}
    size = max(ids.values()) + 1 + 1501
    config = WhisperConfig(vocab_size=size, d_model=32, max_target_positions=64, **shape, **heads, **special)
    model = WhisperForConditionalGeneration(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1 and "positions" not in name:
                parameter.mul_(sharp)
    settings: dict = {
        "suppress_tokens": [1, 2, 7, start, *(ids[f"<|{t}|>"] for t in ("translate", "transcribe", "startoflm"))],
        "begin_suppress_tokens": [5, stop],
        "is_multilingual": multilingual,
        "no_timestamps_token_id": ids["<|notimestamps|>"],
        "prev_sot_token_id": ids["<|startofprev|>"],
        "max_length": 64,
        "return_timestamps": False,
        **special,
    }
    if multilingual:
        settings["lang_to_id"] = {f"<|{code}|>": ids[f"<|{code}|>"] for code in LANGUAGES}
        settings["task_to_id"] = {task: ids[f"<|{task}|>"] for task in ("transcribe", "translate")}
    else:
        settings["forced_decoder_ids"] = [[1, ids["<|notimestamps|>"]]]
    model.generation_config = GenerationConfig(**settings)
    model.to(dtype).save_pretrained(folder)
    WhisperFeatureExtractor(feature_size=80).save_pretrained(folder)
    return folder


def noise(seed: int, seconds: float = 1.0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(int(16000 * seconds)) * 0.1).astype(np.float32)
