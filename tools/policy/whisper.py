"""Any Hugging Face Whisper as a policy: encode, prompt, decode step, teacher-forced log-probs, surface, export.

English-only and multilingual alike. No timestamps: the decoder prompt always ends in `<|notimestamps|>`, and answers
are cut from it by position, never by value. float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tools.errors import CheckError, UsageError
from tools.policy.base import NamedParameters, Tokens
from tools.policy.export import write_export
from tools.policy.languages import language_code, pin_language
from tools.policy.product import linear
from tools.policy.surface import select_surface
from tools.policy.token_logprobs import token_logprobs
from tools.policy.vocabulary import build_vocabulary
from tools.policy.weights import plain_state, state_digest
from tools.policy.whisper_decoder import WhisperState, cross_keys
from tools.policy.whisper_encoder import encode_clip
from tools.policy.whisper_files import load_parts
from tools.policy.whisper_forcing import hidden_states, pack

RATE = 16_000


class WhisperPolicy:
    """A Whisper under training. `B` clips, `n` answers each; `S` encoder frames (1500), `d` model width."""

    def __init__(self, model: Any, tokenizer: Any, extractor: Any, folder: Path) -> None:
        self.model, self.tokenizer, self.extractor, self.folder = model.eval(), tokenizer, extractor, folder
        self.encoder, self.decoder = model.model.encoder, model.model.decoder
        self.heads: int = model.config.decoder_attention_heads
        self.max_target: int = model.config.max_target_positions
        self.window_s = float(extractor.chunk_length)
        generation = model.generation_config
        suppress = generation.suppress_tokens or getattr(model.config, "suppress_tokens", None) or []
        begin = generation.begin_suppress_tokens or getattr(model.config, "begin_suppress_tokens", None) or []
        size = model.config.vocab_size
        self.vocabulary = build_vocabulary(size, tokenizer, suppress, begin, self.device)
        self.languages = self._languages()
        declared = getattr(generation, "is_multilingual", None)
        self.multilingual: bool = bool(self.languages) and (declared if declared is not None else size >= 51865)
        self.base_digest = self.digest

    @classmethod
    def load(cls, folder: str | Path, device: str = "cpu") -> WhisperPolicy:
        """Load a Hugging Face Whisper folder in float32. Raises UsageError where it is not one."""
        return cls(*load_parts(Path(folder), device), Path(folder))

    @property
    def device(self) -> torch.device:
        return self.model.device

    # -- digests ------------------------------------------------------------------------------------------------

    def _digest(self, prefix: str) -> str:
        """Computed anew each time: a fused optimiser writes tensors without telling their version counters."""
        state = {name: t for name, t in plain_state(self.model).items() if name.startswith(prefix)}
        return state_digest(state, self.model.config.to_dict())

    @property
    def digest(self) -> str:
        """sha256 over every tensor and the shape fields of the config; follows the weights as they train."""
        return self._digest("")

    @property
    def encoder_digest(self) -> str:
        return self._digest("model.encoder.")

    @property
    def encoder_trains(self) -> bool:
        """Whether the present surface holds a tensor of the encoder; its outputs can then not be kept."""
        return any(p.requires_grad for p in self.encoder.parameters())

    # -- audio --------------------------------------------------------------------------------------------------

    def features(self, wave: np.ndarray) -> Tensor:
        """Log-mel [mels, 2 * S] of a 16 kHz mono float32 wave of at most `window_s` seconds. Raises CheckError."""
        if wave.ndim != 1 or not 0 < len(wave) <= self.window_s * RATE:
            raise CheckError(
                f"A clip of shape {wave.shape} at 16 kHz does not fit the model's window of {self.window_s:g} s; "
                "cut it, or leave it out of training and evaluation alike."
            )
        with torch.autocast("cpu", enabled=False):  # features are the same whatever arithmetic the training forward has
            mel = self.extractor(wave.astype(np.float32), sampling_rate=RATE, return_tensors="pt").input_features
        return mel[0].to(self.device, self.decoder.layer_norm.weight.dtype)

    def encode(self, waves: Sequence[np.ndarray]) -> Tensor:
        """[B, S, d]; one clip at a time. Carries gradients only where encoder parameters are trainable."""
        return self.encode_features([self.features(wave) for wave in waves])

    def encode_features(self, features: Sequence[Tensor]) -> Tensor:
        train = torch.is_grad_enabled() and self.encoder_trains
        with torch.set_grad_enabled(train):
            return torch.cat([encode_clip(self.encoder, mel) for mel in features])

    # -- prompt and text ----------------------------------------------------------------------------------------

    def _id(self, token: str) -> int:
        return int(self.tokenizer.convert_tokens_to_ids(token))

    def _languages(self) -> dict[str, int]:
        known = getattr(self.model.generation_config, "lang_to_id", None) or {
            token: at for token, at in self.tokenizer.get_added_vocab().items() if language_code(token)
        }
        return {token.strip("<|>"): int(at) for token, at in known.items()}

    def prompt_ids(self, prompt: str = "", lang: str | None = None, *, clip_id: str = "") -> Tokens:
        """The full decoder prompt: `<|startofprev|>` and the prompt's last tokens, start, language, task, no timestamps.

        Raises UsageError naming the clip: language missing or unknown (multilingual), not English (English-only).
        """
        start = [self._id("<|startoftranscript|>")]
        if self.multilingual:
            start += [self.languages[pin_language(lang, self.languages, clip_id)], self._id("<|transcribe|>")]
        elif lang and lang.strip() and language_code(lang) != "en":
            raise UsageError(
                f"Clip {clip_id or '(no id)'} is in {lang!r}, and {self.folder.name} is an English-only model; "
                "use a multilingual one."
            )
        return (*self._previous(prompt), *start, self._id("<|notimestamps|>"))

    def _previous(self, prompt: str) -> list[int]:
        if not prompt.strip():
            return []
        words = self.tokenizer(f" {prompt.strip()}", add_special_tokens=False).input_ids
        if any(at in self.vocabulary.special for at in words):
            raise UsageError(f"The prompt {prompt!r} holds special tokens; write it as plain text.")
        return [self._id("<|startofprev|>"), *words[-(self.max_target // 2 - 1) :]]

    def text(self, tokens: Sequence[int]) -> str:
        """Words of an answer: special tokens left out, outer blanks stripped, nothing else cleaned."""
        words = [int(at) for at in tokens if int(at) not in self.vocabulary.special]
        return self.tokenizer.decode(words, skip_special_tokens=False, clean_up_tokenization_spaces=False).strip()

    def answer_tokens(self, text: str) -> Tokens:
        """Tokens of a written answer, stop token included: words follow a blank, as the model was taught them."""
        return (*self.tokenizer(f" {text.strip()}", add_special_tokens=False).input_ids, self.vocabulary.stop)

    # -- decoding -----------------------------------------------------------------------------------------------

    @property
    def embedding(self) -> Tensor:
        return self.decoder.embed_tokens.weight

    def cross(self, encoded: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Per layer the cross-attention keys and values [B, heads, S, d / heads] shared by a clip's answers."""
        return [cross_keys(layer, encoded, self.heads) for layer in self.decoder.layers]

    def begin(
        self, encoded: Tensor, prompts: Sequence[Tokens], room: int, capacity: int
    ) -> tuple[WhisperState, Tensor]:
        """Prefill one prompt a clip (all of one length). Returns the state (B rows) and logits [B, W].

        `room` tokens are to come; the state may fork up to `capacity` rows.
        """
        tokens = torch.tensor(prompts, device=self.device)
        places = tokens.shape[1] + room
        state = WhisperState(self.decoder, self.embedding, self.cross(encoded), self.heads, places, capacity)
        return state, self.logits(state.forward(tokens))

    def step(self, state: WhisperState, tokens: Tensor) -> Tensor:
        """Feed one token a row [rows]; logits [rows, W] of the next."""
        return self.logits(state.forward(tokens[:, None]))

    def logits(self, hidden: Tensor) -> Tensor:
        """[rows, d] -> [rows, W], unmasked; W columns as in `vocabulary`."""
        return linear(hidden, self.model.proj_out.weight[: self.vocabulary.width])

    # -- teacher forcing ----------------------------------------------------------------------------------------

    def logprobs(
        self,
        encoded: Tensor,
        prompts: Sequence[Tokens],
        answers: Sequence[Sequence[Tokens]],
        temperature: float = 1.0,
    ) -> tuple[Tensor, Tensor]:
        """Log-probs [R, T] of the answers' tokens under the sampling distribution, and mask [R, T] from lengths.

        `answers[b]` are clip b's answers (stop token included where there was one); rows run clip by clip, R is their
        number and T the longest answer. Differentiable in every trainable parameter and in `encoded`.
        """
        self._check_answers(answers)
        packed = pack(prompts, answers, self.device)
        hidden = hidden_states(self.decoder, self.heads, encoded, packed)[packed.predicts]
        weight = self.model.proj_out.weight
        values = token_logprobs(hidden, weight, packed.targets, packed.first, self.vocabulary, temperature)
        return values.new_zeros(packed.mask.shape).masked_scatter(packed.mask, values), packed.mask

    def _check_answers(self, answers: Sequence[Sequence[Tokens]]) -> None:
        for b, answer in ((b, answer) for b, group in enumerate(answers) for answer in group):
            if not answer:
                raise CheckError(f"An answer of clip {b} of the batch has no tokens; leave it out of its group.")
            for i, token in enumerate(answer):
                if not self.vocabulary.allowed(token, first=i == 0):
                    raise CheckError(f"Token {token} of an answer of clip {b} of the batch can never be sampled.")

    # -- training surface and export ----------------------------------------------------------------------------

    def trainable(self, surface: str | Sequence[str]) -> NamedParameters:
        """Mark exactly the surface as trainable and return it by name; see `tools.policy.surface`."""
        return select_surface(self.model, surface)

    def export(self, folder: str | Path, provenance: dict[str, Any]) -> Path:
        """A Hugging Face folder that plain transformers loads offline; see `tools.policy.export`."""
        return write_export(self, Path(folder), provenance)
