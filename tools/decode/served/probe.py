"""Is a server what it says it is? A few clips, before anything is measured with it.

Asked: greedy one by one and side by side (the noise floor, and answers that change places), `n` answers at the sampling
temperature (n honoured, sampling really samples), the prompt in the text, the language, the end of long answers, and
which model answers. Each failure is named; none of these answers is ever counted.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from tools.decode.served import checks
from tools.decode.served.client import Client
from tools.decode.served.decoding import Job
from tools.decode.served.settings import seeds_for
from tools.decode.served.wire import Reply
from tools.errors import ProviderError
from tools.rows import Clip

if TYPE_CHECKING:
    from tools.decode.served.recogniser import ServedRecogniser

CLIPS = 8
HOT = 1.6  # a temperature at which no recogniser says the same twice
PROBE_SEED = 20_260_801


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `blocks`: the server cannot be measured like this."""

    check: str
    ok: bool
    text: str
    blocks: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Probe:
    """All findings; `differing` of `repeated` greedy answers were not the same when asked again (the noise floor)."""

    findings: tuple[Finding, ...]
    repeated: int = 0
    differing: int = 0

    @property
    def ok(self) -> bool:
        return not any(f.blocks and not f.ok for f in self.findings)

    @property
    def failed(self) -> list[str]:
        return [f.check for f in self.findings if f.blocks and not f.ok]

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "findings": [f.to_json() for f in self.findings],
            "noise": {"clips": self.repeated, "differing": self.differing},
        }

    def text(self) -> str:
        """What failed, in one sentence."""
        return "; ".join(f"{f.check}: {f.text}" for f in self.findings if f.blocks and not f.ok)


