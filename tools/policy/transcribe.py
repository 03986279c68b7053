"""Nemotron 3.5 Transcribe, the native transformers class, as a policy: the same protocol as Whisper's, the same trainer.

A speech encoder and a projector turn a clip into one vector per 80 ms; a hybrid language model (Mamba, attention,
experts) reads the request with those vectors in the place of the audio token, and writes the transcript. What `encode`
gives is therefore as long as the clip: one [S, d] a clip, stacked only where all are of one length.

Routers, experts, the output head, the timestamp encoder and head, and the diarization model are frozen, always.
Source: transformers 5.24 `models/nemotron3_5_transcribe`, `models/nemotron_h`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tools.errors import CheckError, UsageError
from tools.policy.base import NamedParameters, Tokens, join
from tools.policy.product import linear
from tools.policy.surface import select_named
from tools.policy.token_logprobs import token_logprobs
from tools.policy.transcribe_export import write_transcribe
from tools.policy.transcribe_files import ENCODER, SURFACES, forbidden, load_parts, vocabulary_of
from tools.policy.transcribe_state import TranscribeState, Windows
from tools.policy.weights import plain_state, state_digest

RATE = 16_000
FRAME_S = 0.08


class TranscribePolicy:
    """A Nemotron Transcribe under training. `B` clips, `n` answers each; `S` audio vectors of width `d` a clip.

    `precision` "bf16": matrix products in bfloat16, trained tensors kept in float32; for GPUs.
    """

    multilingual = True

    def __init__(self, model: Any, processor: Any, folder: Path, precision: str = "float32") -> None:
        self.model, self.processor, self.folder, self.precision = model.eval(), processor, folder, precision
        self.tokenizer = processor.tokenizer
        self.language: Any = model.model.language_model
        self.audio_token = int(model.config.audio_token_id)
        positions = int(model.config.text_config.max_position_embeddings)
        self.max_target = positions - positions // 2  # the other half is left to audio
        self.window_s = positions // 2 * FRAME_S
        self.vocabulary = vocabulary_of(model, self.tokenizer, self.device)
        self.stored_types = {name: tensor.dtype for name, tensor in model.state_dict().items()}
        for parameter in model.parameters():
            parameter.requires_grad_(False)
        self.base_digest = self.digest

    @classmethod
    def load(cls, folder: str | Path, device: str = "cpu", precision: str = "float32") -> TranscribePolicy:
        """Load a Hugging Face folder of model type nemo_speechlm. Raises UsageError where it is not one."""
        return cls(*load_parts(Path(folder), device, precision), Path(folder), precision)

    @property
    def device(self) -> torch.device:
        return self.model.device

    # -- digests ------------------------------------------------------------------------------------------------

    def _digest(self, prefixes: tuple[str, ...]) -> str:
        state = {name: t for name, t in plain_state(self.model).items() if name.startswith(prefixes)}
        return state_digest(state, self.model.config.to_dict())

    @property
    def digest(self) -> str:
        """sha256 over every tensor and the model's type; follows the weights as they train."""
        return self._digest(("",))

    @property
    def encoder_digest(self) -> str:
        return self._digest(ENCODER)

    # -- audio --------------------------------------------------------------------------------------------------

    @property
    def encoder_trains(self) -> bool:
        """Whether the present surface holds a tensor of the speech encoder or the projector."""
        return any(p.requires_grad for name, p in self.model.named_parameters() if name.startswith(ENCODER))

    def features(self, wave: np.ndarray) -> tuple[Tensor, Tensor]:
        """Log-mel [1, frames, mels] of a 16 kHz mono float32 wave, and its mask [1, frames]. Raises CheckError."""
        if wave.ndim != 1 or not 0 < len(wave) <= self.window_s * RATE:
            raise CheckError(
                f"A clip of shape {wave.shape} at 16 kHz does not fit the model's window of {self.window_s:g} s; "
                "cut it, or leave it out of training and evaluation alike."
            )
        audio = wave.astype(np.float32)
        with torch.autocast("cpu", enabled=False):  # features are the same whatever arithmetic the training forward has
            parts = self.processor(text=[self.processor.audio_token], audio=[audio], sampling_rate=RATE)
        return parts["input_features"].to(self.device), parts["input_features_mask"].to(self.device)

    def encode(self, waves: Sequence[np.ndarray]) -> Any:
        """One [S, d] a clip, each clip alone; gradients only where a tensor of the encoder trains."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.encoder_trains):
            return join([self._encode_clip(wave) for wave in waves])

    def _encode_clip(self, wave: np.ndarray) -> Tensor:
        features, mask = self.features(wave)
        vectors: Tensor = self.model.get_audio_features(features, mask, return_dict=True).pooler_output
        return vectors.float()

    # -- prompt and text ----------------------------------------------------------------------------------------

    def prompt_ids(self, prompt: str = "", lang: str | None = None, *, clip_id: str = "") -> Tokens:
        """The request as tokens, the audio token once in it: the instruction first, then the audio.

        An empty prompt is the processor's default; `{language}` in it stands for the clip's language. Raises UsageError.
        """
        words = prompt.strip() or self.processor.default_transcription_prompt
        if "{language}" in words:
            if not (lang or "").strip():
                raise UsageError(f"Clip {clip_id or '(no id)'} has no language, and the prompt asks for one: give it.")
            words = words.replace("{language}", str(lang))
        content = [{"type": "text", "text": words}, {"type": "audio", "audio": ""}]
        text = self.processor.apply_chat_template(
            [{"role": "user", "content": content}], tokenize=False, add_generation_prompt=True, enable_thinking=False
        )
        ids = tuple(int(i) for i in self.tokenizer(text, add_special_tokens=False).input_ids)
        if ids.count(self.audio_token) != 1:
            raise UsageError(f"The prompt {prompt!r} does not leave exactly one place for the audio: reword it.")
        return ids

    def text(self, tokens: Sequence[int]) -> str:
        """Words of an answer: special tokens left out, outer blanks stripped, nothing else cleaned."""
        words = [int(at) for at in tokens if int(at) not in self.vocabulary.special]
        return str(self.tokenizer.decode(words, clean_up_tokenization_spaces=False)).strip()

    def answer_tokens(self, text: str) -> Tokens:
        """Tokens of a written answer, stop token included."""
        return (*self.tokenizer(text.strip(), add_special_tokens=False).input_ids, self.vocabulary.stop)

    # -- decoding -----------------------------------------------------------------------------------------------

    def _arithmetic(self) -> AbstractContextManager[Any]:
        return torch.autocast(self.device.type, torch.bfloat16) if self.precision == "bf16" else nullcontext()

    def begin(
        self, encoded: Any, prompts: Sequence[Tokens], room: int, capacity: int
    ) -> tuple[TranscribeState, Tensor]:
        """Read one request a clip. Returns the state (B rows) and logits [B, W]; see `tools.policy.base`."""
        with self._arithmetic():
            state, hidden = TranscribeState.read(self.language, self._windows(encoded, prompts))
        return state, self.logits(hidden)

    def step(self, state: TranscribeState, tokens: Tensor) -> Tensor:
        """Feed one token a row [rows]; logits [rows, W] of the next."""
        with self._arithmetic():
            hidden = state.forward(tokens[:, None])
        return self.logits(hidden[:, -1])

    def logits(self, hidden: Tensor) -> Tensor:
        """[rows, d] -> [rows, W], unmasked, float32; W columns as in `vocabulary`."""
        return linear(hidden.float(), self.model.lm_head.weight[: self.vocabulary.width].float())

    def _windows(self, encoded: Any, prompts: Sequence[Tokens]) -> Windows:
        """The requests as vectors, audio in the place of its token, padded on the left."""
        rows = []
        for audio, prompt in zip(encoded, prompts, strict=True):
            at = prompt.index(self.audio_token)
            table = self.language.get_input_embeddings()
            before, after = (
                table(torch.tensor(part, dtype=torch.long, device=self.device))
                for part in (prompt[:at], prompt[at + 1 :])
            )
            rows.append(torch.cat([before, audio.to(before.dtype), after]))
        return Windows.pad(rows)

    # -- teacher forcing ----------------------------------------------------------------------------------------

    def logprobs(
        self,
        encoded: Any,
        prompts: Sequence[Tokens],
        answers: Sequence[Sequence[Tokens]],
        temperature: float = 1.0,
    ) -> tuple[Tensor, Tensor]:
        """Log-probs [R, T] of the answers' tokens under the sampling distribution, and mask [R, T] from lengths.

        A request is read once, whatever the number of its answers. Differentiable in all that trains and in `encoded`.
        """
        rows = [(b, answer) for b, group in enumerate(answers) for answer in group]
        self._check(rows)
        with self._arithmetic():
            state, first = TranscribeState.read(self.language, self._windows(encoded, prompts))
            hidden = state.forced([b for b, _ in rows], [answer[:-1] for _, answer in rows], first)
        lengths = torch.tensor([[len(answer)] for _, answer in rows], device=self.device)
        mask = torch.arange(hidden.shape[1], device=self.device) < lengths
        targets = torch.tensor([token for _, answer in rows for token in answer], device=self.device)
        opens = torch.tensor([i == 0 for _, answer in rows for i in range(len(answer))], device=self.device)
        weight = self.model.lm_head.weight
        values = token_logprobs(hidden[mask], weight, targets, opens, self.vocabulary, temperature)
        return values.new_zeros(mask.shape).masked_scatter(mask, values), mask

    def _check(self, rows: Sequence[tuple[int, Tokens]]) -> None:
        for b, answer in rows:
            if not answer:
                raise CheckError(f"An answer of clip {b} of the batch has no tokens; leave it out of its group.")
            bad = [t for i, t in enumerate(answer) if not self.vocabulary.allowed(t, first=i == 0)]
            if bad:
                raise CheckError(f"Token {bad[0]} of an answer of clip {b} of the batch can never be sampled.")

    # -- training surface and export ----------------------------------------------------------------------------

    def trainable(self, surface: str | Sequence[str]) -> NamedParameters:
        """Mark exactly the surface as trainable and return it by name, in float32.

        "decoder" is the language model without what is always frozen and without its token embeddings, "encoder" the
        speech encoder and the projector, "all" both; or a list of tensors. Raises UsageError for a frozen tensor.
        """
        named = select_named(self.model, surface, SURFACES)
        for name, parameter in named:
            if forbidden(name):
                raise UsageError(f"The tensor {name} never trains: {forbidden(name)}.")
            parameter.data = parameter.data.float()
        return named

    def export(self, folder: str | Path, provenance: dict[str, Any]) -> Path:
        """A Hugging Face folder that plain transformers loads offline, tensors in the types of the base folder."""
        return write_transcribe(self, Path(folder), provenance)
