"""The local GSPO trainer: sample, keep groups with contrast, step, watch, checkpoint; resumable to the bit.

A run is a folder:

    config.json     settings, and what the run is of: pool, seed model, reward, prompts (other ones are refused)
    metrics.jsonl   one object an update, and the events of resumed attempts
    checkpoints/    whole checkpoints, see `tools.train.checkpoint`
    tensorboard/    the same figures as scalars (and wandb/, where the settings ask for it)

Everything random follows from the settings' seed, the update and the clip's id, so a run that was killed and resumed
ends in the same weights, bit for bit, on the same machine with the same number of threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from tools.errors import CheckError, NonFinite, UsageError
from tools.files import file_sha256
from tools.rows import Clip
from tools.train import checkpoint as disk
from tools.train.config import GspoConfig
from tools.train.folder import RunResult as RunResult
from tools.train.folder import (
    check_limit,
    check_pool,
    check_reward,
    check_targets,
    claim_folder,
    lock_folder,
    run_identity,
)
from tools.train.learner import Learner, StepStats
from tools.train.metrics import Line, MetricsFile, final_view, read_metrics
from tools.train.prepare import TrainGroup, make_groups
from tools.train.rollout import Encode, Prompts, ReferenceSource, Reward, Rollout, RolloutSource, Sampler, normaliser
from tools.train.saving import Progress, Saver
from tools.train.scalars import open_scalars
from tools.train.surface import frozen_digest, tensors_digest
from tools.train.watch import (
    FEATURES_MATTER,
    Error,
    assert_direction,
    breach,
    correlation,
    diagnose,
    ratio_moved,
    reference_figures,
    rollout_figures,
    step_figures,
)

Event = dict[str, Any]


class Interrupted(Exception):
    """The run was asked to stop and did, between two updates. Running it again goes on after `update`."""

    def __init__(self, update: int, run_dir: Path) -> None:
        super().__init__(f"run {run_dir.name} stopped after update {update}; run it again to go on")
        self.update, self.run_dir = update, run_dir


def train(
    policy: Any,
    pool: Sequence[Clip],
    encode: Encode,
    reward: Reward,
    config: GspoConfig,
    run_dir: Path,
    *,
    prompts: Prompts,
    on_event: Callable[[Event], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    evaluate: Callable[[int], Any] | None = None,
    sample: Sampler | None = None,
    answer_seed: Callable[[int, str, int], int] | None = None,
    error: Error | None = None,
    targets: Callable[[Clip], tuple[int, ...]] | None = None,
    judge: Callable[[int], tuple[str, str] | None] | None = None,
) -> RunResult:
    """Train `policy` (which must hold the seed model's weights) on `pool`, or go on where `run_dir` stands.

    `encode(clips)` gives encoder states `[B, S, d]` (cached where the encoder is frozen); `prompts(clip)` the decoder
    prompt's ids. `reward(hyp, ref, lang)`, and `error` likewise where an error rate beside it is to be watched.
    `evaluate(update)` is called after each checkpoint with the policy at its weights, and again for the checkpoint a
    run is resumed from: it must find what it did already. `on_event` gets progress; `should_stop` is asked between
    updates and between sampling chunks. `judge(update)` is asked after each evaluated checkpoint (again after a resume
    from it) and ends the run with the (reason, detail) it gives. For method "sft", `targets(clip)` gives the reference's tokens with the stop
    token; nothing is sampled and the reward is not asked.

    Raises Interrupted when asked to stop; UsageError where `run_dir` is of another run or the pool is too small;
    CheckError where a check of the run fails (the reward's order, log-probs, mask, direction of the advantages, disk, frozen tensors).
    """
    supervised = config.method == "sft"
    if supervised and targets is None:
        raise UsageError("supervised training needs targets=: a function from a clip to its reference's tokens")
    check_pool(pool, config)
    if supervised and targets is not None:
        check_targets(policy, pool, targets, prompts)
    else:
        check_reward(reward)
        check_limit(policy, pool, config, prompts)
    run = _Run(policy, pool, encode, reward, config, Path(run_dir), prompts, on_event, should_stop, evaluate, error)
    run.judge = judge
    if supervised and targets is not None:
        run.source = ReferenceSource(pool, config, targets=targets, check=run.stop_if_asked)
        return run.go()
    if sample is None or answer_seed is None:
        from tools.decode import local

        sample, answer_seed = sample or local.sample, answer_seed or local.answer_seed
    run.source = RolloutSource(
        policy,
        pool,
        encode,
        reward,
        config,
        prompts=prompts,
        sample=sample,
        answer_seed=answer_seed,
        check=run.stop_if_asked,
        progress=lambda done, most: run.tell(event="sampling", update=run.update + 1, done=done, most=most),
    )
    return run.go()


class _Run:
    """One call of `train`: the loop and its state."""

    source: RolloutSource | ReferenceSource
    judge: Callable[[int], tuple[str, str] | None] | None = None
    suspect: int | None = None  # the update whose weights sampled what broke a limit: not one to go back to

    def __init__(
        self,
        policy: Any,
        pool: Sequence[Clip],
        encode: Encode,
        reward: Reward,
        config: GspoConfig,
        run_dir: Path,
        prompts: Prompts,
        on_event: Callable[[Event], None] | None,
        should_stop: Callable[[], bool] | None,
        evaluate: Callable[[int], Any] | None,
        error: Error | None,
    ) -> None:
        self.policy, self.pool, self.config, self.run_dir = policy, pool, config, run_dir
        self.on_event, self.should_stop, self.evaluate, self.error = on_event, should_stop, evaluate, error
        self.clips = {c.id: c for c in pool}
        self.normalise = normaliser(reward)
        self.root = run_dir / "checkpoints"
        claim_folder(run_dir, config, run_identity(policy, pool, reward, config, prompts))
        self.learner = Learner(policy, config, encode, prompts)
        self.saver = Saver(self.root, policy, self.learner, config)
        self.progress = Progress()
        self.lines: list[Line] = []
        self.checked_features = False
        self.clock, self.cpu = time.perf_counter(), time.process_time()

    # -- the loop -----------------------------------------------------------------------------------------------

    def go(self) -> RunResult:
        with lock_folder(self.run_dir):
            self.metrics = MetricsFile(self.run_dir / "metrics.jsonl")
            return self._go()

    def _go(self) -> RunResult:
        ended = self._resume()
        if ended is not None:
            return ended
        self.saver.check_disk(self.update)
        self.scalars = open_scalars(self.run_dir, self.config, self.update)
        try:
            end = self._judged()
            if end:
                return self._end(*end)
            while self.update < self.config.updates:
                end = self._one_update()
                if end:
                    return self._end(*end)
            return self._end("finished", "")
        except Interrupted:
            self._save_on_stop()
            raise
        finally:
            self.scalars.close()

    @property
    def update(self) -> int:
        """The last update that is complete."""
        return self.progress.update

    def stop_if_asked(self) -> None:
        if self.should_stop is not None and self.should_stop():
            raise Interrupted(self.update, self.run_dir)

    def tell(self, **event: Any) -> None:
        if self.on_event is not None:
            self.on_event({"run": self.run_dir.name, **event})

    def _one_update(self) -> tuple[str, str] | None:
        """One update and what follows from it; returns (reason, detail) where the run ends here."""
        self.stop_if_asked()
        update, clock = self.update + 1, _Clock()
        try:
            rollout = self.source.collect(update, self.progress.position)
        except NonFinite as error:
            self.suspect = self.update
            return "non_finite", f"update {update} could not sample: {error}"
        clock.mark("sample_s")
        groups = make_groups(rollout.retained, self.clips, self.config)
        try:
            stats, direction = self._learn(update, groups)
        except NonFinite as error:
            return "non_finite", str(error)
        clock.mark("learn_s")
        line = self._line(update, rollout, stats, groups, direction, clock)
        self.metrics.append(line)
        self.lines.append(line)
        self.scalars.add(line)
        self.tell(event="update", **line)
        broken = breach(self.config, line, self.lines[0])
        if broken:
            self.suspect = update - 1 if broken.sampled else None
            return "trust_region", f"update {update}: {broken.text}"
        self.progress = self.progress.after(rollout.after, line["clips"])
        if update % self.config.checkpoint_every == 0 or update == self.config.updates:
            self._checkpoint()
        if self.progress.flat >= self.config.flat_updates:
            return "no_contrast", "; ".join(self._diagnosis("no_contrast"))
        return self._judged()

    def _judged(self) -> tuple[str, str] | None:
        """What the judge says of the checkpoint that was just made or resumed from; None between checkpoints."""
        at_checkpoint = self.update and self.saver.has(self.update, candidate=True)
        if self.judge is None or not at_checkpoint or self.update >= self.config.updates:
            return None
        return self.judge(self.update)

    def _learn(self, update: int, groups: list[TrainGroup]) -> tuple[StepStats | None, float | None]:
        if not groups:
            return None, None
        direction = None if self.config.method == "sft" else assert_direction(groups, update)
        self._check_features(groups)
        stats = self.learner.update(update, groups)
        if stats.gap > self.config.logprob_gap_max:
            raise CheckError(
                f"update {update}: training gives a sampled token a log-prob that differs by {stats.gap:.3g} from the "
                "one it was sampled with: temperature, suppressed tokens, prompt or audio differ between the two"
            )
        return stats, direction

    def _check_features(self, groups: list[TrainGroup]) -> None:
        """Other audio must change the log-probs of an answer; checked once an attempt, on the first two groups that do
        not hold one recording under two ids."""
        other_audio = (g for g in groups[1:] if g.clip.audio_sha256 != groups[0].clip.audio_sha256)
        pair = [*groups[:1], *islice(other_audio, 1)]
        if self.checked_features or len(pair) < 2:
            return
        own, (one, two) = self.learner.encode, (g.clip for g in pair)
        other = {one.id: two, two.id: one}
        swapped = self.learner.measure(pair, lambda clips: own([other[c.id] for c in clips]))
        plain = self.learner.measure(pair)
        moved = max(float((plain[i] - swapped[i]).abs().max()) for i in plain)
        if moved < FEATURES_MATTER:
            raise CheckError("the audio does not reach the loss: log-probs stay the same under another clip's audio")
        self.checked_features = True

    def _line(
        self,
        update: int,
        rollout: Rollout,
        stats: StepStats | None,
        groups: list[TrainGroup],
        direction: float | None,
        clock: _Clock,
    ) -> Line:
        seen = self.progress.after(rollout.after, [g.clip.id for g in groups]).presented
        said = sum(len(a.tokens) for g in rollout.groups for a in g.answers)
        return {
            "run": self.run_dir.name,
            "attempt": self.metrics.attempt,
            "update": update,
            "lr": self.config.learning_rate(update),
            **(
                reference_figures(rollout, self.clips)
                if self.config.method == "sft"
                else rollout_figures(rollout, self.clips, self.normalise)
            ),
            **step_figures(stats),
            "advantage_reward_correlation": None if direction is None else -direction,
            "advantage_error_correlation": (
                correlation(groups, self.error) if self.error is not None and direction is not None else direction
            ),
            "epoch": rollout.after.epoch,
            "distinct_clips": len(seen),
            "repeats": sum(seen.values()) - len(seen),
            **clock.figures(said),
        }

    # -- checkpoints and resume ---------------------------------------------------------------------------------

    def _checkpoint(self, candidate: bool = True) -> None:
        began = time.perf_counter()
        done = self.saver.save(self.progress, candidate)
        took = time.perf_counter() - began
        self.tell(event="checkpoint", update=self.update, digest=done.digest, folder=str(done.folder), seconds=took)
        if candidate:
            self._evaluate(self.update)

    def _evaluate(self, update: int) -> None:
        if self.evaluate is not None:
            self.tell(event="evaluated", update=update, result=self.evaluate(update))

    def _save_on_stop(self) -> None:
        """Keep the updates since the last checkpoint: one to go on from, not one to select."""
        if self.update and not self.saver.has(self.update):
            self._checkpoint(candidate=False)

    def _resume(self) -> RunResult | None:
        """Go to the last complete checkpoint, if any; a run that had ended gives its result again."""
        from torch import get_num_threads

        found = disk.find_checkpoints(self.root)
        lines = read_metrics(self.metrics.path)
        if lines and lines[-1].get("event") == "end":
            again = self._ended(lines[-1], found)
            if again is not None:
                return again
        if not lines and not found.complete and not found.skipped:
            return None
        self.progress, candidate = self.saver.resume(found)
        lost = sorted(row["update"] for row in final_view(self.metrics.path) if row["update"] > self.update)
        note: Event = {"event": "resume", "attempt": self.metrics.attempt, "from_update": self.update, "lost": lost}
        then, now = self.saver.threads, get_num_threads()
        if then not in (None, now):  # sums are taken in another order: the same run, and not to the bit
            note["threads"] = {"before": then, "now": now}
        self.metrics.append({**note, "skipped": dict(found.skipped), "run": self.run_dir.name})
        self.lines = final_view(self.metrics.path)
        if len(self.lines) != self.update:
            raise CheckError(
                f"{self.metrics.path} holds {len(self.lines)} of the {self.update} updates that its checkpoint stands on: "
                "restore the file, or start a new run folder"
            )
        self.tell(**note, skipped=dict(found.skipped))
        if candidate:
            self._evaluate(self.update)
        return None

    # -- the end ------------------------------------------------------------------------------------------------

    def _end(self, reason: str, detail: str) -> RunResult:
        """Bring the policy to the last good weights, check the frozen tensors, and write the end."""
        if reason in ("trust_region", "non_finite"):
            last_good = self.saver.roll_back(self.suspect)
        else:
            if self.update and not self.saver.has(self.update, candidate=True):
                self._checkpoint()
            last_good = self.update
        if frozen_digest(self.policy, self.learner.named) != self.learner.frozen:
            raise CheckError(f"run {self.run_dir.name}: a tensor outside the training surface has changed")
        result = self._result(reason, detail, last_good)
        self.metrics.append({"event": "end", **result.to_json()})
        self.tell(event="end", **result.to_json())
        return self._with_metrics(result)

    def _result(self, reason: str, detail: str, last_good: int) -> RunResult:
        moved = any(ratio_moved(row, self.config) for row in self.lines)
        return RunResult(
            run_id=self.run_dir.name,
            attempt=self.metrics.attempt,
            reason=reason,
            detail=detail,
            updates=len(self.lines),
            last_good=last_good,
            checkpoints=self.saver.candidates(self.run_dir),
            method=self.config.method,
            ratio_moved=moved,
            gspo_claimed=self.config.method == "gspo" and moved,
            distinct_clips=len({i for row in self.lines for i in row["clips"]}),
            presentations=sum(row["retained"] for row in self.lines),
            offered=sum(row["offered"] for row in self.lines),
            answers=sum(row["answers"] for row in self.lines),
            trained_sha256=tensors_digest(self.learner.named),
            frozen_sha256=self.learner.frozen,
            seconds=time.perf_counter() - self.clock,
            cpu_s=time.process_time() - self.cpu,
            diagnosis=self._diagnosis(reason),
        )

    def _diagnosis(self, reason: str) -> list[str]:
        """Why the run learns nothing; where it ended for want of contrast, what the flat updates were like."""
        flat = reason == "no_contrast"
        return diagnose(self.lines[-self.config.flat_updates :] if flat else self.lines, self.config)

    def _ended(self, line: Line, found: disk.Found) -> RunResult | None:
        """The result of a run that had ended, with its weights put back; None where its checkpoint is gone."""
        try:
            result = RunResult(**{k: v for k, v in line.items() if k != "event"})
        except TypeError as error:
            raise CheckError(
                f"the end in {self.metrics.path} is not one of this version's: start a new run folder"
            ) from error
        at = {c.update: c for c in found.complete}
        if result.last_good and result.last_good not in at:
            return None
        if result.last_good:
            self.learner.restore(disk.read_trained(at[result.last_good]), None)
            self._evaluate(result.last_good)
        return self._with_metrics(result)

    def _with_metrics(self, result: RunResult) -> RunResult:
        return RunResult(**{**result.to_json(), "metrics_sha256": file_sha256(self.metrics.path)})


class _Clock:
    """Seconds by phase and CPU seconds of one update."""

    def __init__(self) -> None:
        self.began = self.last = time.perf_counter()
        self.cpu = time.process_time()
        self.phases: dict[str, float] = {}

    def mark(self, phase: str) -> None:
        now = time.perf_counter()
        self.phases[phase], self.last = now - self.last, now

    def figures(self, tokens: int) -> Line:
        """Seconds, and answer tokens a second of the whole update."""
        took = time.perf_counter() - self.began
        cpu = time.process_time() - self.cpu
        return {**self.phases, "seconds": took, "cpu_s": cpu, "tokens_per_s": tokens / took}
