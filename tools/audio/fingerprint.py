"""A speech fingerprint for finding copies: one 20-bit word every 32 ms, made so that a copy keeps most of its words.

Each word says, for 20 neighbouring pairs of log bands, whether their difference rose over the last 192 ms. Three
things make it last: bands decay no faster than 100 dB/s, so a room's tail changes little; a word is asked for with
its three least sure bits flipped too; and a query is read with its bands moved by up to 10 %, so a change of speed
lands on the words it had. Finding only: what is the same is decided by phase (`tools.audio.phase`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import scipy.fft
import soxr

from tools.audio.read import RATE, Wave

FP_RATE = 8_000
WINDOW = 1_024  # samples at FP_RATE: 128 ms
HOP = 256  # 32 ms
HOP_S = HOP / FP_RATE
BANDS = 21
LOW_HZ, HIGH_HZ = 300.0, 3_400.0
SPAN = 6  # hops between the two frames that a bit compares: 192 ms
DECAY = 100.0 / 10.0 * np.log(10.0) * HOP_S  # 100 dB/s in nats of power a hop
FLOOR = 1e-7  # of the clip's strongest band: -70 dB
SURE = 0.05  # mean step, in nats, under which a frame says nothing
SPEEDS = tuple(1.05 ** (k / 2) for k in range(-4, 5))  # 0.907 to 1.103
PLAIN = 4  # index of speed 1.0 in SPEEDS
BLOCK = 256  # windows transformed at a time: they stay in the processor's cache
FLIPS = 3  # a word is asked for in 2**3 forms: its least sure bits either way

Words = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Fingerprint:
    """`words` uint32 [speeds, probes, frames] (probe 0 is the word itself); `sure` bool [frames] marks frames that
    say something.

    Frame f is the time f * 32 ms from the clip's start. A fingerprint made for storing has one speed and one probe.
    """

    words: Words
    sure: npt.NDArray[np.bool_]

    @property
    def frames(self) -> int:
        return int(self.words.shape[2])


def narrow(wave16k: Wave) -> Wave:
    """float32 [samples] at 16 kHz -> at 8 kHz, which is all that fingerprint and phase look at."""
    return np.asarray(soxr.resample(wave16k, RATE, FP_RATE, quality="LQ"), dtype=np.float32)


def fingerprint(wave8k: Wave, query: bool = True) -> Fingerprint:
    """The fingerprint of a clip at 8 kHz: with all speeds and probes to ask with, or the plain words to be stored."""
    bands = _bands(wave8k, _banks() if query else _plain_bank())
    steps = _steps(bands.reshape(len(bands), -1, BANDS))
    words = _words(steps, probes=query)
    plain = steps[:, PLAIN if query else 0]
    sure = np.abs(plain).mean(axis=1) > SURE
    return Fingerprint(words, sure)


def _bands(wave8k: Wave, banks: Wave) -> Wave:
    """float32 [frames, bands] power of windows of 128 ms every 32 ms; a short clip is padded until it can speak
    once.
    """
    least = WINDOW + SPAN * HOP
    if wave8k.size < least:
        wave8k = np.pad(wave8k, (0, least - wave8k.size))
    windows = np.lib.stride_tricks.sliding_window_view(wave8k, WINDOW)[::HOP]
    out = np.empty((len(windows), banks.shape[1]), np.float32)
    for at in range(0, len(windows), BLOCK):
        spectrum = scipy.fft.rfft(windows[at : at + BLOCK] * _hann(), axis=1)
        out[at : at + BLOCK] = (np.square(spectrum.real) + np.square(spectrum.imag)) @ banks
    return out


def _steps(bands: Wave) -> Wave:
    """[frames, speeds, bands] power -> [frames - 6, speeds, 20]: how much each band difference grew over 192 ms."""
    level = np.log(bands + FLOOR * max(float(bands.max()), 1e-20))
    slope = (np.arange(len(level), dtype=np.float32) * np.float32(DECAY))[:, None, None]
    held = np.maximum.accumulate(level + slope, axis=0) - slope
    tilt = held[:, :, 1:] - held[:, :, :-1]
    return tilt[SPAN:] - tilt[:-SPAN]


def _words(steps: Wave, probes: bool) -> Words:
    """[frames, speeds, 20] -> uint32 [speeds, probes, frames]."""
    bits = np.uint32(1) << np.arange(BANDS - 1, dtype=np.uint32)
    word = ((steps > 0) * bits).sum(axis=2, dtype=np.uint32).T
    if not probes:
        return word[:, None, :]
    weak = np.argpartition(np.abs(steps), FLIPS - 1, axis=2)[:, :, :FLIPS]
    forms = [word]
    for k in range(FLIPS):
        flip = bits[weak[:, :, k]].T
        forms += [form ^ flip for form in forms]
    return np.stack(forms, axis=1)


@lru_cache(maxsize=1)
def _hann() -> Wave:
    return np.hanning(WINDOW).astype(np.float32)


@lru_cache(maxsize=1)
def _plain_bank() -> Wave:
    return np.ascontiguousarray(_banks()[:, PLAIN * BANDS : (PLAIN + 1) * BANDS])


@lru_cache(maxsize=1)
def _banks() -> Wave:
    """float32 [bins, speeds * bands]: triangles on a log scale, moved by each speed."""
    freqs = np.arange(WINDOW // 2 + 1) * FP_RATE / WINDOW
    out = []
    for speed in SPEEDS:
        edges = LOW_HZ * (HIGH_HZ / LOW_HZ) ** (np.arange(BANDS + 2) / (BANDS + 1)) * speed
        for low, top, high in zip(edges, edges[1:], edges[2:]):
            out.append(np.clip(np.minimum((freqs - low) / (top - low), (high - freqs) / (high - top)), 0, None))
    return np.ascontiguousarray(np.stack(out, axis=1), dtype=np.float32)
