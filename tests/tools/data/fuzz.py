"""Damaged manifests and audio, made the same from the same seed: what `test_fuzz` and the long run feed the readers."""

from __future__ import annotations

import io
import json
import random

import numpy as np
import soundfile

ODD = (
    None,
    True,
    -1,
    0,
    1e400,
    float("nan"),
    "",
    " ",
    "NaN",
    "-3",
    "1e999",
    [],
    {},
    [1],
    {"a": 1},
    "\u2028",
    "\x00",
    "é" * 300,
)
ODD_BYTES = (
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\r",
    b"\n\n",
    b'"',
    b"{",
    b"]",
    b"\t",
    b"\x92",
    b"\xed\xa0\x80",
    b"9" * 5000,
)
KINDS = ("jsonl", "json", "csv", "tsv", "stm", "srt", "TextGrid", "ctm")


def rows(rng: random.Random, count: int) -> list[dict]:
    return [
        {
            "id": f"r{i}",
            "audio_filepath": rng.choice(["a.wav", "b.wav", "none.wav"]),
            "text": f"some words {i}",
            "duration": 0.2,
            "offset": 0.0,
            "speaker": f"s{i % 3}",
            "lang": "en",
        }
        for i in range(count)
    ]


def manifest(rng: random.Random) -> tuple[str, bytes]:
    """A damaged manifest: its kind (a file suffix) and bytes."""
    kind = rng.choice(KINDS)
    made = rows(rng, rng.randint(1, 8))
    if kind.startswith("json") and rng.random() < 0.5:
        for row in made:
            if rng.random() < 0.5:
                row[rng.choice([*row, "channel", "label", "prompt", "end", "conversations", "_skipme"])] = rng.choice(
                    ODD
                )
    data = _written(kind, made).encode("utf-8", "surrogatepass")
    if rng.random() < 0.1:
        data = data.decode("utf-8", "replace").encode(rng.choice(["utf-16", "utf-8-sig", "utf-16-be"]))
    for _ in range(rng.choice([0, 1, 1, 2, 5])):
        data = damaged(rng, data)
    return kind, data


def _written(kind: str, made: list[dict]) -> str:
    if kind == "jsonl":
        return "".join(json.dumps(row) + "\n" for row in made)
    if kind == "json":
        return json.dumps(made, indent=1)
    if kind in {"csv", "tsv"}:
        mark = "," if kind == "csv" else "\t"
        return "\n".join([mark.join(made[0]), *(mark.join(str(v) for v in row.values()) for row in made)])
    if kind == "stm":
        return "".join(f"a 1 s{i} {i * 0.2:.2f} {i * 0.2 + 0.2:.2f} <x> {row['text']}\n" for i, row in enumerate(made))
    if kind == "ctm":
        return "".join(f"a 1 {i * 0.2:.2f} 0.1 word{i}\n" for i in range(len(made)))
    if kind == "srt":
        return "".join(
            f"{i + 1}\n00:00:0{i % 9},000 --> 00:00:0{i % 9},200\n{r['text']}\n\n" for i, r in enumerate(made)
        )
    head = '"ooTextFile"\n"TextGrid"\n0\n2\n<exists>\n1\n"IntervalTier"\n"t"\n0\n2\n'
    return (
        "File type = " + head + f"{len(made)}\n" + "".join(f'{i}\n{i + 1}\n"{r["text"]}"\n' for i, r in enumerate(made))
    )


def damaged(rng: random.Random, data: bytes) -> bytes:
    """One mutation: bytes changed, dropped, doubled, put in, or the end cut off."""
    at = rng.randrange(len(data) + 1)
    size = rng.choice([1, 1, 2, 8, 64])
    kind = rng.randrange(6)
    if kind == 0:
        return data[:at] + bytes(rng.randrange(256) for _ in range(size)) + data[at + size :]
    if kind == 1:
        return data[:at] + data[at + size :]
    if kind == 2:
        return data[:at] + data[at : at + size] * rng.choice([2, 3, 50]) + data[at + size :]
    if kind == 3:
        return data[:at] + rng.choice(ODD_BYTES) + data[at:]
    if kind == 4:
        return data[:at]
    other = rng.randrange(len(data) + 1)
    return data[:at] + data[other : other + size] + data[at + size :]


def sounds() -> dict[str, bytes]:
    """A second of sound in many containers and encodings."""
    wave = np.random.default_rng(0).normal(0, 0.1, (16000, 1)).astype(np.float32)
    out = {}
    kinds = [
        ("WAV", "PCM_16"),
        ("WAV", "PCM_24"),
        ("WAV", "FLOAT"),
        ("WAV", "ULAW"),
        ("WAV", "IMA_ADPCM"),
        ("WAV", "GSM610"),
    ]
    kinds += [("WAVEX", "PCM_16"), ("FLAC", "PCM_16"), ("MP3", "MPEG_LAYER_III"), ("OGG", "VORBIS"), ("OGG", "OPUS")]
    kinds += [
        ("NIST", "PCM_16"),
        ("AIFF", "PCM_16"),
        ("AU", "ALAW"),
        ("W64", "PCM_16"),
        ("RF64", "PCM_16"),
        ("CAF", "PCM_16"),
    ]
    for container, encoding in kinds:
        file = io.BytesIO()
        soundfile.write(
            file, np.repeat(wave, 2, axis=1) if encoding == "PCM_24" else wave, 16000, encoding, format=container
        )
        out[f"{container}_{encoding}"] = file.getvalue()
    return out


def sound(rng: random.Random, whole: dict[str, bytes]) -> bytes:
    """A damaged audio file; most of the damage is in the header."""
    data = whole[rng.choice(sorted(whole))]
    for _ in range(rng.choice([1, 1, 2, 4, 12])):
        if rng.random() < 0.7:
            data = damaged(rng, data[:120]) + data[120:]
        else:
            data = damaged(rng, data)
    return data
