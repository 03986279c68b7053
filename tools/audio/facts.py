"""Everything a check wants to know of one stretch of audio, from one decoding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tools.audio.fingerprint import narrow
from tools.audio.identity import clip_digest
from tools.audio.read import RATE, AudioError, Stretch, Wave, at_rate, one_channel, read_stretch
from tools.rows import Clip

FULL_SCALE = 0.985
CLIPPED_RUN = 3  # neighbouring samples at one extreme: below that a loud sample is just loud
STILL = 2 / 32768  # a range within this is no sound
QUIET_DB = -60.0


@dataclass(frozen=True, slots=True)
class Facts:
    """What one stretch of audio is. `error` holds a reason and a sentence where it cannot be used, and then little
    else is set.

    `seconds` at 16 kHz; `digest` of the row's own channel; `others`: (channel, digest) of what else the file
    offers there: channel -1 is the average of all. `rms_db` and `peak` of full scale; `clipped`: share of samples
    in runs at the extremes;
    `still`: no sound at all; `file_s`: the whole file's length; `missing_s`: promised by its header and not there.
    """

    error: tuple[str, str] | None = None
    seconds: float = 0.0
    digest: str = ""
    others: tuple[tuple[int, str], ...] = ()
    rate: int = 0
    channels: int = 1
    peak: float = 0.0
    rms_db: float = -200.0
    clipped: float = 0.0
    still: bool = False
    file_s: float = 0.0
    missing_s: float = 0.0


def audio_facts(clip: Clip) -> tuple[Facts, list[tuple[int, Wave]]]:
    """Facts of a row's stretch, and its sound at 8 kHz for near identity: (channel, wave), several where none is named.

    Never raises AudioError: it comes back in `Facts.error`.
    """
    try:
        stretch = read_stretch(clip)
        own = _own_channel(stretch, clip)
    except AudioError as error:
        if error.reason != "channel":
            return Facts(error=(error.reason, str(error))), []
        return _unnamed_channel(stretch, clip, error)
    facts = Facts(
        digest=clip_digest(own),
        others=_others(stretch, clip),
        rate=stretch.native_rate,
        channels=len(stretch.wave),
        file_s=stretch.file_s,
        missing_s=stretch.missing_s,
        **levels(own),
    )
    return facts, [(clip.channel or 0, narrow(own))]


def _unnamed_channel(stretch: Stretch, clip: Clip, error: AudioError) -> tuple[Facts, list[tuple[int, Wave]]]:
    """A row that may mean any channel cannot be used, yet each of them is looked for."""
    waves = [at_rate(wave, stretch, clip) for wave in stretch.wave]
    facts = Facts(
        error=(error.reason, str(error)),
        seconds=waves[0].size / RATE,
        others=_others(stretch, clip),
        rate=stretch.native_rate,
        channels=len(waves),
    )
    return facts, [(c, narrow(wave)) for c, wave in enumerate(waves)]


def _own_channel(stretch: Stretch, clip: Clip) -> Wave:
    return at_rate(one_channel(stretch.wave, clip.channel, clip.audio), stretch, clip)


def _others(stretch: Stretch, clip: Clip) -> tuple[tuple[int, str], ...]:
    """(channel, digest) of every channel of a file with several, and of their average as channel -1."""
    if len(stretch.wave) == 1:
        return ()
    mix = np.asarray(stretch.wave.mean(axis=0), dtype=np.float32)
    waves = ((-1, mix), *enumerate(stretch.wave))
    return tuple((c, clip_digest(at_rate(wave, stretch, clip))) for c, wave in waves)


def levels(wave: Wave) -> dict[str, Any]:
    """seconds, peak, rms_db, clipped and still of a wave at 16 kHz."""
    peak = float(np.abs(wave).max())
    rms = float(np.sqrt(np.mean(np.square(wave, dtype=np.float64))))
    return {
        "seconds": wave.size / RATE,
        "peak": peak,
        "rms_db": 20 * float(np.log10(max(rms, 1e-10))),
        "clipped": _clipped(wave, peak),
        "still": float(wave.max()) - float(wave.min()) < STILL,
    }


def _clipped(wave: Wave, peak: float) -> float:
    """Share of samples that lie in runs of three or more at full scale."""
    if peak < FULL_SCALE:
        return 0.0
    at_top = np.abs(wave) >= max(FULL_SCALE, 0.999 * peak)
    if np.count_nonzero(at_top) < CLIPPED_RUN:
        return 0.0
    edges = np.flatnonzero(np.diff(np.concatenate([[0], at_top.astype(np.int8), [0]])))
    runs = edges[1::2] - edges[::2]
    return float(runs[runs >= CLIPPED_RUN].sum()) / wave.size
