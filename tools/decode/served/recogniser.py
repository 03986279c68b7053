"""A served model with the face of a local recogniser: greedy and sampled answers of clips, each asked for once.

Every answer is kept in a journal before it is used, so that a killed client goes on where it was. A few clips, the watch,
are decoded greedily when decoding begins, every few hundred requests and at the end: a server that answers them otherwise
than before is another model, and nothing that came since the last watch is counted.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tools.audio.identity import checked_digest
from tools.audio.read import read_clip
from tools.decode.served.client import Client, Endpoint
from tools.decode.served.decoding import CHUNK, Decoding, Job, as_answers
from tools.decode.served.journal import Journal
from tools.decode.served.settings import Served, digest_of, seeds_for
from tools.decode.served.wire import Choice, Reply, chat_messages, chat_settings, transcription_settings, wav_bytes
from tools.errors import ProviderError, UsageError
from tools.rows import Answer, Clip

Progress = Callable[[int, int], None]
BYTES_A_TOKEN = 3  # a reference's tokens are reckoned from its bytes: generous for every script


def silent(done: int, total: int) -> None:
    """A progress callback that says nothing."""


@dataclass(frozen=True, slots=True)
class ServedPolicy:
    """What is known of a served model without its weights. `digest` is the server's own where it tells one, else the
    operator's, else that of the name under which it is served; `weights_known` says whether it is of weights."""

    name: str
    digest: str
    weights_known: bool
    window_s: float
    max_target: int
    multilingual: bool = True

    def prompt_ids(self, prompt: str = "", lang: str | None = None, *, clip_id: str = "") -> tuple[int, ...]:
        """Unknown here: the prompt is rendered by the server."""
        return ()