def pick(clips: Sequence[Clip], most: int = CLIPS) -> list[Clip]:
    """Clips to probe with: half the longest references, half any others, in a stable order."""
    order = sorted(clips, key=lambda c: (-len((c.text or "").split()), c.id))
    half = order[: most // 2]
    rest = sorted(order[most // 2 :], key=lambda c: hashlib.sha256(c.id.encode()).digest())
    return [*half, *rest[: most - len(half)]]


def probe(
    heard: ServedRecogniser,
    clips: Sequence[Clip],
    instruction: str,
    limit: int,
    *,
    n: int = 8,
    temperature: float = 0.8,
) -> Probe:
    """Probes the server with some of `clips` (references needed). Raises nothing that the server does wrong: it is found."""
    return asyncio.run(_Probing(heard, pick(clips), instruction, limit, n, temperature).go())


class _Probing:
    def __init__(
        self, heard: ServedRecogniser, clips: list[Clip], instruction: str, limit: int, n: int, temperature: float
    ) -> None:
        self.heard, self.clips, self.instruction, self.limit = heard, clips, instruction, limit
        self.n, self.temperature = n, temperature
        self.findings: list[Finding] = []

    def _find(self, check: str, ok: bool, text: str, blocks: bool = True) -> None:
        self.findings.append(Finding(check, ok, text, blocks))

    async def go(self) -> Probe:
        differing = 0
        async with Client(self.heard.served) as client:
            try:
                one_by_one = [await self._greedy(client, clip) for clip in self.clips]
                together = await asyncio.gather(*(self._greedy(client, clip) for clip in self.clips))
                differing = self._repeats(one_by_one, list(together))
                self._texts(one_by_one)
                await self._placed(client, one_by_one)
                if self.heard.can_sample:
                    await self._sampling(client)
                else:
                    self._find("sampling", True, "transcriptions only: greedy answers, nothing can be sampled", False)
            except ProviderError as error:
                kind = getattr(error.__cause__, "kind", "request")
                self._find(kind, False, str(error))
        return Probe(tuple(self.findings), len(self.clips), differing)

    def _job(self, clip: Clip, seeds: Sequence[int] = (), temperature: float = 0.0, limit: int | None = None) -> Job:
        return Job(clip, self.instruction, limit or self.limit, temperature, tuple(seeds))

    async def _greedy(self, client: Client, clip: Clip) -> Reply:
        return (await self.heard.ask(client, self._job(clip)))[0]

    # -- greedy -----------------------------------------------------------------------------------------------------

    def _repeats(self, first: list[Reply], second: list[Reply]) -> int:
        texts = {c.id: r.choices[0].text for c, r in zip(self.clips, first, strict=True)}
        again = {c.id: r.choices[0].text for c, r in zip(self.clips, second, strict=True)}
        unlike = [name for name in texts if texts[name] != again[name]]
        moved = [name for name in unlike if any(again[name] == texts[o] for o in texts if o != name)]
        if moved:
            text = f"asked side by side, {len(moved)} clips got another clip's answer ({', '.join(sorted(moved)[:3])})"
            self._find("answers_swapped", False, text)
        text = f"{len(unlike)} of {len(texts)} greedy answers differ when asked again"
        self._find("greedy_repeats", not unlike, text + ("" if not unlike else ": the noise floor"), False)
        return len(unlike)

    def _texts(self, replies: list[Reply]) -> None:
        """Everything that the greedy answers show beside their references."""
        texts = {c.id: r.choices[0].text for c, r in zip(self.clips, replies, strict=True)}
        elsewhere = checks.moved(self.clips, texts)
        if elsewhere:
            text = f"{len(elsewhere)} clips are answered with another clip's words ({', '.join(elsewhere[:3])})"
            self._find("answers_swapped", False, f"{text}: the server, or the references, are out of order")
        empty, said = checks.silent(self.clips, texts), sum(bool(checks.words(c.text or "")) for c in self.clips)
        text = f"{len(empty)} of {said} answers to clips in which something is said hold no word"
        self._find("no_text", len(empty) < max(2, 0.9 * said), text)
        leaked = [c.id for c in self.clips if checks.leaks(self.instruction, texts[c.id], c.text or "")]
        text = f"{len(leaked)} of {len(texts)} answers hold words of the prompt or marks of the chat template"
        self._find("prompt_in_text", 2 * len(leaked) < len(texts) or len(leaked) < 2, text)
        tongues = {c.id: checks.foreign(c, texts[c.id]) for c in self.clips}
        other = [name for name, tongue in tongues.items() if tongue]
        text = f"{len(other)} of {len(texts)} answers are in another language ({', '.join(other[:3])})" if other else ""
        self._find("language", len(other) < max(1, 0.1 * len(texts)), text or "every answer is in its clip's language")
        self._limits(replies, texts)

    async def _placed(self, client: Client, replies: list[Reply]) -> None:
        """Where the audio stands in the rendered prompt, where the server shows it.

        Instruction before audio; and a placeholder that is not the model's own stays in the prompt as text while the server
        puts the audio elsewhere: the prompt then has one mark more than without it.
        """
        rendered = next((r.prompt_text for r in replies if r.prompt_text is not None), None)
        marks = checks.audio_marks(rendered or "")
        if rendered is None or not marks:
            why = (
                "the server does not show the rendered prompt"
                if rendered is None
                else "no mark of an audio in the prompt"
            )
            self._find("order", True, f"{why}: order of text and audio not seen", False)
            return
        placeholder = self.heard.served.placeholder
        if placeholder:
            bare = replace(self.heard, served=replace(self.heard.served, placeholder=""))
            reply = (await bare.ask(client, self._job(self.clips[0])))[0]
            if 0 < len(checks.audio_marks(reply.prompt_text or "")) < len(marks):
                text = f"{placeholder} stands in the prompt as text, and the audio elsewhere: set placeholder to the model's own"
                self._find("placeholder", False, f"{text}, or to '' where the order of the parts decides")
                return
        text_at = rendered.find(self.instruction)
        right = not self.instruction or 0 <= text_at < marks[0]
        self._find("order", right, "instruction before audio" if right else "the audio stands before the instruction")

    def _limits(self, replies: list[Reply], texts: dict[str, str]) -> None:
        """Answers cut although there was room: told (finish "length" below what was asked for) or not told."""
        short = []
        for clip, reply in zip(self.clips, replies, strict=True):
            held = len(reply.choices[0].tokens) or reply.used
            if reply.choices[0].finish == "length" and held is not None and held < 0.9 * self.limit:
                short.append((clip.id, held))
        if short:
            most = max(held for _, held in short)
            text = f"{len(short)} answers were cut at {most} tokens where {self.limit} were asked for"
            self._find("cut_short", False, text)
            return
        hidden = checks.cut_at(self.clips, texts)
        text = (
            "answers end by themselves"
            if hidden is None
            else (
                f"no answer has more than {hidden[0]} words, and {len(hidden[1])} longer references are answered by their "
                f"beginning alone: the server cuts and does not say so"
            )
        )
        self._find("cut_short", hidden is None, text)

    # -- sampling ---------------------------------------------------------------------------------------------------

    async def _sampling(self, client: Client) -> None:
        """Do n answers come, and do they differ where a sampler's would?"""
        groups = await asyncio.gather(*(self._sampled(client, c, self.temperature, self.n) for c in self.clips))
        distinct = [len(set(g)) for g in groups]
        self._find("n_honoured", True, f"{self.n} answers a clip")
        if sum(distinct) > len(distinct):
            self._find("sampling", True, f"{sum(distinct) / len(distinct):.1f} different texts a clip", True)
            return
        await self._why_one(client)

    async def _sampled(self, client: Client, clip: Clip, temperature: float, n: int, apart: int = 0) -> list[str]:
        seeds = seeds_for(self.heard.rule, PROBE_SEED + apart, clip.id, 0, n)
        if self.heard.rule == "single" or self.heard.served.per_request == 1:
            replies = [await self.heard.ask(client, self._job(clip, [s], temperature)) for s in seeds]
            return [r.choices[0].text for r, _ in replies]
        most = self.heard.served.per_request or n
        texts: list[str] = []
        for at in range(0, n, most):
            reply, _ = await self.heard.ask(client, self._job(clip, seeds[at : at + most], temperature))
            texts += [c.text for c in reply.choices]
        return texts

    async def _why_one(self, client: Client) -> None:
        """One text a clip: an easy model, one answer handed out n times, or a temperature that is not used?"""
        some = self.clips[: max(2, len(self.clips) // 2)]
        hot = await asyncio.gather(*(self._sampled(client, c, HOT, self.n) for c in some))
        if any(len(set(g)) > 1 for g in hot):
            self._find(
                "sampling", True, f"one text a clip at {self.temperature:g}, several at {HOT:g}: the clips are easy"
            )
            return
        singles = [[(await self._sampled(client, c, HOT, 1, apart=k))[0] for k in (1, 2, 3, 4)] for c in some]
        if any(len(set(g)) > 1 for g in singles):
            text = f"the {self.n} answers of a request are one answer {self.n} times: other requests give other texts"
            self._find("one_answer", False, text)
            return
        text = f"answers at temperature {HOT:g} are all alike, in one request and over several: temperature is ignored"
        self._find("temperature_ignored", False, text)
