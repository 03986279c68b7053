"""Figures of the data room: identity under every kind of copy, against Chromaprint, speed, and a million rows.

    python -m tests.bench.bench_data identity [--clips N] [--hard N]   recall and false matches by kind, both tools
    python -m tests.bench.bench_data registry [--clips N]              what a published registry finds, by kind
    python -m tests.bench.bench_data scale [--rows N]                  seconds and peak memory of one check

Times are CPU seconds of one core (`OMP_NUM_THREADS=1`), decoding included, so that other load does not count.
Needs the voices of the demo extra; real speech is used where `REHEAR_SHARED_SPEECH` (or ../shared/speech) has it,
`fpcalc` where it is installed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import soxr

from tools.audio.facts import audio_facts
from tools.audio.fingerprint import FP_RATE, fingerprint, narrow
from tools.audio.read import RATE, Wave, read_clip
from tools.data.identity import NearSearch
from tools.data.registry_match import WordSets, chosen
from tools.rows import Clip

ROOT = Path(__file__).resolve().parents[2]
SPEECH = Path(os.environ.get("REHEAR_SHARED_SPEECH", ROOT.parent / "shared" / "speech"))
CUT_S = 1.2


_THE = "the a my our that this every one"
_KIND = "quiet broken yellow heavy early distant careful wooden silver narrow"
_THING = (
    "harbour office teacher river engine window garden doctor market station village lantern kitchen captain forest"
)
_DID = "carried followed opened painted watched repaired crossed remembered counted ignored measured promised"
_WHERE = "before after near behind under without during beyond"
ORDERS = (
    (_THE, _KIND, _THING, _DID, _THE, _THING, _WHERE, _THE, _KIND, _THING),
    (_THE, _THING, _DID, _THE, _KIND, _THING),
    (_WHERE, _THE, _THING, _THE, _KIND, _THING, _DID, _THE, _THING),
)


@dataclass(frozen=True)
class Sound:
    """A clip of the corpus: a name, its sound at 16 kHz, and other takes of the same words by the same voice."""

    name: str
    wave: Wave
    again: tuple[Wave, ...] = ()


def corpus(clips: int, hard: int, seed: int = 0) -> list[Sound]:
    """Real clips (read speech, and strings of digits whose other takes are real hard negatives), then spoken ones."""
    real = [*_read(), *_digits()]
    return [*real, *_spoken(max(0, clips - len(real)), hard, seed)]


def _read() -> Iterator[Sound]:
    if not SPEECH.is_dir():
        return
    files = [
        *SPEECH.glob("read/harvard/*.wav"),
        *SPEECH.glob("read/librivox/*.wav"),
        *SPEECH.glob("read/languages/??.wav"),
    ]
    files += [SPEECH / "read/jfk.flac", SPEECH / "read/libri/libri-1088-134315-0000.wav"]
    files += [
        SPEECH / "same_audio" / n for n in ("61-70968-0000.flac", "cold_corpus.wav", "acoustic_corpus.wav", "chan3.wav")
    ]
    for file in sorted(files):
        yield Sound(file.stem, read_clip(Clip("x", file)))


def _digits(takes: int = 12) -> Iterator[Sound]:
    """Ten digits in a row by one speaker, take by take: real people saying the same words again."""
    if not SPEECH.is_dir():
        return
    for speaker in ("george", "jackson", "lucas", "nicolas"):
        strings = []
        for take in range(takes):
            files = (SPEECH / "digits" / speaker / f"{digit}_{speaker}_{take}.wav" for digit in range(10))
            strings.append(np.concatenate([read_clip(Clip("x", file)) for file in files]))
        for take, wave in enumerate(strings):
            yield Sound(f"digits_{speaker}_{take}", wave, tuple(w for i, w in enumerate(strings) if i != take)[:3])


def _spoken(count: int, hard: int, seed: int) -> Iterator[Sound]:
    from tools.embedded.voices import RETENTION_SPEAKERS, SPEAKERS, Speaker

    rng = random.Random(seed)
    speaker, voices = Speaker(), [*SPEAKERS, *RETENTION_SPEAKERS]
    for i in range(count):
        text = " ".join(rng.choice(words.split()) for words in rng.choice(ORDERS))
        voice, pace, pitch = voices[i % len(voices)], rng.randint(130, 200), rng.randint(30, 70)

        def say(pace: int, pitch: int, text: str = text, voice: str = voice) -> Wave:
            spoken = speaker.speak(text, voice, pace, pitch).astype(np.float32) / 32768
            return np.asarray(soxr.resample(spoken, speaker.rate, RATE), dtype=np.float32)

        other = [(pace + 4, pitch), (pace, pitch + 5), (pace - 9, pitch), (pace + 20, pitch - 6), (pace, pitch - 12)]
        yield Sound(f"spoken_{i}", say(pace, pitch), tuple(say(*o) for o in other[:hard]))


Change = Callable[[Wave, np.random.Generator], Wave]


def _write(path: Path, wave: Wave, rate: int = RATE, kind: str = "WAV", encoding: str = "PCM_16", **more: Any) -> None:
    if rate != RATE:
        wave = np.asarray(soxr.resample(wave, RATE, rate), dtype=np.float32)
    soundfile.write(path, wave, rate, encoding, format=kind, **more)


def _noise(wave: Wave, rng: np.random.Generator) -> Wave:
    return wave + rng.normal(0, wave.std() / 10, wave.size).astype(np.float32)


def _crop(wave: Wave, rng: np.random.Generator) -> Wave:
    return wave[round(0.37 * RATE) : -round(0.21 * RATE)]


def _pad(wave: Wave, rng: np.random.Generator) -> Wave:
    return np.concatenate([np.zeros(round(1.1 * RATE), np.float32), wave, np.zeros(round(0.5 * RATE), np.float32)])


def _room(rt60: float) -> Change:
    def change(wave: Wave, rng: np.random.Generator) -> Wave:
        """Direct sound and a noise tail of equal energy that falls 60 dB in rt60 seconds."""
        size = round(rt60 * RATE)
        tail = rng.normal(size=size) * 10 ** (-3 * np.arange(size) / size)
        tail[0] = np.sqrt((tail[1:] ** 2).sum())
        out = np.asarray(soxr.resample(wave, RATE, RATE), dtype=np.float64)
        n = 1 << (wave.size + size).bit_length()
        out = np.fft.irfft(np.fft.rfft(out, n) * np.fft.rfft(tail, n), n)[: wave.size]
        return (out * np.abs(wave).max() / max(np.abs(out).max(), 1e-9)).astype(np.float32)

    return change


def _speed(low: float, high: float | None = None) -> Change:
    def change(wave: Wave, rng: np.random.Generator) -> Wave:
        ratio = low if high is None else float(rng.uniform(low, high))
        return np.asarray(soxr.resample(wave, RATE * ratio, RATE), dtype=np.float32)

    return change


def _same(wave: Wave, rng: np.random.Generator) -> Wave:
    return wave


# kind -> (suffix, change of the sound, how it is written)
KINDS: dict[str, tuple[str, Change, dict[str, Any]]] = {
    "other name": ("wav", _same, {}),
    "FLAC": ("flac", _same, {"kind": "FLAC"}),
    "24 bit": ("wav", _same, {"encoding": "PCM_24"}),
    "float": ("wav", _same, {"encoding": "FLOAT"}),
    "8 bit": ("wav", _same, {"encoding": "PCM_U8"}),
    "8 kHz": ("wav", _same, {"rate": 8000}),
    "11.025 kHz": ("wav", _same, {"rate": 11025}),
    "44.1 kHz": ("wav", _same, {"rate": 44100}),
    "48 kHz": ("wav", _same, {"rate": 48000}),
    "-20 dB": ("wav", lambda w, r: 0.1 * w, {}),
    "one channel of stereo": ("wav", _same, {"stereo": True}),
    "MP3": ("mp3", _same, {"kind": "MP3", "encoding": "MPEG_LAYER_III", "compression_level": 0.9}),
    "Opus": ("opus", _same, {"kind": "OGG", "encoding": "OPUS", "compression_level": 0.9}),
    "mu-law 8 kHz": ("wav", _same, {"rate": 8000, "encoding": "ULAW"}),
    "noise 20 dB": ("wav", _noise, {}),
    "crop": ("wav", _crop, {}),
    "padding": ("wav", _pad, {}),
    "reverberation 0.3 s": ("wav", _room(0.3), {}),
    "reverberation 0.5 s": ("wav", _room(0.5), {}),
    "reverberation 0.8 s": ("wav", _room(0.8), {}),
    "speed 0.95": ("wav", _speed(0.95), {}),
    "speed 0.97": ("wav", _speed(0.97), {}),
    "speed 1.03": ("wav", _speed(1.03), {}),
    "speed 1.05": ("wav", _speed(1.05), {}),
    "speed at random": ("wav", _speed(0.95, 1.05), {}),
}


def written(folder: Path, name: str, sound: Wave, kind: str, seed: int, beside: Wave) -> Clip:
    """One changed copy on disk, as the row that names it."""
    suffix, change, how = KINDS[kind]
    how = dict(how)
    wave = np.clip(change(sound, np.random.default_rng(seed)), -1, 1)
    path = folder / f"{name}.{suffix}"
    if how.pop("stereo", False):
        wave = np.stack([np.resize(beside, wave.size), wave], axis=1)
        _write(path, wave)
        return Clip(name, path, "", channel=1)
    _write(path, wave, **how)
    return Clip(name, path, "")


class Cpu:
    """CPU seconds of this process, or of its children."""

    def __init__(self, children: bool = False) -> None:
        self.who = resource.RUSAGE_CHILDREN if children else resource.RUSAGE_SELF
        self.seconds = 0.0

    def __enter__(self) -> Cpu:
        self.start = self._now()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += self._now() - self.start

    def _now(self) -> float:
        used = resource.getrusage(self.who)
        return used.ru_utime + used.ru_stime


def chromaprint(paths: list[Path]) -> list[np.ndarray]:
    """Raw fingerprints by fpcalc, in the order of the files; empty for a clip that is too short for one (fpcalc stops
    there and is started again behind it).
    """
    found: list[np.ndarray] = []
    while len(found) < len(paths):
        command = ["fpcalc", "-raw", "-json", "-ignore-errors", *map(str, paths[len(found) :])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        found += [np.array(json.loads(line)["fingerprint"], dtype=np.uint32) for line in lines]
        found += [np.zeros(0, dtype=np.uint32)] if len(found) < len(paths) else []
    return found


def chromaprint_distance(a: np.ndarray, b: np.ndarray, items: int) -> float:
    """Lowest share of differing bits over all lags with 60 % of the shorter one overlapping, and that many items."""
    if min(len(a), len(b)) < items:
        return 1.0
    best = 1.0
    least = max(items, round(0.6 * min(len(a), len(b))))
    for lag in range(-(len(a) - least), len(b) - least + 1):
        i, j = max(0, -lag), max(0, lag)
        size = min(len(a) - i, len(b) - j)
        if size >= least:
            best = min(best, float(np.bitwise_count(a[i : i + size] ^ b[j : j + size]).mean()) / 32)
    return best


def identity(clips: int, hard: int, folder: Path) -> dict[str, Any]:
    """Recall by kind and false matches, ours and Chromaprint's, on the same files."""
    sounds = corpus(clips, hard)
    stored = [Clip(s.name, folder / f"{s.name}.wav", "") for s in sounds]
    for clip, sound in zip(stored, sounds):
        _write(clip.audio, sound.wave)
    ours, theirs = Ours(stored), Theirs([c.audio for c in stored]) if shutil.which("fpcalc") else None
    again = [(k, wave) for k, sound in enumerate(sounds) for wave in sound.again]
    negatives = [(k, Clip(f"again{i}", folder / f"again{i}.wav", "")) for i, (k, _) in enumerate(again)]
    for (_, clip), (_, wave) in zip(negatives, again):
        _write(clip.audio, wave)
    false = [
        (sounds[k].name, m) for k, clip in negatives for m in ours.found(clip) if not _same_take(sounds, k, m, clip)
    ]
    out: dict[str, Any] = {"clips": len(sounds), "seconds": round(sum(s.wave.size for s in sounds) / RATE, 1)}
    out |= {"again": len(negatives), "false_again": len(false), "false_examples": false[:5], "kinds": {}}
    if theirs:
        theirs.calibrate(negatives)
    for kind in KINDS:
        out["kinds"][kind] = _kind(sounds, kind, ours, theirs, folder)
        print(kind, out["kinds"][kind], file=sys.stderr, flush=True)
    out["other_speech"] = _other(Ours(stored), folder)
    out["kinds"]["cut of 1.2 s in an hour"] = _hour(sounds, folder)
    out["ours"] = ours.speeds()
    out["chromaprint"] = theirs.speeds() if theirs else "fpcalc is not installed"
    return out


