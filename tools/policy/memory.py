"""`rehear plan --memory MODEL`: what training a model takes, in bytes, before any weight is loaded or any GPU is asked for.

Fixed: frozen weights as stored, float32 masters of what trains, AdamW's two moments, gradients, the anchor (the seed's
trained tensors, kept for KL and for going back), the copies that bf16 autocast makes of the masters. Moving: what one
clip's forward keeps for its backward pass, by seconds of audio and answers (`tools.policy.dry_run`).

On several GPUs routed experts lie split over the eight of a node and everything else over all of them, as in the reference
layout of four nodes; the largest layer is gathered whole while it computes. Sampling's own memory is not in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tools.errors import UsageError

GIB = 2**30
LAYOUTS = (("one GPU", 1), ("one node of 8", 8), ("4 nodes of 8", 32))
EXPERT_WAYS = 8
WHISPER_FRAMES_S = 50  # encoder states a second of Whisper's window
TOKENS_S = 4  # answer tokens a second of speech
SECONDS, ANSWERS = (5.0, 15.0, 30.0), (8, 16, 64)
KEPT_EXACT = ("model.audio_tower.", "model.multi_modal_projector.", "mixer.gate.")  # float32 in the class itself


def memory_plan(
    model: str,
    surface: str | Sequence[str] = "decoder",
    *,
    adapter: str = "none",
    rank: int = 16,
    precision: str = "bf16",
    gpu_gib: float = 80.0,
    seconds: Sequence[float] = SECONDS,
    answers: Sequence[int] = ANSWERS,
) -> dict[str, Any]:
    """{model, family, tensors, scalars, stored, surface, precision, gpu_gib, layouts[], activations[], notes[]}.

    `model` as in `tools.policy.headers.empty_model`; `surface` and `adapter` as in the training settings. Sizes in GiB a
    GPU. Raises UsageError for a model or surface that is not known.
    """
    import torch

    from tools.policy.headers import empty_model

    if precision not in ("bf16", "float32"):
        raise UsageError(f"There is no precision {precision!r}: use bf16 or float32.")
    for what, sizes in (("gpu_gib", (gpu_gib,)), ("rank", (rank,)), ("seconds", seconds), ("answers", answers)):
        bad = [size for size in sizes if not (math.isfinite(size) and size > 0)]
        if bad or not sizes:
            raise UsageError(f"{what} is {bad[0] if bad else 'empty'}: give a finite number above 0.")
    empty, stored = empty_model(model)
    family = str(empty.config.model_type)
    window = empty.config.max_source_positions / WHISPER_FRAMES_S if family == "whisper" else math.inf
    if max(seconds) > window:
        raise UsageError(f"A clip of {max(seconds):g} s does not fit the window of {window:g} s of {model}.")
    half = precision == "bf16" and family != "whisper"  # a Whisper's weights are always float32
    every = {name: p.numel() for name, p in empty.named_parameters()}
    trained = _surface(empty, family, surface, adapter, rank)
    _lower(empty, every, half)
    tensors, scalars = len(trained), sum(trained.values())
    notes = _notes(family, stored, sum(every.values()), precision, getattr(empty.config, "quantization_config", None))
    with torch.device("cpu"):
        rows = _activations(empty, family, seconds, answers)
    layouts = [_layout(name, gpus, every, trained, half, precision == "bf16", rows, gpu_gib) for name, gpus in LAYOUTS]
    return {
        "model": model,
        "family": family,
        "tensors": len(every),
        "scalars": sum(every.values()),
        "stored": None
        if stored is None
        else {"tensors": stored.tensors, "scalars": stored.scalars, "gib": stored.bytes / GIB},
        "surface": {"name": _name(surface), "adapter": adapter, "tensors": tensors, "scalars": scalars},
        "precision": precision,
        "gpu_gib": gpu_gib,
        "layouts": layouts,
        "activations": rows,
        "notes": notes,
    }


def _name(surface: str | Sequence[str]) -> str:
    return surface if isinstance(surface, str) else "listed"


def _surface(empty: Any, family: str, surface: str | Sequence[str], adapter: str, rank: int) -> dict[str, int]:
    """Scalars of what trains, by name; an adapter's factors stand under the names of the layers they adapt."""
    from tools.policy.adapters import KINDS, adaptable
    from tools.policy.surface import SURFACES, select_named
    from tools.policy.transcribe_files import SURFACES as TRANSCRIBE

    named = dict(select_named(empty, surface, TRANSCRIBE if family == "nemo_speechlm" else SURFACES))
    if adapter == "none":
        return {name: p.numel() for name, p in named.items()}
    if adapter not in KINDS:
        raise UsageError(f"There is no adapter {adapter!r}: use none or one of {', '.join(KINDS)}.")
    out: dict[str, int] = {}
    for layer in adaptable(empty, list(named)):
        height, width = empty.get_submodule(layer).weight.shape
        out |= {f"{layer}.lora_A": rank * width, f"{layer}.lora_B": height * rank}
        out |= {f"{layer}.lora_magnitude_vector": height} if "dora" in adapter else {}
    return out


