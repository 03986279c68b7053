"""A tiny random Nemotron Transcribe, the architecture whole: speech encoder, diarizer, `ME*M` hybrid, timestamp head."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import (
    GenerationConfig,
    Nemotron3_5TranscribeConfig,
    Nemotron3_5TranscribeForConditionalGeneration,
    Nemotron3_5TranscribeProcessor,
    NemotronAsrStreamingFeatureExtractor,
    PreTrainedTokenizerFast,
)

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% for c in m['content'] %}"
    "{% if c['type'] == 'text' %}{{ c['text'] }} {% else %}<|audio|>{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% if not enable_thinking %}<think></think>{% endif %}{% endif %}"
)
SPECIAL = ["<unk>", "<s>", "<|im_start|>", "<|im_end|>"]
TEXTS = 128  # rows of the language model's vocabulary; the audio token comes after them


def tokenizer(extra: list[str]) -> PreTrainedTokenizerFast:
    """Lower-case letters, digits and the bytes that a chat template needs; special tokens; `extra` at the very end."""
    letters = sorted(ByteLevel.alphabet())[: TEXTS - len(SPECIAL)]
    needed = {"Ġ", "Ċ", *"abcdefghijklmnopqrstuvwxyzAOLWF.,:<>/' 0123456789"} - {" "}
    vocab = {
        letter: at for at, letter in enumerate(sorted(needed | set(letters[: TEXTS - len(SPECIAL) - len(needed)])))
    }
    for letter in letters:
        if len(vocab) < TEXTS - len(SPECIAL):
            vocab.setdefault(letter, len(vocab))
    raw = Tokenizer(BPE(vocab=vocab, merges=[], unk_token="<unk>"))
    raw.pre_tokenizer, raw.decoder = ByteLevel(add_prefix_space=False), ByteLevelDecoder()
    raw.add_special_tokens([AddedToken(name, normalized=False) for name in [*SPECIAL, *extra]])
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, unk_token="<unk>", bos_token="<s>", eos_token="<|im_end|>", pad_token="<unk>"
    )


def config() -> Nemotron3_5TranscribeConfig:
    heads = {"num_attention_heads": 2, "num_hidden_layers": 2, "num_mel_bins": 16, "max_position_embeddings": 500}
    speech = {"hidden_size": 32, "intermediate_size": 64, **heads}
    audio = {
        "asr_config": speech,
        "diarization_config": {
            "model_type": "nemotron3_diarization",
            "audio_config": {**speech, "model_type": "nemotron3_diarization_audio", "hidden_size": 16},
            "head_config": {"hidden_size": 8, "num_speakers": 2, "audio_hidden_size": 16},
            "streaming_config": {"num_speakers": 2, "speaker_cache_length": 40},
            "chunk_length": 100,
            "chunk_left_context": 10,
            "chunk_right_context": 10,
        },
    }
    text = {
        "model_type": "nemotron_h",
        "vocab_size": TEXTS,
        "hidden_size": 48,
        "intermediate_size": 32,
        "hybrid_override_pattern": "ME*M",
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "mamba_num_heads": 4,
        "mamba_head_dim": 16,
        "n_groups": 2,
        "ssm_state_size": 16,
        "chunk_size": 16,
        "max_position_embeddings": 2048,
        "moe_intermediate_size": 24,
        "moe_shared_expert_intermediate_size": 32,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "routed_scaling_factor": 2.5,
        "initializer_range": 0.2,
    }
    words = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    return Nemotron3_5TranscribeConfig(
        audio_config=audio,
        text_config=text,
        audio_token_id=TEXTS,
        word_timestamp_config={**words, "vocab_size": 60, "blank_token_id": 59},
    )


def tiny_transcribe(folder: Path, seed: int = 0) -> Path:
    """Write one to `folder` as `save_pretrained` does."""
    torch.manual_seed(seed)
    model = Nemotron3_5TranscribeForConditionalGeneration(config())
    own = tokenizer(["<|audio|>"])
    stop = own.eos_token_id
    model.generation_config = GenerationConfig(eos_token_id=stop, pad_token_id=own.pad_token_id, bos_token_id=1)
    model.save_pretrained(folder)
    extractor = NemotronAsrStreamingFeatureExtractor(feature_size=16, mel_filters_dtype="bfloat16")
    prompt = "audio transcription."
    Nemotron3_5TranscribeProcessor(
        extractor, own, tokenizer([]), chat_template=TEMPLATE, default_transcription_prompt=prompt
    ).save_pretrained(folder)
    return folder
