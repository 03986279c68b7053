"""Encoder outputs of clips, kept on disk while the encoder is frozen: each clip is encoded once, whatever asks for it.

One float32 file a clip, named by its audio's digest, in a folder named by the encoder's digest; read through a memory map.
Files are written aside and renamed, so a kill leaves none that is half there. The folder is bounded: what was not used for
longest goes first. What comes out is what the encoder gave, bit for bit, in whatever order clips are asked for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from tools.errors import CheckError
from tools.policy.base import Encoded, Policy, join
from tools.rows import Clip

if TYPE_CHECKING:
    Read = Callable[[Clip], np.ndarray]

MAX_BYTES = 4 * 2**30


def read_16k(clip: Clip) -> np.ndarray:
    """The clip's samples, 16 kHz mono float32."""
    from tools.audio.read import read_clip

    return read_clip(clip)


def training_encode(policy: Policy, cache: EncoderCache) -> Callable[[Sequence[Clip]], Encoded]:
    """How a trainer of `policy` encodes: from the seed's cache while its encoder is frozen, else each clip anew.

    A clip is encoded once, whatever the number of its answers, and carries gradients where they are enabled.
    """

    def encode(clips: Sequence[Clip]) -> Encoded:
        if not policy.encoder_trains:
            return cache.get(clips)
        return policy.encode([cache.checked(clip) for clip in clips])

    return encode


class EncoderCache:
    """`get(clips)` gives encoder outputs [B, S, d]. The policy's encoder must stay as it is while the cache is used.

    Raises CheckError for a clip without an audio digest, or whose samples are no longer those of its digest.
    """

    def __init__(self, policy: Policy, folder: Path, max_bytes: int = MAX_BYTES, read: Read = read_16k) -> None:
        self.policy, self.max_bytes, self.read = policy, max_bytes, read
        self.root, self.folder = folder, folder / policy.encoder_digest[:16]
        self.folder.mkdir(parents=True, exist_ok=True)
        for half in self.folder.glob("*.tmp"):
            half.unlink(missing_ok=True)
        self._bytes = sum(p.stat().st_size for p in self.folder.glob("*.npy"))

    def get(self, clips: Sequence[Clip]) -> Encoded:
        return join([self._one(clip) for clip in clips])

    def _one(self, clip: Clip) -> Tensor:
        path = self.folder / f"{_digest(clip)}.npy"
        with suppress(FileNotFoundError, ValueError, EOFError):
            kept = np.load(path, mmap_mode="r")
            os.utime(path)
            return torch.from_numpy(np.array(kept)).to(self.policy.device)
        return self._encode(clip, path)

    def _encode(self, clip: Clip, path: Path) -> Tensor:
        wave = self.checked(clip)
        with torch.no_grad():
            out = self.policy.encode([wave])[0]
        self._keep(path, out.float().cpu().numpy())
        return out

    def checked(self, clip: Clip) -> np.ndarray:
        """The clip's samples. Raises CheckError where they are no longer those of its digest, or it has none."""
        from tools.audio.identity import checked_digest

        _digest(clip)
        wave = self.read(clip)
        checked_digest(clip, wave)
        return wave

    def _keep(self, path: Path, value: np.ndarray) -> None:
        """Writes one file; a disk that refuses costs the cache, not the run."""
        tmp = path.with_suffix(".tmp")
        try:
            with open(tmp, "wb") as out:
                np.save(out, value)
            os.replace(tmp, path)
        except OSError:
            tmp.unlink(missing_ok=True)
            return
        self._bytes += value.nbytes
        if self._bytes > self.max_bytes:
            self._make_room()

    def _make_room(self) -> None:
        """Removes what was not used for longest, down to nine tenths of the bound."""
        files = sorted((p.stat().st_mtime, p.stat().st_size, p) for p in self.folder.glob("*.npy"))
        self._bytes = sum(size for _, size, _ in files)
        for _, size, path in files[:-1]:
            if self._bytes <= 0.9 * self.max_bytes:
                break
            path.unlink(missing_ok=True)
            self._bytes -= size


def _digest(clip: Clip) -> str:
    if not clip.audio_sha256:
        raise CheckError(f"clip {clip.id} has no audio digest: check the data before decoding it")
    return clip.audio_sha256
