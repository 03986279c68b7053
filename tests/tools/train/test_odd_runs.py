"""Runs as strangers start them: odd settings, odd pools, folders that someone touched. Each ends right or in one sentence."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.tools.train import toy
from tools.decode.local import greedy
from tools.errors import CheckError, NonFinite, RehearError, UsageError
from tools.rows import Answer, Clip
from tools.train.learner import Learner, StepStats
from tools.train.metrics import final_view, read_metrics
from tools.train.prepare import TrainGroup

pytestmark = pytest.mark.usefixtures("one_thread")


def target(clip: Clip) -> tuple[int, ...]:
    return (*(int(w[1:]) for w in (clip.text or "").split()), toy.STOP)


# -- the trust region --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "back"),
    [
        ({"kl_max": 0.05}, 2),  # what an update samples is its predecessor's doing: that checkpoint is not a good one
        ({"length_ratio_max": 1.0}, 2),
        ({"ratio_p99_max": 1.001}, 1),  # an update's own steps
    ],
)
def test_a_breach_goes_back_to_weights_that_broke_nothing(tmp_path: Path, limit: dict, back: int) -> None:
    settings = {"checkpoint_every": 1, "kl_every": 1, "truncated": "keep", **limit}
    grow = {"reward": lambda hyp, ref, lang=None: float(len(hyp))} if "length_ratio_max" in limit else {}
    result, policy = toy.run(tmp_path / "r", toy.config(**settings), **grow)
    assert result.reason == "trust_region", result.detail
    assert result.last_good == max(0, result.updates - back)
    digests = {c["update"]: c["digest"] for c in result.checkpoints} | {0: toy.ToyPolicy().digest}
    assert policy.digest == digests[result.last_good]


@pytest.mark.parametrize("poisoned", [0, 5])
def test_weights_that_give_no_probabilities_end_the_run_on_ones_that_do(tmp_path: Path, poisoned: int) -> None:
    policy = toy.ToyPolicy()

    def poison(event: dict[str, Any]) -> None:
        if event["event"] == "update" and event["update"] == poisoned:
            policy.model.decoder["out"].bias.data[3] = float("nan")

    if not poisoned:
        policy.model.decoder["out"].bias.data[3] = float("nan")
    result, _ = toy.run(tmp_path / "r", toy.config(checkpoint_every=1), policy=policy, on_event=poison)
    assert result.reason == "non_finite" and "could not sample: the model's probabilities" in result.detail
    assert result.last_good == max(0, poisoned - 1)  # the checkpoint of the poisoned weights is whole, and not good
    assert bool(policy.model.decoder["out"].bias.isfinite().all()) is bool(poisoned)
    with pytest.raises(NonFinite):
        policy.model.decoder["out"].bias.data[3] = float("nan")
        greedy(policy, policy.encode([toy.wave(toy.pool()[0])]), [(toy.START,)], 4, ["c00"])


def test_kl_counts_an_answer_as_often_as_it_was_sampled() -> None:
    policy, clip = toy.ToyPolicy(), toy.pool()[0]
    a, b = (Answer(clip.id, "x", t, logprobs=(p,) * len(t)) for t, p in (((1, 2, 12), -1.0), ((3, 12), -4.0)))
    merged = TrainGroup(clip, (a, b), (0.5, -1.5), (0.0, -1.0), (3, 1))
    copies = TrainGroup(clip, (a, a, a, b), (0.5, 0.5, 0.5, -1.5), (0.0, 0.0, 0.0, -1.0), (1, 1, 1, 1))
    learner = Learner(policy, toy.config(), lambda cs: policy.encode([toy.wave(c) for c in cs]), lambda c: (toy.START,))
    one, four = StepStats(), StepStats()
    learner._anchor_logprobs(3, [merged], one)
    learner._anchor_logprobs(3, [copies], four)
    assert one.kl_mean == pytest.approx(four.kl_mean, rel=1e-5) and one.kl_max == four.kl_max
    spoilt = dataclasses.replace(merged, answers=(a, dataclasses.replace(b, logprobs=(float("nan"), -4.0))))
    with pytest.raises(NonFinite, match="KL to the seed model is nan"):  # a maximum alone would pass a nan over
        learner._anchor_logprobs(3, [spoilt], StepStats())


# -- pools -------------------------------------------------------------------------------------------------------------


def test_one_recording_under_two_ids_is_not_taken_for_deaf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wave, clips = toy.wave, toy.pool(4)
    same = [dataclasses.replace(c, audio_sha256=clips[0].audio_sha256) for c in clips[:3]] + clips[3:]
    monkeypatch.setattr(toy, "wave", lambda clip: wave(clips[0] if clip.id != "c03" else clip))
    assert toy.run(tmp_path / "r", toy.config(updates=2), clips=same)[0].reason == "finished"
    with pytest.raises(CheckError, match="audio does not reach the loss"):
        toy.run(tmp_path / "deaf", policy=toy.ToyPolicy(deaf=True), clips=same)


def test_a_run_that_learnt_its_one_clip_says_why_it_ends(tmp_path: Path) -> None:
    settings = toy.config(groups=1, optimiser_steps=1, updates=60)
    result, _ = toy.run(tmp_path / "r", settings, clips=toy.pool(1))
    assert result.reason == "no_contrast"
    assert "100% of the groups are flat" in result.detail and result.diagnosis


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        ((1,) * 12, r"4 of 12 references do not fit the model's 10 tokens with their prompt, c00 among them"),
        ((toy.START, toy.STOP), "the reference of clip c00 holds .*, which no answer holds"),
        ((1, toy.STOP, 2, toy.STOP), "the reference of clip c00 holds .*, which no answer holds"),
        ((1, 2), "the target of clip c00 does not end in the stop token"),
        ((), "the target of clip c00 does not end in the stop token"),
    ],
)
def test_references_that_cannot_be_answers_start_no_supervised_run(tmp_path: Path, tokens: tuple, says: str) -> None:
    targets = lambda clip: tokens if clip.id in ("c00", "c03", "c06", "c09") else target(clip)  # noqa: E731
    with pytest.raises(UsageError, match=says):
        toy.run(tmp_path / "r", toy.config(method="sft"), targets=targets)
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(("value", "says"), [(1e200, r"1e\+200: scale it"), ("good", "'good': give a number")])
def test_a_reward_that_is_no_score_names_the_clip(tmp_path: Path, value: Any, says: str) -> None:
    with pytest.raises(CheckError, match=f"the reward of an answer of clip c.. is {says}"):
        toy.run(tmp_path / "r", reward=lambda hyp, ref, lang=None: value)


# -- what trains -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("surface", ["encoder", ["decoder.out.weight", "encoder.weight"]])
def test_a_kept_encoding_is_not_taken_for_an_encoder_that_trains(tmp_path: Path, surface: Any) -> None:
    counts = {} if surface == "encoder" else {"surface_tensors": 2, "surface_scalars": 16 * 16 + 13 * 16}
    with pytest.raises(CheckError, match=r"take no part in the loss, encoder\.weight among them"):
        toy.run(tmp_path / "r", toy.config(surface=surface, **counts))


# -- the folder --------------------------------------------------------------------------------------------------------


def test_two_processes_do_not_share_a_run(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    handle = os.open(tmp_path / "r", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(UsageError, match="another process is training"):
        toy.run(tmp_path / "r", toy.config(updates=1))
    os.close(handle)
    assert toy.run(tmp_path / "r", toy.config(updates=1))[0].reason == "finished"


def no_line(run: Path) -> None:
    path = run / "metrics.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:4]))


def no_metrics(run: Path) -> None:
    (run / "metrics.jsonl").unlink()


def no_object(run: Path) -> None:
    (run / "metrics.jsonl").write_text("7\n")


def no_settings(run: Path) -> None:
    (run / "config.json").write_text('{"identity": ')


def no_identity(run: Path) -> None:
    (run / "config.json").write_text("[]")


def another_end(run: Path) -> None:
    path = run / "metrics.jsonl"
    path.write_text(path.read_text().replace('"event": "end"', '"event": "end", "of_another_version": 1'))


@pytest.mark.parametrize("touched", [no_line, no_metrics, no_object, no_settings, no_identity, another_end])
def test_a_folder_that_someone_touched_is_refused(tmp_path: Path, touched: Callable[[Path], None]) -> None:
    toy.run(tmp_path / "r", toy.config(updates=4))
    touched(tmp_path / "r")
    with pytest.raises(CheckError, match=r"metrics.jsonl|config.json"):
        toy.run(tmp_path / "r", toy.config(updates=4))


def test_a_marker_without_its_fields_is_no_checkpoint(tmp_path: Path) -> None:
    plain, _ = toy.run(tmp_path / "r", toy.config(updates=4))
    marker = tmp_path / "r" / "checkpoints" / "u0004" / "COMPLETE"
    marker.write_text(json.dumps({"update": 4, "files": json.loads(marker.read_text())["files"]}))
    again, _ = toy.run(tmp_path / "r", toy.config(updates=4))
    assert again.trained_sha256 == plain.trained_sha256 and again.attempt == 2
    assert [row["update"] for row in final_view(tmp_path / "r" / "metrics.jsonl")] == [1, 2, 3, 4]


def test_another_number_of_threads_is_said(tmp_path: Path) -> None:
    def stop_after_two(event: dict[str, Any]) -> None:
        if event["event"] == "update" and event["update"] == 3:
            raise KeyboardInterrupt

    for threads in (1, 1, 2):
        torch.set_num_threads(threads)
        with pytest.raises(KeyboardInterrupt):
            toy.run(tmp_path / "r", toy.config(updates=4, checkpoint_every=2), on_event=stop_after_two)
    lines = read_metrics(tmp_path / "r" / "metrics.jsonl")
    resumed = [line.get("threads") for line in lines if line.get("event") == "resume"]
    assert resumed == [None, {"before": 1, "now": 2}]


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RehearError, match="cannot be written"):
        toy.run(tmp_path / "file" / "r")
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "tensorboard").write_text("")  # costs the curves, not the run
    assert toy.run(tmp_path / "r", toy.config(updates=1))[0].reason == "finished"
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "checkpoints").write_text("")
    with pytest.raises(CheckError, match="cannot be written"):
        toy.run(tmp_path / "s", toy.config(updates=1))