def _other(ours: Ours, folder: Path) -> dict[str, Any]:
    """Speech that no stored clip is a copy of, by the same voices: what most of a training set is."""
    false = 0
    sounds = list(_spoken(100, 0, seed=1))
    for i, sound in enumerate(sounds):
        clip = Clip(f"other{i}", folder / f"other{i}.wav", "")
        _write(clip.audio, sound.wave)
        false += len(ours.found(clip))
    return {"clips": len(sounds), "false": false, "times_real_time_asking": ours.speeds()["times_real_time_asking"]}


def _same_take(sounds: list[Sound], k: int, match: tuple[int, float], clip: Clip) -> bool:
    """Whether a match of another take is that take itself, which is in the corpus too (strings of digits)."""
    if not sounds[k].name.startswith("digits"):
        return False
    wave = sounds[match[0]].wave
    return any(w.size == wave.size and np.array_equal(w, wave) for w in sounds[k].again)


def _kind(sounds: list[Sound], kind: str, ours: Ours, theirs: Theirs | None, folder: Path) -> dict[str, Any]:
    copies = []
    for k, sound in enumerate(sounds):
        copies.append(written(folder, f"copy{k}", sound.wave, kind, k, sounds[k - 1].wave))
    missed, false = [], 0
    for k, clip in enumerate(copies):
        keys = [key for key, _ in ours.found(clip)]
        missed += [] if k in keys else [sounds[k].name]
        false += len(set(keys) - {k})
    out = {"recall": round(1 - len(missed) / len(sounds), 4), "false": false, "missed": missed}
    if theirs:
        out["chromaprint_recall"] = round(theirs.recall([c.audio for c in copies]), 4)
    for clip in copies:
        clip.audio.unlink()
    return out