@dataclass
class ServedRecogniser:
    """`greedy` and `sample` as a local recogniser has them. `faults` counts by kind what had to be asked again. `scaled`: its
    log-probs are of the distribution sampled from."""

    served: Served
    policy: ServedPolicy
    rule: str
    folder: Path
    scaled: bool = False
    read: Callable[[Clip], np.ndarray] = read_clip
    chunk: int = CHUNK
    faults: Counter[str] = field(default_factory=Counter)
    requests: int = 0
    unlike: int = 0
    can_repeat: ClassVar[bool] = True
    trains: ClassVar[bool] = False
    given: ClassVar[bool] = False

    @classmethod
    def load(cls, served: Served, folder: Path) -> ServedRecogniser:
        """Asks every endpoint which models it has. Raises ProviderError where none can be reached or none has it."""
        listed = asyncio.run(_listed(served))
        row = next((r for rows in listed for r in rows if r.get("id") == served.model), {})
        if any(listed) and not row:
            names = sorted({str(r.get("id")) for rows in listed for r in rows})
            raise UsageError(f"the server has no model {served.model!r}: it lists {', '.join(names[:10])}")
        told = {str(r["digest"]) for rows in listed for r in rows if r.get("id") == served.model and r.get("digest")}
        if len(told) > 1 or (told and served.digest and told != {served.digest}):
            raise ProviderError(
                f"the endpoints do not serve one model: digests {', '.join(sorted(d[:12] for d in told | {served.digest} - {''}))}"
            )
        digest = next(iter(told), served.digest) or digest_of({"served": served.asked(), "root": row.get("root")})
        length = row.get("max_model_len")
        context = int(length) if isinstance(length, int) and length > 0 else served.context
        window = row.get("window_s")
        policy = ServedPolicy(
            served.model,
            digest,
            bool(told or served.digest),
            float(window) if isinstance(window, int | float) else served.window_s,
            context,
        )
        rule = served.seeds or ("list" if row.get("seeds") == "list" else "consecutive")
        scaled = (served.logprobs or row.get("logprobs")) == "sampled"
        return cls(served, policy, rule, folder, scaled)

    # -- the face of a recogniser -----------------------------------------------------------------------------------

    @property
    def can_sample(self) -> bool:
        """/v1/audio/transcriptions gives one greedy text and takes neither n nor seeds."""
        return self.served.api == "chat"

    def wear(self, weights: Path | None) -> None:
        """A served model wears what it was started with. Raises UsageError for anything else."""
        if weights is not None:
            raise UsageError("a served model cannot wear a checkpoint: give its folder as seed_model to train it")

    def greedy(self, clips: Sequence[Clip], prompt: str, limit: int, progress: Progress = silent) -> list[Answer]:
        """One greedy answer a clip, in the order of `clips`; at most `limit` tokens each."""
        answers = self._answers([Job(c, prompt, limit) for c in clips], progress)
        return [group[0] for group in answers]

    def sample(
        self,
        clips: Sequence[Clip],
        prompt: str,
        limit: int,
        *,
        n: int,
        first: int = 0,
        temperature: float,
        seed: int,
        progress: Progress = silent,
    ) -> list[list[Answer]]:
        """Answers `first` to `first + n - 1` of each clip, each with its own seed (see `seeds_for`)."""
        if not self.can_sample:
            raise UsageError(
                "the model is served by /v1/audio/transcriptions alone, which gives greedy answers only: what greedy costs "
                "can be measured, what sampling would give cannot; serve it with /v1/chat/completions"
            )
        most = 1 if self.rule == "single" else self.served.per_request or n
        jobs: list[Job] = []
        for clip in clips:
            seeds = tuple(seeds_for(self.rule, seed, clip.id, first, n))
            for at in range(0, n, most):
                jobs.append(Job(clip, prompt, limit, temperature, seeds[at : at + most], first + at))
        answers = self._answers(jobs, progress)
        parts = -(-n // most)
        return [[a for part in answers[i : i + parts] for a in part] for i in range(0, len(answers), parts)]

    def reference_tokens(self, clip: Clip) -> int:
        """Tokens of the reference, reckoned from its bytes: the server's tokenizer is not at hand."""
        return -(-len((clip.text or "").strip().encode()) // BYTES_A_TOKEN) + 1

    def longest_reference(self, clips: Sequence[Clip]) -> tuple[int, str]:
        """Reckoned token count and id of the longest reference."""
        lengths = [(self.reference_tokens(c), c.id) for c in clips]
        return max(lengths, default=(1, ""))

    def sampling(self, temperature: float, n: int, extend_to: int) -> dict[str, Any]:
        """What the contract says of sampling."""
        return {"temperature": temperature, "n": n, "extend_to": extend_to}

    def provenance(self) -> dict[str, Any]:
        """Name and licence for the contract; a server does not tell a licence."""
        return {"name": self.served.model, "licence": "not stated", "weights_known": self.policy.weights_known}

    def describe(self) -> dict[str, Any]:
        return {
            "digest": self.policy.digest,
            "multilingual": self.policy.multilingual,
            "window_s": self.policy.window_s,
            "served": True,
            "weights_known": self.policy.weights_known,
        }

    # -- asking -----------------------------------------------------------------------------------------------------

    @property
    def journal_path(self) -> Path:
        name = digest_of({**self.served.asked(), "identity": self.policy.digest})
        return self.folder / f"{name[:16]}.jsonl"

    def key(self, job: Job, audio: str, seed: int | None) -> str:
        """Everything that an answer depends on."""
        return digest_of(
            {
                "served": self.served.asked(),
                "identity": self.policy.digest,
                "audio": audio,
                "instruction": job.instruction,
                "lang": job.clip.lang if self.served.tells_language else None,
                "temperature": job.temperature,
                "limit": job.limit,
                "seed": seed,
                "side_by_side": None if self.chunk == CHUNK else self.chunk,
            }
        )

    async def ask(self, client: Client, job: Job, at: Endpoint | None = None) -> tuple[Reply, str]:
        """One request, past the journal. Returns the reply and the digest of the audio that was sent."""
        wave = await asyncio.to_thread(self.read, job.clip)
        audio = checked_digest(job.clip, wave)
        wav, what = wav_bytes(wave), f"clip {job.clip.id}"
        if not self.can_sample:
            form = transcription_settings(self.served, job.instruction, job.limit, job.clip.lang)
            return await client.transcription(wav, form, what, at), audio
        settings = chat_settings(
            self.served,
            n=job.n,
            temperature=job.temperature,
            limit=job.limit,
            seeds=job.seeds,
            rule=self.rule,
            lang=job.clip.lang,
        )
        return await client.chat(chat_messages(self.served, job.instruction, wav), settings, what, at), audio

    def _answers(self, jobs: list[Job], progress: Progress) -> list[list[Answer]]:
        if not jobs:
            return []
        held = asyncio.run(self._run(jobs, progress))
        return [as_answers(job, choices, self.scaled) for job, choices in zip(jobs, held, strict=True)]

    async def _run(self, jobs: list[Job], progress: Progress) -> list[list[Choice]]:
        journal = Journal(self.journal_path)
        try:
            async with Client(self.served) as client:
                try:
                    return await Decoding(self, client, journal, jobs, progress).go()
                finally:
                    self.faults += client.faults
                    self.requests += client.requests
        finally:
            journal.close()


async def _listed(served: Served) -> list[list[dict[str, Any]]]:
    """/v1/models of every endpoint; one that cannot be reached lists nothing, unless none can."""
    async with Client(served) as client:
        found = await asyncio.gather(*(client.models(e) for e in client.endpoints), return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException) and not isinstance(one, ProviderError):
            raise one
    rows = [one for one in found if isinstance(one, list)]
    if not rows:
        raise next(one for one in found if isinstance(one, ProviderError))
    return rows
