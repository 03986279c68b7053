"""Manifests out: NeMo JSON lines, Lhotse cuts, and the list of rows with their digests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from tools.audio.inside import inside_of
from tools.audio.read import open_audio
from tools.errors import CheckError, UsageError
from tools.rows import Clip


def write_nemo(path: Path | str, clips: Iterable[Clip]) -> None:
    """A NeMo manifest (JSON lines), audio relative to the manifest's folder where it lies below it; atomically."""
    path = Path(path)
    with replaced(path) as out:
        for clip in clips:
            out.write(json.dumps(nemo_row(clip, path.parent), ensure_ascii=False) + "\n")


def nemo_row(clip: Clip, folder: Path) -> dict[str, Any]:
    """One clip as a NeMo manifest row; keys without a value are left out."""
    row = {"id": clip.id, "audio_filepath": relative(clip.audio, folder), "duration": clip.duration_s}
    row |= {"offset": clip.offset_s or None, "text": clip.text, "lang": clip.lang, "speaker": clip.speaker}
    row |= {"recording": clip.recording, "label": clip.label, "channel": clip.channel, "context": clip.prompt}
    return {**{k: v for k, v in row.items() if v is not None}, **{k: v for k, v in clip.extras.items() if k not in row}}


def relative(audio: Path, folder: Path) -> str:
    """How a manifest in `folder` names an audio file."""
    whole, root = audio.absolute(), folder.absolute()
    return str(whole.relative_to(root)) if whole.is_relative_to(root) else str(whole)


def write_lhotse(path: Path | str, clips: Iterable[Clip]) -> None:
    """Lhotse cuts, one JSON object a line, that `lhotse.load_manifest_lazy` reads; paths absolute. Of channels that are one
    signal, and none of them named, a cut has the first.

    Raises CheckError for audio inside another file or without a duration; AudioError where a file cannot be opened.
    """
    with replaced(Path(path)) as out:
        for clip in clips:
            out.write(json.dumps(lhotse_cut(clip), ensure_ascii=False) + "\n")


def lhotse_cut(clip: Clip) -> dict[str, Any]:
    """One clip as a MonoCut with its recording and one supervision."""
    if inside_of(clip.audio) or clip.duration_s is None:
        raise CheckError(f"{clip.id}: a cut needs an audio file of its own and a duration; write a NeMo manifest")
    with open_audio(clip.audio) as file:
        rate, frames, channels = int(file.samplerate), int(file.frames), int(file.channels)
    channel = clip.channel or 0
    source = {"type": "file", "channels": list(range(channels)), "source": str(clip.audio.absolute())}
    recording = {
        "id": clip.recording or str(clip.audio.absolute()),
        "sources": [source],
        "sampling_rate": rate,
        "num_samples": frames,
        "duration": frames / rate,
        "channel_ids": list(range(channels)),
    }
    said = {"id": clip.id, "recording_id": recording["id"], "start": 0.0, "duration": clip.duration_s}
    said |= _present(channel=channel, text=clip.text, language=clip.lang, speaker=clip.speaker)
    custom = _present(label=clip.label, context=clip.prompt)
    cut = {"id": clip.id, "start": clip.offset_s, "duration": clip.duration_s, "channel": channel}
    cut |= {"supervisions": [said], "recording": recording, "type": "MonoCut"}
    return {**cut, "custom": custom} if custom else cut


def _present(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def write_rows(path: Path | str, clips: Iterable[Clip]) -> None:
    """The row list with digests: every field of every clip, one JSON object a line, in the given order."""
    with replaced(Path(path)) as out:
        for clip in clips:
            out.write(json.dumps(clip.to_json(), ensure_ascii=False, sort_keys=True) + "\n")


@contextmanager
def replaced(path: Path) -> Iterator[IO[str]]:
    """A text file to write that takes its name only when all of it is written. Raises UsageError where it cannot be."""
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(part, "w", encoding="utf-8", newline="\n") as out:
            yield out
        part.replace(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror or error}): give another path") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