def _hour(sounds: list[Sound], folder: Path) -> dict[str, Any]:
    """Every clip cut to 1.2 s and looked for in one recording of an hour that holds them all."""
    line = [s.wave for s in sounds]
    while sum(w.size for w in line) < 3600 * RATE:
        line += [0.7 * s.wave[::-1] for s in sounds]  # backwards: speech that no clip is a copy of
    starts = np.cumsum([0, *(w.size for w in line)])
    path = folder / "hour.wav"
    _write(path, np.concatenate(line)[: 3600 * RATE])
    stored = Ours([Clip("hour", path, "")])
    missed, worst = [], 0.0
    for k, sound in enumerate(sounds):
        begin = (sound.wave.size - round(CUT_S * RATE)) // 2
        cut = folder / "cut.wav"
        _write(cut, sound.wave[begin : begin + round(CUT_S * RATE)])
        want = (starts[k] + begin) / RATE
        offsets = [offset for _, offset in stored.found(Clip("cut", cut, ""))]
        near = min((abs(offset - want) for offset in offsets), default=np.inf)
        missed += [] if near < 0.01 else [sound.name]
        worst = max(worst, near if near < 0.01 else 0.0)
    recall = round(1 - len(missed) / len(sounds), 4)
    return {"recall": recall, "missed": missed, "worst_offset_s": round(worst, 5), **stored.speeds()}


