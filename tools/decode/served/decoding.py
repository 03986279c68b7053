"""Many requests at once, each answer kept as it comes, and a watch that the model behind them stays the same.

A few clips, the watch, are decoded greedily when decoding begins, every few hundred requests and at the end: a server that
answers them otherwise than before is another model, and nothing that came since the last watch is counted.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tools.audio.identity import clip_digest
from tools.decode.served.client import Client, Endpoint
from tools.decode.served.journal import Journal
from tools.decode.served.wire import Choice
from tools.errors import ProviderError
from tools.rows import Answer, Clip

if TYPE_CHECKING:
    from tools.decode.served.recogniser import ServedRecogniser

CHUNK = 16  # another number asks everything anew, so many requests side by side: the noise floor
WATCHED = 3
WATCH_EVERY = 256  # requests between two watches


@dataclass(frozen=True, slots=True)
class Job:
    """One request: a clip, what is asked of it, and the seeds of its answers (none: greedy). `first` answer's index."""

    clip: Clip
    instruction: str
    limit: int
    temperature: float = 0.0
    seeds: tuple[int, ...] = ()
    first: int = 0

    @property
    def n(self) -> int:
        return len(self.seeds) or 1


@dataclass
class Decoding:
    """One call of `greedy` or `sample`."""

    heard: ServedRecogniser
    client: Client
    journal: Journal
    jobs: list[Job]
    progress: Callable[[int, int], None]
    done: int = 0
    come: dict[str, Choice] = field(default_factory=dict)
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def go(self) -> list[list[Choice]]:
        keys = [self._keys(job) for job in self.jobs]
        todo = [i for i, names in enumerate(keys) if not all(n in self.journal.confirmed for n in names)]
        self.done = len(self.jobs) - len(todo)
        if todo:
            watch = self.journal.watch or self._new_watch()
            await self._watch(watch)
            for at in range(0, len(todo), WATCH_EVERY):
                left = [i for i in todo[at : at + WATCH_EVERY] if not all(self.journal.get(n) for n in keys[i])]
                self.done = len(self.jobs) - len(todo) + min(at + WATCH_EVERY, len(todo)) - len(left)
                await self._part([self.jobs[i] for i in left])
                await self._watch(watch)
        return [[self.journal.confirmed[n] for n in names] for names in keys]

    def _keys(self, job: Job) -> list[str]:
        audio = job.clip.audio_sha256 or clip_digest(self.heard.read(job.clip))
        return [self.heard.key(job, audio, seed) for seed in job.seeds or (None,)]

    async def _part(self, jobs: list[Job]) -> None:
        """Requests side by side, as many in flight as the endpoints may have; each answer is kept as it comes."""
        usual = self.heard.chunk == CHUNK
        many = self.heard.served.concurrency * max(1, len(self.client.endpoints)) if usual else self.heard.chunk
        room = asyncio.Semaphore(many)

        async def one(job: Job) -> None:
            async with room:
                reply, _ = await self.heard.ask(self.client, job)
                await self._keep(dict(zip(self._keys(job), reply.choices, strict=True)))

        tasks = [asyncio.create_task(one(job)) for job in jobs]
        try:
            for task in asyncio.as_completed(tasks):
                await task
                self.done += 1
                self.progress(self.done, len(self.jobs))
        except ProviderError as error:
            if getattr(error.__cause__, "kind", "") == "model_changed":
                raise self._voided(str(error)) from error
            raise
        finally:
            for left in tasks:
                left.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(self, answers: dict[str, Choice]) -> None:
        """On disk when it returns. What comes while others are written is written together, with one flush for all."""
        self.come |= answers
        async with self.writing:
            if all(self.journal.get(name) for name in answers):
                return
            together, self.come = self.come, {}
            try:
                await asyncio.to_thread(self.journal.keep, together)
            except ProviderError:
                self.come |= together
                raise

    # -- the watch --------------------------------------------------------------------------------------------------

    def _new_watch(self) -> dict[str, Any]:
        clips = {job.clip.id: job.clip for job in self.jobs}
        names = sorted(clips, key=lambda name: hashlib.sha256(name.encode()).digest())[:WATCHED]
        first = self.jobs[0]
        held = [clips[name].to_json() for name in sorted(names)]
        return {"clips": held, "instruction": first.instruction, "limit": first.limit, "texts": {}}

    async def _watch(self, watch: dict[str, Any]) -> None:
        """Every endpoint answers the watched clips as at the first time; else ProviderError, and nothing new counts."""
        for endpoint in list(self.client.endpoints):
            try:
                await self._watch_one(watch, endpoint)
            except ProviderError:
                if len(self.client.endpoints) == 1 or endpoint.names:
                    raise
                self.client.endpoints.remove(endpoint)  # never reached: the others do its work
        self.journal.agree(watch)

    async def _watch_one(self, watch: dict[str, Any], endpoint: Endpoint) -> None:
        jobs = [Job(Clip.from_json(c), watch["instruction"], watch["limit"]) for c in watch["clips"]]
        texts = await asyncio.gather(*(self._text(job, endpoint) for job in jobs))
        for job, text in zip(jobs, texts, strict=True):
            before = watch["texts"].setdefault(job.clip.id, text)
            if text == before:
                continue
            again = [await self._text(job, endpoint) for _ in range(2)]
            if before in again or len({text, *again}) > 1:
                self.heard.unlike += 1  # a greedy answer that does not repeat: noise, not another model
                continue
            raise self._voided(
                f"{endpoint} answers clip {job.clip.id} otherwise than when the run began, three times over: it is not the "
                f"model it was (or the endpoints do not serve one model)"
            )

    def _voided(self, why: str) -> ProviderError:
        lost = self.journal.void(why)
        return ProviderError(
            f"the model changed in mid-run: {why}; {lost} answers since the last check are not counted; serve the first "
            f"model again and run on, or start a new work directory"
        )

    async def _text(self, job: Job, endpoint: Endpoint) -> str:
        try:
            reply, _ = await self.heard.ask(self.client, job, endpoint)
        except ProviderError as error:
            if getattr(error.__cause__, "kind", "") == "model_changed":
                raise self._voided(str(error)) from error
            raise
        return reply.choices[0].text


def as_answers(job: Job, choices: Sequence[Choice], scaled: bool) -> list[Answer]:
    """Rows of the answers. An Answer's log-probs are of the distribution sampled from: those of a server that leaves the
    temperature out (`scaled` False) are that at temperature 1 alone, and are left out elsewhere."""
    seeds: Sequence[int | None] = job.seeds or (None,)
    one = Answer(job.clip.id, "", temperature=job.temperature)
    return [
        replace(
            one,
            text=c.text,
            tokens=c.tokens,
            finish=c.finish,
            index=job.first + i if job.seeds else -1,
            seed=seed,
            logprobs=c.logprobs if job.seeds and (scaled or job.temperature == 1) else None,
        )
        for i, (c, seed) in enumerate(zip(choices, seeds, strict=True))
    ]
