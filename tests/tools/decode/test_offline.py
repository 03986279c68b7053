import shutil

import pytest
import torch

from tools.audio.read import read_clip
from tools.data.manifest import read_manifest
from tools.decode.local import greedy
from tools.decode.offline import offline_check
from tools.errors import CheckError

pytestmark = [pytest.mark.seed_model, pytest.mark.speech]


def test_an_export_of_changed_weights_gives_the_same_text_in_a_fresh_process_without_a_network(
    seed_folder, shared_speech, tmp_path
):
    from tools.policy.whisper import WhisperPolicy

    clips = [c for c in read_manifest(shared_speech / "read/languages/transcripts.jsonl").rows if c.lang == "en"]
    policy = WhisperPolicy.load(seed_folder)
    before = {n: t.clone() for n, t in policy.model.state_dict().items()}
    with torch.no_grad():
        for _, parameter in policy.trainable("decoder"):
            parameter.mul_(1.01)
    ours = []
    for prompt in ("", "The apostle of the middle classes."):
        with torch.no_grad():
            encoded = policy.encode([read_clip(c) for c in clips])
        prompts = [policy.prompt_ids(prompt, c.lang) for c in clips]
        ours.append([a.text for a in greedy(policy, encoded, prompts, 60, [c.id for c in clips])])
    policy.export(tmp_path / "export", {"update": 7})
    moved = tmp_path / "elsewhere"
    shutil.move(tmp_path / "export", moved)
    theirs = [offline_check(moved, clips, p, 60) for p in ("", "The apostle of the middle classes.")]
    assert theirs == ours
    exported = WhisperPolicy.load(moved).model.state_dict()
    assert all(torch.equal(exported[n], t) for n, t in before.items() if "encoder." in n and "encoder_attn" not in n)


@pytest.mark.parametrize(
    "gone", ["tokenizer.json", "generation_config.json", "preprocessor_config.json", "config.json"]
)
def test_a_folder_that_lacks_a_file_is_not_an_export(seed_folder, tmp_path, gone):
    shutil.copytree(seed_folder, tmp_path / "half")
    for name in (gone, *(["vocab.json"] if gone == "tokenizer.json" else [])):
        (tmp_path / "half" / name).unlink(missing_ok=True)
    with pytest.raises(CheckError, match=f"cannot be used by plain transformers: it has no {gone}"):
        offline_check(tmp_path / "half", [], "", 20)


def test_weights_that_cannot_be_read_are_not_an_export(seed_folder, shared_speech, tmp_path):
    shutil.copytree(seed_folder, tmp_path / "half")
    weights = tmp_path / "half" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    clips = read_manifest(shared_speech / "read/languages/transcripts.jsonl").rows[:1]
    with pytest.raises(CheckError, match="cannot be used by plain transformers without a network"):
        offline_check(tmp_path / "half", clips, "", 20)