class Ours:
    """Our index over stored files; asks with files; counts seconds of sound and of CPU, decoding included."""

    def __init__(self, stored: list[Clip]) -> None:
        self.storing, self.asking, self.words = Cpu(), Cpu(), Cpu()
        self.stored_s = self.asked_s = 0.0
        self.stored = stored
        self.search = NearSearch()
        with self.storing:
            for key, clip in enumerate(stored):
                _, waves = audio_facts(clip)
                self.search.add(key, clip, waves)
                self.stored_s += waves[0][1].size / FP_RATE
        with self.words:  # fingerprints alone, as fpcalc makes them: decode and fingerprint, no digest, no search
            for clip in stored:
                fingerprint(narrow(read_clip(clip)), query=False)

    def found(self, clip: Clip) -> list[tuple[int, float]]:
        with self.asking:
            _, waves = audio_facts(clip)
            pairs = self.search.ask(len(self.stored), waves)
        self.asked_s += waves[0][1].size / FP_RATE
        return [(p.b, p.match.offset_s) for p in pairs if p.match.whole]

    def speeds(self) -> dict[str, float]:
        return {
            "times_real_time_asking": round(self.asked_s / max(self.asking.seconds, 1e-9)),
            "times_real_time_storing": round(self.stored_s / max(self.storing.seconds, 1e-9)),
            "times_real_time_words": round(self.stored_s / max(self.words.seconds, 1e-9)),
        }


