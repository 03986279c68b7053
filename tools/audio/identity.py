"""Who a stretch of audio is, exactly: digests of decoded samples, blind to names, containers and bit depth."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from tools.audio.read import Wave
from tools.errors import CheckError
from tools.rows import Clip


def to_int16(wave: Wave) -> npt.NDArray[np.int16]:
    """float32 samples -> int16, full scale 32768 (so that int16 -> float -> int16 gives the same samples),
    saturating.
    """
    return np.clip(np.rint(wave * np.float32(32768.0)), -32768, 32767).astype("<i2")


def clip_digest(wave16k: Wave) -> str:
    """sha256 (hex) over the decoded 16 kHz mono int16 samples, little endian: what `Clip.audio_sha256` holds."""
    return hashlib.sha256(to_int16(wave16k).tobytes()).hexdigest()


def checked_digest(clip: Clip, wave16k: Wave) -> str:
    """The digest of what was read for a clip. Raises CheckError where the clip has another one on record."""
    digest = clip_digest(wave16k)
    if clip.audio_sha256 and digest != clip.audio_sha256:
        raise CheckError(f"the audio of clip {clip.id} ({clip.audio}) changed since it was checked: restore it")
    return digest
