"""The demo corpus: a narrow domain spoken by many voices, and general English to watch for retention.

Ordinary NeMo manifests with 16 kHz wave files beside them. Splits share no sentence and no voice; the same seed gives
the same bytes. About 20 minutes of audio in about 300 clips.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from tools.embedded.sentences import domain_sentences, general_sentences
from tools.embedded.voices import RETENTION_SPEAKERS, SPEAKERS, Speaker, library_file, voices_folder
from tools.errors import ProviderError
from tools.files import file_sha256

RATE = 16_000
VERSION = 1
MARKER = "corpus.json"
SPEAKERS_IN = {"train": 14, "dev": 5, "test": 16}  # of SPEAKERS, dealt out by the seed
CLIPS_EACH = {"train": 10, "dev": 9, "test": 5, "retention": 8}  # clips a speaker
PEAK = 0.5
SNR_DB = (20.0, 35.0)
WORDS_PER_MINUTE = (150, 200)
PITCH = (35, 65)


@dataclass(frozen=True, slots=True)
class Line:
    """One clip to be spoken: everything that its bytes depend on."""

    split: str
    name: str
    text: str
    voice: str
    words_per_minute: int
    pitch: int
    snr_db: float
    noise_seed: int


def plan_corpus(seed: int) -> list[Line]:
    """What is spoken by whom: sentences never repeat, voices are dealt to the splits anew by every seed."""
    rng = random.Random(f"rehear corpus {VERSION} {seed}")
    pool = rng.sample(SPEAKERS, len(SPEAKERS))
    cast: dict[str, list[str]] = {}
    for split, count in SPEAKERS_IN.items():
        cast[split], pool = pool[:count], pool[count:]
    cast["retention"] = list(RETENTION_SPEAKERS)
    sizes = {split: len(names) * CLIPS_EACH[split] for split, names in cast.items()}
    domain = domain_sentences(sum(sizes[split] for split in SPEAKERS_IN), rng)
    lines: list[Line] = []
    for split, voices in cast.items():
        count = sizes[split]
        texts = general_sentences(count, rng) if split == "retention" else [domain.pop() for _ in range(count)]
        lines += [_line(split, i, text, voices[i % len(voices)], rng) for i, text in enumerate(texts)]
    return lines


def _line(split: str, index: int, text: str, voice: str, rng: random.Random) -> Line:
    return Line(
        split=split,
        name=f"{split}-{index + 1:03d}",
        text=text,
        voice=voice,
        words_per_minute=rng.randint(*WORDS_PER_MINUTE),
        pitch=rng.randint(*PITCH),
        snr_db=round(rng.uniform(*SNR_DB), 2),
        noise_seed=rng.getrandbits(63),
    )


def render(line: Line, speaker: Speaker) -> np.ndarray:
    """int16 samples at 16 kHz: spoken, resampled, levelled, with white noise at the line's signal-to-noise ratio."""
    import soxr

    spoken = speaker.speak(line.text, line.voice, line.words_per_minute, line.pitch)
    wave = soxr.resample(spoken.astype(np.float64) / 32768, speaker.rate, RATE)
    wave = wave * (PEAK / np.abs(wave).max())
    power = np.mean(wave**2) / 10 ** (line.snr_db / 10)
    noise = np.random.Generator(np.random.Philox(key=line.noise_seed)).standard_normal(len(wave))
    return np.clip(np.rint((wave + noise * np.sqrt(power)) * 32767), -32768, 32767).astype(np.int16)


def write_corpus(lines: list[Line], out: Path) -> None:
    """Speak `lines` into `out` in this process: wave files and one manifest a split."""
    import soundfile

    speaker = Speaker()
    rows: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        (out / line.split).mkdir(exist_ok=True)
        wave = render(line, speaker)
        path = f"{line.split}/{line.name}.wav"
        soundfile.write(out / path, wave, RATE, subtype="PCM_16")
        row = {
            "audio_filepath": path,
            "duration": len(wave) / RATE,
            "text": line.text,
            "speaker": line.voice,
            "lang": "en",
        }
        rows.setdefault(line.split, []).append(row)
    for split, split_rows in rows.items():
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in split_rows)
        (out / f"{split}.jsonl").write_text(text, encoding="utf-8")


def build_corpus(out_dir: str | Path, seed: int = 0) -> dict[str, Path]:
    """Split -> manifest, spoken into `out_dir` unless it is there already, whole and of this seed.

    Spoken in a process of its own (espeak-ng keeps global state), written beside `out_dir` and moved in one step.
    Raises UsageError where the voices are not installed.
    """
    out = Path(out_dir)
    library = file_sha256(library_file(voices_folder()))
    made = {"v": VERSION, "seed": seed, "library_sha256": library}
    out.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(str(out.parent / f".{out.name}.lock")):
        if not _is_complete(out, made):
            _build(out, seed, made)
    return {path.stem: path for path in sorted(out.glob("*.jsonl"))}


def _is_complete(out: Path, made: Mapping[str, Any]) -> bool:
    try:
        marker = json.loads((out / MARKER).read_text(encoding="utf-8"))
        files: dict[str, str] = marker.pop("files")
        return bool(marker == made and all(file_sha256(out / name) == digest for name, digest in files.items()))
    except (OSError, ValueError, KeyError, AttributeError):
        return False


def _build(out: Path, seed: int, made: Mapping[str, Any]) -> None:
    work = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        plan = work / "plan.json"
        plan.write_text(json.dumps([asdict(line) for line in plan_corpus(seed)]), encoding="utf-8")
        _speak_elsewhere(plan)
        plan.unlink()
        files = {str(p.relative_to(work).as_posix()): file_sha256(p) for p in sorted(work.rglob("*")) if p.is_file()}
        (work / MARKER).write_text(json.dumps({**made, "files": files}, indent=1) + "\n", encoding="utf-8")
        work.chmod(0o755)
        if out.exists():
            shutil.rmtree(out)
        os.replace(work, out)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _speak_elsewhere(plan: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    command = [sys.executable, "-m", "tools.embedded.corpus", str(plan)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ProviderError(f"The demo corpus could not be spoken ({last}); check the installation of espeakng-loader.")


def _main(plan: Path) -> None:
    lines = [Line(**line) for line in json.loads(plan.read_text(encoding="utf-8"))]
    write_corpus(lines, plan.parent)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