LEAST_ITEMS = (1, 2, 4, 8)


class Theirs:
    """Chromaprint over the same files, at thresholds that let no known different pair through: for each least number of
    items one, and the best of them for each kind of copy. Timed over the files it has a fingerprint for, in one process.
    """

    def __init__(self, stored: list[Path]) -> None:
        self.stored = chromaprint(stored)
        self.thresholds: dict[int, float] = {}
        told = [path for path, found in zip(stored, self.stored) if len(found)]
        self.without, self.cpu = len(stored) - len(told), Cpu(children=True)
        with self.cpu:
            chromaprint(told)
        self.seconds = sum(soundfile.info(path).duration for path in told)

    def calibrate(self, negatives: list[tuple[int, Clip]]) -> None:
        again = chromaprint([clip.audio for _, clip in negatives])
        pairs = [(print_, self.stored[k]) for (k, _), print_ in zip(negatives, again)]
        pairs += zip(self.stored, self.stored[7:])
        for items in LEAST_ITEMS:
            self.thresholds[items] = min((chromaprint_distance(a, b, items) for a, b in pairs), default=0.0)

    def recall(self, copies: list[Path]) -> float:
        found = chromaprint(copies)
        return max(
            float(np.mean([chromaprint_distance(a, b, items) < threshold for a, b in zip(found, self.stored)]))
            for items, threshold in self.thresholds.items()
        )

    def speeds(self) -> dict[str, Any]:
        rate = round(self.seconds / max(self.cpu.seconds, 1e-9))
        told = {"times_real_time_fingerprints_only": rate, "clips_without_a_fingerprint": self.without}
        return {"thresholds": self.thresholds, **told}


