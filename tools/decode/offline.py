"""Proof that an export can be used: a fresh process, no network, an empty cache, plain transformers, and its texts.

The child gets the folder, the clips' samples and the prompt; it imports nothing of ours.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tools.errors import CheckError
from tools.policy.load import model_type
from tools.rows import Clip

TIMEOUT_S = 600
NEEDED = (
    ("config.json",),
    ("generation_config.json",),
    ("model.safetensors", "model.safetensors.index.json"),
    ("tokenizer.json", "vocab.json"),
    ("preprocessor_config.json", "processor_config.json"),
)
CHILD = """
import json, sys
import numpy as np, torch
from transformers import WhisperForConditionalGeneration, WhisperProcessor
job = json.load(sys.stdin)
torch.set_num_threads(job["threads"])
model = WhisperForConditionalGeneration.from_pretrained(job["folder"]).eval()
processor = WhisperProcessor.from_pretrained(job["folder"])
waves = np.load(job["waves"])
out = []
for name, lang in zip(waves.files, job["langs"]):
    features = processor(waves[name], sampling_rate=16000, return_tensors="pt").input_features
    more = {"language": lang, "task": "transcribe"} if job["multilingual"] else {}
    if job["prompt"]:
        more["prompt_ids"] = processor.get_prompt_ids(job["prompt"], return_tensors="pt")
    with torch.no_grad():
        ids = model.generate(features, max_new_tokens=job["limit"], do_sample=False, num_beams=1, **more)
    out.append(processor.tokenizer.decode(ids[0], skip_special_tokens=True, clean_up_tokenization_spaces=False).strip())
json.dump(out, sys.stdout)
"""
TRANSCRIBE_CHILD = """
import json, sys
import numpy as np, torch
from transformers import Nemotron3_5TranscribeForConditionalGeneration, Nemotron3_5TranscribeProcessor
job = json.load(sys.stdin)
torch.set_num_threads(job["threads"])
model = Nemotron3_5TranscribeForConditionalGeneration.from_pretrained(job["folder"], dtype="auto").eval()
processor = Nemotron3_5TranscribeProcessor.from_pretrained(job["folder"])
waves = np.load(job["waves"])
out = []
for name, lang in zip(waves.files, job["langs"]):
    prompt = job["prompt"].replace("{language}", lang or "") or None
    inputs = processor.apply_transcription_request(waves[name], prompt=prompt)
    with torch.no_grad():
        ids = model.generate(**inputs, max_new_tokens=job["limit"], do_sample=False)[:, inputs["input_ids"].shape[1] :]
    out.append(processor.tokenizer.decode(ids[0], skip_special_tokens=True, clean_up_tokenization_spaces=False).strip())
json.dump(out, sys.stdout)
"""
CHILDREN = {"nemo_speechlm": TRANSCRIBE_CHILD}  # by model type; Whisper's otherwise


def offline_check(
    folder: Path, clips: Sequence[Clip], prompt: str, limit: int, multilingual: bool = False
) -> list[str]:
    """Greedy text of each clip through plain transformers. Raises CheckError where the folder cannot be loaded or decoded."""
    import torch

    for needed in NEEDED:
        if not any((folder / name).is_file() for name in needed):
            raise CheckError(f"the export {folder} cannot be used by plain transformers: it has no {needed[0]}")

    from tools.audio.read import read_clip

    with tempfile.TemporaryDirectory() as scratch:
        waves = Path(scratch) / "waves.npz"
        samples: dict[str, Any] = {f"w{i:04d}": read_clip(clip) for i, clip in enumerate(clips)}
        np.savez(waves, **samples)
        job = {
            "folder": os.fspath(folder.absolute()),
            "waves": os.fspath(waves),
            "langs": [clip.lang for clip in clips],
            "prompt": prompt,
            "limit": limit,
            "multilingual": multilingual,
            "threads": torch.get_num_threads(),
        }
        kept = ("PATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "OMP_WAIT_POLICY", "LANG", "LC_ALL")
        env = {name: os.environ[name] for name in kept if name in os.environ}
        env |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HOME": scratch, "HOME": scratch}
        done = subprocess.run(
            [sys.executable, "-c", CHILDREN.get(model_type(folder), CHILD)],
            input=json.dumps(job),
            env=env,
            cwd=scratch,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise CheckError(f"the export {folder} cannot be used by plain transformers without a network: {last}")
    texts: list[str] = json.loads(done.stdout)
    return texts
