"""check_data: read and check every row, make missing splits, drop leaks from train, and write down who is where."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent.act import Context
from agent.disk import write_atomic
from agent.steps.common import SPLITS, clips_of, labels_of, recogniser, write_clips
from agent.steps.summary import KEPT, MIX, TARGET
from tools.errors import CheckError
from tools.rows import Clip

if TYPE_CHECKING:
    from agent.brief import Brief
    from tools.data.manifest import Quarantined
    from tools.data.report import CheckReport

MEMBERSHIP = "data/membership.jsonl"
CHECKS = "data/checks.json"


def run(context: Context) -> str:
    (context.workdir / "data").mkdir(exist_ok=True)
    report = _checked(context)
    clips = [c if c.text is not None else replace(c, text=c.label) for c in _without_leaks(context, report)]
    _refuse(report)
    for split in ("train", "dev", "test"):
        if not any(c.split == split for c in clips):
            raise CheckError(
                f"the {split} split has no usable rows left after the checks: see {context.workdir / CHECKS}"
            )
    _write(context, report, clips)
    return "ready"


def _checked(context: Context) -> CheckReport:
    """Every manifest read and checked, missing splits made, references too long for the model set aside."""
    from tools.data.checks import check_clips
    from tools.data.manifest import read_manifest

    brief = context.session.brief
    options: dict[str, Any] = {"languages": tuple(brief.answer_to("languages") or ())}
    options["max_duration_s"] = recogniser(context).policy.window_s
    options["cache"] = context.workdir / ".rehear" / "heard.sqlite"  # after a repair only what changed is heard
    options["progress"] = lambda what, done, total: context.progress(f"checking {what}")(done, total)
    clips: list[Clip] = []
    aside: list[Quarantined] = []
    for split, paths in brief.manifests().items():
        for path in paths:
            read = read_manifest(path, "train" if split == "train_retention" else split)
            if not read.rows and not read.quarantined:
                raise CheckError(f"{path} has no rows: the {split} split is empty")
            clips += [_part(c, split, "train_retention" in brief.manifests()) for c in read.rows]
            aside += read.quarantined
    clips = _fitting(context, as_labels(context, clips, aside), aside)
    if labels_of(context) is not None:  # one label is no sentence that leaks from one split into another
        options["task"], clips = "label", [replace(c, text=None) for c in clips]
    report = check_clips(clips, aside, **options)
    made = _made_splits(context, report)
    if made is None:
        return report
    written = {(c.manifest, c.row, c.id): c.duration_s for c in clips}  # as it stands there, so that it is known again
    made = [replace(c, duration_s=written[c.manifest, c.row, c.id]) for c in made]
    return check_clips(made, report.quarantined, **options)


def _part(clip: Clip, manifest: str, mixed: bool) -> Clip:
    """A training clip of a mix knows which part it belongs to: what shall improve, or what is to be kept."""
    if not mixed or clip.split != "train":
        return clip
    part = KEPT if manifest == "train_retention" else TARGET
    return replace(clip, extras={**clip.extras, MIX: part})


def as_labels(context: Context, clips: list[Clip], aside: list[Quarantined]) -> list[Clip]:
    """For a label task the reference is the label (a row without one gives its text as label); rows whose label is none
    of the task's are set aside. Transcripts stay as they are."""
    from tools.data.manifest import Quarantined

    labels = labels_of(context)
    if labels is None:
        return clips
    kept = []
    for clip in clips:
        label = clip.label or (clip.text or "").strip() or None
        if label is None or labels.profile.normalise(label) in labels.labels:
            kept.append(replace(clip, label=label, text=label))
            continue
        reason = f"the label {label!r} is none of the task's"
        aside.append(Quarantined(clip.manifest, clip.row, clip.id, reason, clip.split, "label"))
    return kept


def _fitting(context: Context, clips: list[Clip], aside: list[Quarantined]) -> list[Clip]:
    """Rows whose reference the model could never write are set aside, with their token count (F32)."""
    from tools.data.manifest import Quarantined

    heard = recogniser(context)
    room = heard.policy.max_target - len(heard.policy.prompt_ids("", "en"))
    kept = []
    for clip in clips:
        tokens = heard.reference_tokens(clip)
        if tokens <= room:
            kept.append(clip)
            continue
        reason = f"the reference has {tokens} tokens, the model can write {room}"
        aside.append(Quarantined(clip.manifest, clip.row, clip.id, reason, clip.split, "too_long"))
    return kept