def registry(clips: int, folder: Path) -> dict[str, Any]:
    """What a published registry finds without the audio: recall by kind, other clips that collide, other takes that do."""
    sounds = corpus(clips, 1)
    salt = bytes(16)
    stored = []
    for sound in sounds:
        plain = fingerprint(narrow(sound.wave), query=False)
        words = np.unique(plain.words[0, 0][plain.sure])
        stored.append(words[chosen(words, salt)])
    whole = WordSets.of(stored)
    own = [WordSets.of([words]) for words in stored]
    out: dict[str, Any] = {"clips": len(sounds), "kinds": {}}
    rest = [WordSets.of([w for i, w in enumerate(stored) if i % 8 == k]) for k in range(8)]
    false = [rest[(i + 4) % 8].best(narrow(s.wave), salt) > 0 for i, s in enumerate(sounds)]
    out["clips_that_collide_with_40_others"] = sum(false)
    takes = [own[i].best(narrow(s.again[0]), salt) > 0 for i, s in enumerate(sounds) if s.again]
    out["other_takes_that_collide"] = f"{sum(takes)} of {len(takes)}"
    real = [own[i].best(narrow(s.again[0]), salt) > 0 for i, s in enumerate(sounds) if s.name.startswith("digits")]
    out["other_takes_by_real_people_that_collide"] = f"{sum(real)} of {len(real)}"
    for kind in KINDS:
        hits = 0
        for i, sound in enumerate(sounds):
            clip = written(folder, "copy", sound.wave, kind, i, sounds[i - 1].wave)
            _, [(_, wave)] = audio_facts(clip)
            hits += own[i].best(wave, salt) > 0
        out["kinds"][kind] = round(hits / len(sounds), 4)
    started = time.process_time()
    for sound in sounds[:100]:
        whole.best(narrow(sound.wave), salt)
    out["times_real_time"] = round(sum(s.wave.size for s in sounds[:100]) / RATE / (time.process_time() - started))
    return out


def scale(rows: int, folder: Path) -> dict[str, Any]:
    """One check of a manifest of many rows that point at ten files; the row before the last is broken (F15)."""
    rng = np.random.default_rng(0)
    for i in range(10):
        _write(folder / f"{i}.wav", rng.normal(0, 0.1, 3 * RATE).astype(np.float32))
    path = folder / "train.jsonl"
    with open(path, "w") as out:
        for i in range(rows):
            row = {
                "id": f"row-{i:07d}",
                "audio_filepath": f"{i % 10}.wav",
                "duration": 3.0,
                "speaker": f"spk{i % 5000}",
            }
            row |= {"text": f"this is the sentence number {i} of many", "lang": "en"}
            out.write("{broken" if i == rows - 2 else json.dumps(row))
            out.write("\n" if i < rows - 1 else "")
    code = (
        "import json, resource, sys, time\n"
        "from tools.data.checks import check_paths\n"
        "wall, cpu = time.monotonic(), time.process_time()\n"
        "report = check_paths([sys.argv[1]])\n"
        "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024\n"
        "print(json.dumps({'rows_in': report.rows_in, 'kept': len(report.kept), 'last': report.kept[-1].id,\n"
        "  'quarantined': [q.row for q in report.quarantined], 'wall_s': round(time.monotonic() - wall, 1),\n"
        "  'cpu_s': round(time.process_time() - cpu, 1), 'peak_mb': round(peak)}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True, cwd=ROOT)
    return {"manifest_mb": round(path.stat().st_size / 1e6), **json.loads(done.stdout)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["identity", "registry", "scale"])
    parser.add_argument("--clips", type=int, default=320)
    parser.add_argument("--hard", type=int, default=3, help="other takes of each spoken clip (at most 5)")
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        if given.what == "identity":
            found = identity(given.clips, given.hard, path)
        else:
            found = registry(given.clips, path) if given.what == "registry" else scale(given.rows, path)
    print(json.dumps({**found, "took_s": round(time.monotonic() - started, 1)}, indent=1))


if __name__ == "__main__":
    main()