def _lower(empty: Any, every: Mapping[str, int], half: bool) -> None:
    """Give the empty model the types it computes in."""
    import torch

    if half:
        empty.model.language_model.to(torch.bfloat16)
        for name, parameter in empty.named_parameters():
            if any(part in name for part in KEPT_EXACT):
                parameter.data = parameter.data.float()


def _activations(empty: Any, family: str, seconds: Sequence[float], answers: Sequence[int]) -> list[dict[str, Any]]:
    from tools.policy.dry_run import activations

    rows = []
    for length in seconds:
        for n in answers:
            tokens = max(2, round(length * TOKENS_S))
            row = {"seconds": length, "answers": n, "answer_tokens": tokens}
            row["gib"] = activations(empty, length, n, tokens) / GIB
            if family == "nemo_speechlm":
                with kernel_scan():
                    row["gib_with_kernels"] = activations(empty, length, n, tokens) / GIB
            rows.append(row)
    return rows


@contextmanager
def kernel_scan() -> Iterator[None]:
    """The recurrent layers' scan as the mamba-ssm kernel does it: its inputs are kept and the rest is computed again."""
    import torch
    from transformers.models.nemotron_h import modeling_nemotron_h as module

    class Scan(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, dt: Any, a: Any, b: Any, c: Any) -> Any:
            ctx.save_for_backward(x, dt, a, b, c)
            return torch.empty_like(x), x.new_empty(len(x), *x.shape[2:], b.shape[-1], dtype=torch.float32)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            raise NotImplementedError("only sizes are worked out here")

    def scan(x: Any, dt: Any, a: Any, b: Any, c: Any, return_final_states: bool = False, **_: Any) -> Any:
        out, last = Scan.apply(x, dt, a, b, c)
        return (out, last) if return_final_states else out

    own = module.mamba2_chunk_scan
    module.mamba2_chunk_scan = scan
    try:
        yield
    finally:
        module.mamba2_chunk_scan = own


def _layout(
    name: str,
    gpus: int,
    every: Mapping[str, int],
    trained: Mapping[str, int],
    half: bool,
    casts: bool,
    rows: Sequence[Mapping[str, Any]],
    gpu_gib: float,
) -> dict[str, Any]:
    """Sizes of one layout, in GiB a GPU, and which of the activations' rows fit beside them."""
    frozen = experts = 0
    for tensor, count in every.items():
        if tensor in trained:
            continue
        size = count * (2 if half and not any(part in tensor for part in KEPT_EXACT) else 4)
        if ".experts." in tensor:
            experts += size
        else:
            frozen += size
    scalars = sum(trained.values())
    ways = min(gpus, EXPERT_WAYS)
    parts = {
        "frozen": experts / ways + frozen / gpus,
        "masters": 4 * scalars / gpus,
        "optimiser": 8 * scalars / gpus,
        "gradients": 4 * scalars / gpus,
        "anchor": 4 * scalars / gpus,
        "bf16_copies": (2 * scalars / gpus) if casts else 0,
        "gathered_layer": _largest_layer(every) * (2 if half else 4) if gpus > 1 else 0,
    }
    sizes = {f"{part}_gib": size / GIB for part, size in parts.items()}
    fixed = sum(sizes.values())
    fits = [_work(row) for row in rows if fixed + row.get("gib_with_kernels", row["gib"]) <= gpu_gib]
    return {"layout": name, "gpus": gpus, **sizes, "fixed_gib": fixed, "fits": fits}