def _made_splits(context: Context, report: CheckReport) -> list[Clip] | None:
    """Missing splits from training material, by speaker or recording; None when the customer gave all three."""
    from tools.data.splits import FRACTIONS, make_splits

    brief = context.session.brief
    given = set(brief.manifests())
    source = "manifest" if "manifest" in given else "train"
    missing = [s for s in ("train", "dev", "test") if s not in given]
    if not missing:
        return None
    by = brief.answer_to("splits") or "speaker"
    shares = {s: FRACTIONS[s] for s in ("train", *[m for m in missing if m != "train"])}
    material = [c for c in report.kept if c.split == source]
    dealt = make_splits(material, by, shares, int(brief.answer_to("random_seed") or 0), report.same_audio)
    context.decide(
        "splits", {s: len(rows) for s, rows in dealt.items()}, f"made from {source} by {by}, whole groups dealt out"
    )
    rest = [c for c in report.kept if c.split != source]
    return [*rest, *(replace(c, split=s) for s, rows in dealt.items() for c in rows)]


def _without_leaks(context: Context, report: CheckReport) -> list[Clip]:
    """Train rows that leak into an evaluation split are dropped, by decision; dev and test in each other is refused."""
    from tools.data.checks import leaks

    found = leaks(report)
    if found.dev_test:
        raise CheckError(f"dev and test leak into each other: {found.dev_test[0].text}; make them anew, or give others")
    if found.drop:
        reasons: dict[str, int] = defaultdict(int)
        for checks in found.drop.values():
            for check in checks:
                reasons[check] += 1
        context.decide(
            "drop_leaks", len(found.drop), "train rows that leak into evaluation splits", {"checks": dict(reasons)}
        )
    return found.clean(report.kept)


def _refuse(report: CheckReport) -> None:
    """Whatever still blocks and was not mended by dropping train rows."""
    left = [f for f in report.blocks if len(f.splits) != 2]
    if left:
        raise CheckError("; ".join(f"{f.check}: {f.text}" for f in left[:3]))


def _write(context: Context, report: CheckReport, clips: list[Clip]) -> None:
    from tools.data.membership import write_membership

    context.scratch.pop("clips", None)
    write_clips(context, clips)
    membership = write_membership(context.workdir / MEMBERSHIP, clips)
    checks = json.dumps(report.to_json(), ensure_ascii=False, sort_keys=True, indent=1) + "\n"
    write_atomic(context.workdir / CHECKS, checks)
    payload = {
        "rows_in": report.rows_in,
        "kept": len(clips),
        "quarantined": len(report.quarantined),
        "findings": [
            {"check": f.check, "severity": f.severity, "rows": len(f.rows), "text": f.text} for f in report.findings
        ],
        "checks_sha256": hashlib.sha256(checks.encode()).hexdigest(),
        "membership_sha256": membership,
        "splits": {s: _size(clips_of(context, s)) for s in SPLITS if clips_of(context, s)},
        "near_checked": report.near_checked,
        "manifests": manifest_digests(context.session.brief),
    }
    last = context.last("data_check")
    known = ("membership_sha256", "checks_sha256", "manifests")
    if last is None or any(last.payload.get(key) != payload[key] for key in known):
        context.record("data_check", payload)
    for q in report.quarantined:
        context.notice(f"quarantined {q.manifest}:{q.row} {q.id}: {q.reason}", level="warn")
    for f in report.findings:
        context.notice(f"{f.check}: {f.text}", level="info" if f.severity == "info" else "warn")
    context.notice(", ".join(f"{s} {len(clips_of(context, s))} rows" for s in SPLITS))


def manifest_digests(brief: Brief) -> dict[str, str]:
    """Split -> digest of its manifests: the bytes of files, names and sizes of what lies in folders."""
    out = {}
    for split, paths in brief.manifests().items():
        digest = hashlib.sha256()
        for path in paths:
            inside = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else []
            digest.update("".join(f"{p.relative_to(path)} {p.stat().st_size}\n" for p in inside).encode())
            if path.is_file():
                with path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
        out[split] = digest.hexdigest()
    return out


def _size(clips: list[Clip]) -> dict[str, Any]:
    return {
        "rows": len(clips),
        "speakers": len({c.speaker for c in clips if c.speaker}),
        "seconds": round(sum(c.duration_s or 0.0 for c in clips), 3),
    }
