"""The row types that the rooms hand to each other: clip, answer, group, scored row.

All are frozen; all have a JSON form (`to_json`, `from_json`) that is stable enough to be hashed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Clip:
    """One utterance: a stretch of one channel of one audio file, and what is known of it.

    `offset_s` and `duration_s` are seconds within the file; a duration of None means "to the end of the file".
    `manifest` and `row` (physical line, from 1) say where it came from. `audio_sha256` is the digest of the decoded
    16 kHz mono int16 samples of exactly this stretch; it is empty until the audio has been read.
    """

    id: str
    audio: Path
    text: str | None = None
    offset_s: float = 0.0
    duration_s: float | None = None
    channel: int | None = None
    lang: str | None = None
    speaker: str | None = None
    recording: str | None = None
    label: str | None = None
    prompt: str | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)
    split: str = ""
    manifest: str = ""
    row: int = 0
    audio_sha256: str = ""

    def to_json(self) -> dict[str, Any]:
        out = {name: getattr(self, name) for name in self.__slots__}
        out["audio"] = str(self.audio)
        out["extras"] = dict(self.extras)
        return out

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Clip:
        return cls(**{**row, "audio": Path(row["audio"])})


@dataclass(frozen=True, slots=True)
class Answer:
    """One decoded answer to one clip.

    `temperature` 0 is greedy. `index` counts the answers of a clip from 0; a greedy answer has index -1.
    `seed` is the answer's own seed (None for greedy). `tokens` are the answer's token ids without the prompt and with the
    stop token where `finish` is "stop"; `finish` is "length" when the token limit cut it. `logprobs` (natural log, one a
    token) are those of the very distribution sampled from: temperature and suppressed tokens included.
    """

    clip_id: str
    text: str
    tokens: tuple[int, ...] = ()
    finish: str = "stop"
    index: int = -1
    seed: int | None = None
    temperature: float = 0.0
    logprobs: tuple[float, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        out = asdict(self)
        out["tokens"] = list(self.tokens)
        out["logprobs"] = None if self.logprobs is None else list(self.logprobs)
        return out

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Answer:
        logprobs = row.get("logprobs")
        return cls(
            **{
                **row,
                "tokens": tuple(row.get("tokens") or ()),
                "logprobs": None if logprobs is None else tuple(logprobs),
            }
        )


@dataclass(frozen=True, slots=True)
class Group:
    """All sampled answers of one clip with their rewards, and the greedy answer beside them where there is one.

    Keyed by the clip's id, never by prompt text or position. `rewards[i]` belongs to `answers[i]`; a reward that could not
    be computed is None and never reaches a trainer.
    """

    clip_id: str
    answers: tuple[Answer, ...]
    rewards: tuple[float | None, ...]
    greedy: Answer | None = None
    greedy_reward: float | None = None


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """One line of `evals/<id>/rows.jsonl`: everything needed to recompute the scores of an evaluation.

    `tokens` is the count of answer tokens (int), `duration_s` the clip's seconds.
    """

    id: str
    ref: str
    hyp: str
    speaker: str | None = None
    recording: str | None = None
    lang: str | None = None
    finish: str = "stop"
    tokens: int = 0
    duration_s: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> ScoredRow:
        return cls(**{k: row[k] for k in cls.__slots__ if k in row})