def _work(row: Mapping[str, Any]) -> str:
    return f"{row['seconds']:g} s x {row['answers']}"


def _largest_layer(every: Mapping[str, int]) -> int:
    """Scalars of the largest layer, routed experts left out: they are never gathered."""
    layers: dict[str, int] = {}
    for name, count in every.items():
        head, mark, rest = name.partition(".layers.")
        if mark and ".experts." not in name:
            key = f"{head}.{rest.split('.')[0]}"
            layers[key] = layers.get(key, 0) + count
    return max(layers.values(), default=0)


def _notes(family: str, stored: Any, scalars: int, precision: str, quantised: Any) -> list[str]:
    notes = [
        f"activations are of one clip (chunk_clips: 1), {TOKENS_S} answer tokens a second of speech; they come from a run of "
        "the training code without memory, float32 where the class keeps float32",
        "sampling beside training takes its own memory: the weights once more for a serving engine, and its caches",
    ]
    if family == "nemo_speechlm":
        notes.append(
            "gib_with_kernels: with the mamba-ssm kernels, which keep a scan's inputs; torch's own scan pads every answer to "
            "whole chunks of 128 and keeps their products"
        )
        notes.append(
            "the reference recipe trains 269 tensors of 1,074,318,400 scalars, listed in the recipe under its checkpoint's "
            "names; the surfaces here are whole groups of this class: state a list and its two counts to match the recipe"
        )
        notes.append("one GPU is this project's own trainer (not yet run at full size); the nodes are NeMo-RL's layout")
    if stored is not None and stored.scalars != scalars:
        notes.append(f"the folder holds {stored.scalars:,} scalars where its config makes {scalars:,}")
    if stored is not None and stored.missing:
        notes.append(f"the folder will not load: it lacks {', '.join(stored.missing)}")
    if quantised:
        notes.append(
            "config.json says that the weights are quantised: the plan is of the plain weights, which training needs"
        )
    if precision == "bf16" and family == "whisper":
        notes.append("a Whisper's weights stay float32; bf16 is the arithmetic of the training forward")
    return notes


def memory_text(plan: Mapping[str, Any]) -> str:
    """The plan as a page of text."""
    s = plan["surface"]
    adapter = "" if s["adapter"] == "none" else f", {s['adapter']} on it"
    lines = [
        f"{plan['model']} ({plan['family']}): {plan['tensors']:,} tensors, {plan['scalars']:,} scalars",
        f"trains: {s['name']}{adapter}: {s['tensors']:,} tensors, {s['scalars']:,} scalars; {plan['precision']}",
        "",
        f"GiB a GPU, of {plan['gpu_gib']:g}",
        f"{'':16}" + "".join(f"{layout['layout']:>16}" for layout in plan["layouts"]),
    ]
    for part in ("frozen", "masters", "optimiser", "gradients", "anchor", "bf16_copies", "gathered_layer", "fixed"):
        cells = "".join(f"{layout[f'{part}_gib']:16.2f}" for layout in plan["layouts"])
        lines.append(f"{part.replace('_', ' '):16}{cells}")
    kernels = any("gib_with_kernels" in row for row in plan["activations"])
    lines += ["", "kept for the backward pass of one clip, GiB" + (" (with mamba-ssm kernels)" if kernels else "")]
    for row in plan["activations"]:
        more = f" ({row['gib_with_kernels']:.2f})" if kernels else ""
        where = [layout["layout"] for layout in plan["layouts"] if _work(row) in layout["fits"]]
        fits = f"fits {', '.join(where)}" if where else "fits none of them"
        work = f"{row['seconds']:g} s, {row['answers']} answers of {row['answer_tokens']} tokens"
        lines.append(f"  {work:34}{row['gib']:9.2f}{more:>10}  {fits}")
    return "\n".join([*lines, "", *(f"- {note}" for note in plan["notes"])])
