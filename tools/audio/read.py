"""Audio in: any file that libsndfile decodes -> float32 samples, exact to the sample, one channel, 16 kHz.

`load_wave(path)` gives a whole file at its own rate; `read_clip(clip)` gives exactly the stretch that a row names.
A file that cannot be used raises `AudioError` with a short `reason` (a code for counting) and one sentence that
names the file.
"""

from __future__ import annotations

import io
import math
import os
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import soundfile
import soxr

from tools.audio.inside import InsideError, inside_of, read_inside
from tools.errors import CheckError
from tools.rows import Clip

Wave = npt.NDArray[np.float32]

RATE = 16_000
MIN_RATE, MAX_RATE = 4_000, 384_000
MAX_CHANNELS = 64
MAX_SECONDS = 6 * 3600.0
MAX_SAMPLES = 1 << 29  # of all channels together, before resampling
LOUDEST = 64.0  # a float sample beyond this is no audio (full scale is 1)
FOLD_CORRELATION = 0.9  # channels at least this alike are one signal and may be averaged
END_TOLERANCE_S = 0.05  # a declared end this far beyond the file is rounding, not a mistake
BLOCK = 1 << 17
LOSSY = {"MP3", "OGG"}  # seeking inside them is not exact to the sample: decode from the start


class AudioError(CheckError):
    """A file or stretch of audio that cannot be used; `reason` is a short code, the message one sentence."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def load_wave(path: Path | str) -> tuple[Wave, int]:
    """The whole file: float32 [channels, samples] at its own rate, full scale 1.0 (int16 / 32768), and that rate in Hz.

    Raises AudioError: missing, empty, unreadable, rate, length, nan, absurd.
    """
    path = Path(path)
    with open_audio(path) as file:
        wave = _read_frames(file, path, 0, None)
        return _sound(wave, path), int(file.samplerate)


def read_clip(clip: Clip, rate: int = RATE) -> Wave:
    """The stretch a row names, one channel, at `rate`: float32 [samples].

    `offset_s` and `duration_s` are exact to the sample: the answer has round(duration_s * rate) samples unless the
    file ends within 50 ms before. Without a channel, several channels are averaged only when they are one signal (F10).
    Raises AudioError: those of `load_wave`, and past_end, channel.
    """
    stretch = read_stretch(clip, rate)
    return at_rate(one_channel(stretch.wave, clip.channel, clip.audio), stretch, clip, rate)


def at_rate(mono: Wave, stretch: Stretch, clip: Clip, rate: int = RATE) -> Wave:
    """One channel [samples] of a stretch, resampled and cut to exactly what the row names."""
    return _cut(resample(mono, stretch.native_rate, rate), stretch.skip, clip, rate)


def resample(mono: Wave, native_rate: int, rate: int) -> Wave:
    """float32 [samples] at native_rate -> round(samples * rate / native_rate) samples at `rate` (soxr, high
    quality).
    """
    if native_rate == rate or mono.size == 0:
        return mono
    want = round(mono.size * rate / native_rate)
    out = np.asarray(soxr.resample(mono, native_rate, rate), dtype=np.float32)
    return out[:want] if out.size >= want else np.pad(out, (0, want - out.size))


def one_channel(wave: Wave, channel: int | None = None, path: Path | str = "") -> Wave:
    """[channels, samples] -> [samples] by the rule of F10.

    A named channel is taken. Without one: a single channel, or the only channel with sound, is taken; channels
    that are one signal (correlation >= 0.9) are averaged; anything else would mix two talkers and raises
    AudioError `channel`.
    """
    if channel is not None:
        if not 0 <= channel < wave.shape[0]:
            text = f"{path} has {wave.shape[0]} channel(s), counted from 0; the row asks for channel {channel}"
            raise AudioError("channel", text)
        return wave[channel]
    if wave.shape[0] == 1:
        return wave[0]
    loud = [c for c in range(wave.shape[0]) if np.any(wave[c])]
    if len(loud) <= 1:
        return wave[loud[0] if loud else 0]
    low = min(channel_correlation(wave[loud[0]], wave[c]) for c in loud[1:])
    if low < FOLD_CORRELATION:
        text = (
            f"{path} has {wave.shape[0]} channels that differ (correlation {low:.3f}): name one in the row's `channel`"
        )
        raise AudioError("channel", text)
    return np.asarray(wave[loud].mean(axis=0), dtype=np.float32)


def channel_correlation(a: Wave, b: Wave) -> float:
    """Pearson correlation of two channels at lag 0; 0.0 where one of them is constant."""
    x = a.astype(np.float64) - a.mean()
    y = b.astype(np.float64) - b.mean()
    scale = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / scale if scale > 0 else 0.0


def open_audio(path: Path) -> soundfile.SoundFile:
    """An open soundfile whose header is plausible. Raises AudioError: missing, empty, unreadable, rate, length."""
    inside = inside_of(path)
    if inside:
        return _open_inside(path, *inside)
    try:
        size = os.stat(path).st_size
    except (OSError, ValueError) as error:
        raise AudioError("missing", f"audio file not found: {path}") from error
    if not path.is_file():
        raise AudioError("unreadable", f"{path} is not a regular file")
    if size == 0:
        raise AudioError("empty", f"{path} is empty (0 bytes)")
    return _open(path, path)


def _open_inside(path: Path, container: Path, member: str) -> soundfile.SoundFile:
    try:
        found = read_inside(container, member)
    except InsideError as error:
        raise AudioError("missing", f"audio not found: {error}") from error
    if isinstance(found, Path):
        return open_audio(found)
    if not found:
        raise AudioError("empty", f"{path} is empty (0 bytes)")
    return _open(io.BytesIO(found), path)


def _open(source: Path | io.BytesIO, path: Path) -> soundfile.SoundFile:
    try:
        file = soundfile.SoundFile(source)
    except TypeError as error:  # libsndfile takes a name in .raw at its word
        raise AudioError("unreadable", f"{path} has no header that tells its rate: save it as WAV") from error
    except (soundfile.SoundFileError, ValueError, OSError, RuntimeError) as error:
        raise AudioError("unreadable", f"{path} is not readable audio: {_why(error)}") from error
    try:
        _plausible(file, path)
    except AudioError:
        file.close()
        raise
    return file


def _plausible(file: Any, path: Path) -> None:
    if file.frames == 0:
        raise AudioError("empty", f"{path} holds no samples")
    if not MIN_RATE <= file.samplerate <= MAX_RATE:
        raise AudioError("rate", f"{path} declares an implausible sample rate of {file.samplerate:,} Hz")
    if file.channels > MAX_CHANNELS:
        raise AudioError(
            "unreadable", f"{path} declares {file.channels} channels: more than {MAX_CHANNELS} is not speech"
        )


def _read_frames(file: Any, path: Path, start: int, stop: int | None) -> Wave:
    """float32 [channels, frames] of frames [start, stop), decoded in blocks so that a lying header costs no memory."""
    limit = min(MAX_SAMPLES // file.channels, int(MAX_SECONDS * file.samplerate))
    blocks: list[Wave] = []
    got = 0
    try:
        if start:
            file.seek(start)
        while stop is None or start + got < stop:
            want = BLOCK if stop is None else min(BLOCK, stop - start - got)
            block = file.read(want, dtype="float32", always_2d=True)
            blocks.append(block)
            got += len(block)
            if got > limit:
                raise AudioError("length", f"{path} is longer than {limit / file.samplerate:,.0f} s: cut it first")
            if len(block) < want:
                break
    except (soundfile.SoundFileError, RuntimeError, OSError, ValueError) as error:
        raise AudioError("unreadable", f"{path} cannot be decoded: {_why(error)}") from error
    if got == 0:
        raise AudioError("empty", f"{path} holds no samples" if start == 0 else f"{path} has no samples at {start}")
    joined = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
    return np.ascontiguousarray(joined.T)


def _sound(wave: Wave, path: Path) -> Wave:
    """The wave unchanged, or AudioError nan / absurd."""
    peak = float(np.abs(wave).max(initial=0.0))
    if not math.isfinite(peak):
        bad = int(np.count_nonzero(~np.isfinite(wave)))
        raise AudioError("nan", f"{path} holds {bad} sample(s) that are NaN or infinite")
    if peak > LOUDEST:
        raise AudioError(
            "absurd", f"{path} holds samples up to {peak:.3g} where full scale is 1: not audio as it stands"
        )
    return wave


@dataclass(frozen=True, slots=True)
class Stretch:
    """The native samples around a row's stretch.

    `wave` float32 [channels, samples] at `native_rate`; `skip` samples at the asked rate lie before the stretch;
    `missing_s` seconds that the file's header promises and the file does not hold.
    """

    wave: Wave
    native_rate: int
    skip: int
    file_s: float
    missing_s: float = 0.0


def read_stretch(clip: Clip, rate: int = RATE) -> Stretch:
    """Decode what a row names, all channels, at the file's own rate.

    The stretch starts on a sample that both rates share and carries 4,096 samples of context each side, so that a
    cut of a recording resamples to the same values as the recording itself. Raises AudioError as `read_clip` does,
    but for channel.
    """
    if not math.isfinite(clip.offset_s) or clip.offset_s < 0:
        raise AudioError("past_end", f"{clip.audio}: offset {clip.offset_s} s is not a place in the file")
    with open_audio(clip.audio) as file:
        native_rate, frames = int(file.samplerate), int(file.frames)
        if file.format in LOSSY:
            return _lossy_stretch(clip, file, rate)
        start, stop, skip = _frames(clip, frames, native_rate, rate)
        wave = _read_frames(file, clip.audio, start, stop)
        lost = stop - start - wave.shape[1] if stop == frames else 0
    missing = max(lost, 0) / native_rate
    if stop == frames and not missing:
        missing = _promised_seconds(clip.audio) - frames / native_rate
    missing = missing if missing > END_TOLERANCE_S else 0.0
    return Stretch(_sound(wave, clip.audio), native_rate, skip, frames / native_rate, missing)


def _lossy_stretch(clip: Clip, file: soundfile.SoundFile, rate: int) -> Stretch:
    """A stretch of a file in which seeking is not exact: all of it is decoded, and kept while its rows come by."""
    whole, native_rate = _lossy.get(clip.audio, file)
    start, stop, skip = _frames(clip, whole.shape[1], native_rate, rate)
    return Stretch(_sound(whole[:, start:stop], clip.audio), native_rate, skip, whole.shape[1] / native_rate)


def _promised_seconds(path: Path) -> float:
    """Seconds that a RIFF header promises (libsndfile shortens them to what is there); 0 for other files.

    A size of 0 or the highest is what a writer to a pipe leaves: no promise.
    """
    if inside_of(path):
        return 0.0
    with open(path, "rb") as file:
        head = file.read(12)
        if head[:4] != b"RIFF" or head[8:] != b"WAVE":
            return 0.0
        bytes_a_second = 0
        while len(chunk := file.read(8)) == 8:
            size = int.from_bytes(chunk[4:], "little")
            if chunk[:4] == b"data":
                return size / bytes_a_second if bytes_a_second and 0 < size < 0xFFFFFF00 else 0.0
            body = file.read(min(size + size % 2, 1 << 16)) if chunk[:4] == b"fmt " else b""
            if chunk[:4] == b"fmt ":
                bytes_a_second = int.from_bytes(body[8:12], "little")
            else:
                file.seek(size + size % 2, os.SEEK_CUR)
    return 0.0


def _frames(clip: Clip, frames: int, native_rate: int, rate: int) -> tuple[int, int, int]:
    """First and last native frame to decode and the samples at `rate` between the first one and the clip's start."""
    length_s = frames / native_rate
    if clip.offset_s >= length_s:
        text = f"{clip.audio} ends at {length_s:.3f} s, before the row's offset of {clip.offset_s} s"
        text += ": are the row's times in milliseconds?" if clip.offset_s > 100 * length_s else ""
        raise AudioError("past_end", text)
    if clip.duration_s is not None and clip.offset_s + clip.duration_s > length_s + END_TOLERANCE_S:
        text = f"{clip.audio} ends at {length_s:.3f} s, before the row's end of {clip.offset_s + clip.duration_s:.3f} s"
        text += ": are the row's times in milliseconds?" if clip.duration_s > 100 * length_s else ""
        raise AudioError("past_end", text)
    first = round(clip.offset_s * rate)
    if clip.offset_s == 0 and clip.duration_s is None:
        return 0, frames, 0
    shared = math.gcd(native_rate, rate)
    step, out_step = native_rate // shared, rate // shared
    context = 0 if native_rate == rate else 4096
    blocks = max(0, (first * native_rate // rate - context) // step)
    stop = frames
    if clip.duration_s is not None:
        last = first + round(clip.duration_s * rate)
        stop = min(frames, -(-last * native_rate // rate) + context)
    return blocks * step, stop, first - blocks * out_step


def _cut(wave: Wave, skip: int, clip: Clip, rate: int) -> Wave:
    want = None if clip.duration_s is None else round(clip.duration_s * rate)
    out = wave[skip:] if want is None else wave[skip : skip + want]
    if out.size == 0:
        raise AudioError("empty", f"{clip.audio}: the stretch at {clip.offset_s} s holds no samples")
    return np.ascontiguousarray(out)


class _LastFiles:
    """The last few lossy files, decoded: rows of one recording come together, and decoding from the start is dear."""

    def __init__(self, samples: int) -> None:
        self.samples, self.lock = samples, Lock()
        self.kept: OrderedDict[tuple[str, int, int], tuple[Wave, int]] = OrderedDict()

    def get(self, path: Path, file: soundfile.SoundFile) -> tuple[Wave, int]:
        inside = inside_of(path)
        stat = os.stat(inside[0] if inside else path)
        key = (str(path), stat.st_mtime_ns, stat.st_size)
        with self.lock:
            if key in self.kept:
                self.kept.move_to_end(key)
                return self.kept[key]
        wave, rate = _read_frames(file, path, 0, None), int(file.samplerate)
        with self.lock:
            self.kept[key] = (wave, rate)
            while len(self.kept) > 1 and sum(w.size for w, _ in self.kept.values()) > self.samples:
                self.kept.popitem(last=False)
        return wave, rate


_lossy = _LastFiles(samples=32 << 20)


def _why(error: Exception) -> str:
    text = str(error).split(": ", 1)[-1].strip().rstrip(".")
    return text or type(error).__name__
