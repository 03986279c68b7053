"""Our greedy decoding against CTranslate2's on the same log-mel input, and faster-whisper's `transcribe` beside it.

    python -m tools.embedded.compare_ct2 FOLDER_OR_FILE... [--without-transcribe]

Tokens must be equal: both engines decode the same weights at float32 from the same features. `transcribe` makes
features and decoding choices of its own (beam of five, fallback temperatures, timestamps, its own log-mel), so its text
may differ; where it does, the line is printed, not hidden. Clips over the window are cut into windows, the same for all.
Needs the test extra (ctranslate2, faster-whisper) and the seed model's wheel.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tools.decode.local import greedy
from tools.embedded.seed import seed_model, wheel_folder
from tools.errors import UsageError
from tools.policy.whisper import RATE, WhisperPolicy

LIMIT = 224
AUDIO = {".wav", ".flac", ".mp3", ".ogg"}


@dataclass(frozen=True, slots=True)
class Compared:
    """One window of one clip under the three decoders. `theirs` are CTranslate2's tokens, without the stop token."""

    name: str
    ours: tuple[int, ...]
    theirs: tuple[int, ...]
    text: str
    transcribed: str | None

    @property
    def equal(self) -> bool:
        return self.ours == self.theirs


def windows(name: str, wave: np.ndarray, window_s: float) -> Iterator[tuple[str, np.ndarray]]:
    """(name, part) of at most `window_s` seconds each; a clip that fits keeps its name."""
    size = int(window_s * RATE)
    for at in range(0, len(wave), size):
        yield (name if len(wave) <= size else f"{name}@{at / RATE:g}s"), wave[at : at + size]


def ct2_greedy(model: Any, mels: Sequence[torch.Tensor], prompt: tuple[int, ...], limit: int) -> list[tuple[int, ...]]:
    """CTranslate2's greedy tokens for each log-mel [mels, frames], clip by clip."""
    import ctranslate2

    out = []
    for mel in mels:
        view = ctranslate2.StorageView.from_array(mel[None].numpy())
        result = model.generate(view, [list(prompt)], beam_size=1, max_length=limit + len(prompt))[0]
        out.append(tuple(result.sequences_ids[0]))
    return out


def compare(waves: dict[str, np.ndarray], transcribe: bool = True, limit: int = LIMIT) -> list[Compared]:
    """Compare on 16 kHz float32 waves by name. Raises UsageError where the wheel or the engines are missing."""
    try:
        from faster_whisper import WhisperModel
    except ImportError as err:
        raise UsageError("The comparison needs faster-whisper: pip install 'rehear[test]'.") from err
    folder = wheel_folder()
    if folder is None:
        raise UsageError("The comparison needs the seed model's wheel: pip install 'rehear[demo]'.")
    policy = WhisperPolicy.load(seed_model())
    other = WhisperModel(str(folder), device="cpu", compute_type="float32", cpu_threads=torch.get_num_threads())
    parts = dict(part for name, wave in waves.items() for part in windows(name, wave, policy.window_s))
    mels = [policy.features(wave) for wave in parts.values()]
    with torch.no_grad():
        encoded = policy.encode_features(mels)
    prompt = policy.prompt_ids()
    ours = greedy(policy, encoded, [prompt] * len(parts), limit, list(parts))
    theirs = ct2_greedy(other.model, mels, prompt, limit)
    stop = policy.vocabulary.stop
    rows = []
    for (name, wave), answer, tokens in zip(parts.items(), ours, theirs):
        kept = tuple(token for token in answer.tokens if token != stop)
        rows.append(Compared(name, kept, tokens, answer.text, _transcribe(other, wave) if transcribe else None))
    return rows


def _transcribe(model: Any, wave: np.ndarray) -> str:
    segments, _ = model.transcribe(wave, language="en")
    return "".join(segment.text for segment in segments).strip()


def read_folder(place: Path) -> dict[str, np.ndarray]:
    """16 kHz waves of an audio file, or of every audio file below a folder, by relative path."""
    from tools.audio.read import read_clip
    from tools.rows import Clip

    files = [place] if place.is_file() else sorted(p for p in place.rglob("*") if p.suffix in AUDIO)
    root = place.parent if place.is_file() else place
    return {str(p.relative_to(root)): read_clip(Clip(id=p.name, audio=p)) for p in files}


def table(rows: Sequence[Compared]) -> str:
    lines = [f"{sum(row.equal for row in rows)} of {len(rows)} clips: greedy tokens equal CTranslate2's"]
    lines += [f"  differs: {row.name}: ours {row.ours}, CTranslate2 {row.theirs}" for row in rows if not row.equal]
    heard = [row for row in rows if row.transcribed is not None]
    if heard:
        other = [row for row in heard if row.transcribed != row.text]
        lines.append(f"{len(other)} of {len(heard)} clips: faster-whisper's transcribe gives another text")
        lines += [f"  {row.name}\n    ours       {row.text!r}\n    transcribe {row.transcribed!r}" for row in other]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="+", type=Path)
    parser.add_argument("--without-transcribe", action="store_true")
    args = parser.parse_args()
    waves = {name: wave for place in args.places for name, wave in read_folder(place).items()}
    print(table(compare(waves, transcribe=not args.without_transcribe)))


if __name__ == "__main__":
    main()
