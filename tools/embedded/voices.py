"""The demo's speakers: espeak-ng voices, each a language variant with a voice variant of its own.

The library (GPL) is an optional extra and is called at run time only, through ctypes. Its state is global to a process,
so the corpus is spoken in a process of its own (`tools.embedded.corpus`).
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tools.errors import UsageError

WHEEL = "espeakng_loader"
LIBRARIES = ("libespeak-ng.so", "libespeak-ng.dylib", "espeak-ng.dll")

# No voice variant is used twice, under whatever accent: a speaker of one split is nobody of another. Variants with echo
# or breath are left out: espeak-ng mixes uninitialised memory into them, and the bytes differ from run to run.
SPEAKERS: tuple[str, ...] = (
    *("en-us+Michael", "en-us+steph", "en-us+m3", "en-us+antonio", "en-us+paul"),
    *("en-us-nyc+iven", "en-us-nyc+norbert", "en-us-nyc+Jacky", "en-us-nyc+aunty", "en-us-nyc+anika"),
    *("en-gb-x-rp+Andrea", "en-gb-x-rp+Gene2", "en-gb-x-rp+linda", "en-gb-x-rp+belinda"),
    *("en-gb-x-rp+Tweaky", "en-gb-x-rp+Mike", "en-gb-x-rp+edward2"),
    *("en-gb-scotland+klatt", "en-gb-scotland+f1", "en-gb-scotland+gustave"),
    *("en-gb-scotland+Henrique", "en-gb-scotland+benjamin", "en-gb-scotland+Andy"),
    *("en-029+Hugo", "en-029+adam", "en-029+max", "en-029+Annie", "en-029+ian", "en-029+Nguyen"),
    *("en-gb-x-gbclan+Lee", "en-gb-x-gbclan+grandma", "en-gb-x-gbclan+croak"),
    *("en-gb-x-gbcwmd+Denis", "en-gb-x-gbcwmd+quincy", "en-gb-x-gbcwmd+m7"),
)
RETENTION_SPEAKERS: tuple[str, ...] = (
    *("en-us+Diogo", "en-us+Mario", "en-us+ed", "en-gb-x-rp+grandpa", "en-us-nyc+Alex"),
)

_SYNCHRONOUS, _UTF8, _RATE, _PITCH = 2, 1, 1, 3
_Callback: Any = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


def voices_folder() -> Path:
    """Folder of the installed voices' wheel; it is located, not imported. Raises UsageError where it is absent."""
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or not spec.submodule_search_locations:
        raise UsageError("The demo's voices are not installed: pip install 'rehear[demo]' (espeakng-loader 0.2.4).")
    return Path(next(iter(spec.submodule_search_locations)))


def library_file(folder: Path) -> Path:
    for name in LIBRARIES:
        if (folder / name).is_file():
            return folder / name
    raise UsageError(f"{folder} holds no espeak-ng library for this system; reinstall espeakng-loader.")


class Speaker:
    """espeak-ng in this process: text -> int16 samples at `rate` Hz (22,050)."""

    def __init__(self) -> None:
        folder = voices_folder()
        self.library = ctypes.CDLL(str(library_file(folder)))
        self.parts: list[np.ndarray] = []
        self._callback = _Callback(self._heard())  # kept: the library holds the pointer
        data = str(folder / "espeak-ng-data").encode()
        self.rate = int(self.library.espeak_Initialize(_SYNCHRONOUS, 0, data, 0))
        if self.rate <= 0:
            raise UsageError(f"espeak-ng could not read its voices in {folder}; reinstall espeakng-loader.")
        self.library.espeak_SetSynthCallback(self._callback)

    def _heard(self) -> Callable[[Any, int, Any], int]:
        def heard(samples: Any, count: int, _: Any) -> int:
            if count > 0:
                self.parts.append(np.ctypeslib.as_array(samples, (count,)).copy())
            return 0

        return heard

    def speak(self, text: str, voice: str, words_per_minute: int, pitch: int) -> np.ndarray:
        """int16 [samples]. Raises UsageError for a voice that is not installed or stays silent."""
        self.parts.clear()
        if self.library.espeak_SetVoiceByName(voice.encode()) != 0:
            raise UsageError(
                f"The voice {voice} is not among the installed espeak-ng voices; reinstall espeakng-loader."
            )
        self.library.espeak_SetParameter(_RATE, words_per_minute, 0)
        self.library.espeak_SetParameter(_PITCH, pitch, 0)
        data = text.encode("utf-8")
        self.library.espeak_Synth(data, len(data) + 1, 0, 0, 0, _UTF8, None, None)
        if not self.parts or not any(part.any() for part in self.parts):
            raise UsageError(f"The voice {voice} stays silent; reinstall espeakng-loader.")
        return np.concatenate(self.parts)
