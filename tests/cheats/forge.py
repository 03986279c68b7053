"""A thorough cheat: edits records, rebuilds the chain, the digests, the pages, the report and the git history.

What is left for the audit to see is then the cheat itself and not the traces of a clumsy edit.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent.contract import CONTRACT
from agent.history import History
from agent.ledger.chain import GENESIS, LEDGER, digest, parse_line, seal
from agent.ledger.evidence import Evidence
from agent.ledger.pages import render_pages
from agent.ledger.replica import result_again
from agent.ledger.rowfiles import write_digests
from tools.report import render_all
from tools.rows import ScoredRow
from tools.text import profile
from tools.verbs.evaluate import write_evaluation

Body = dict[str, Any]


class Forger:
    """The ledger of a work directory as plain dictionaries; `save` makes a valid ledger of them again."""

    def __init__(self, workdir: Path) -> None:
        self.workdir = workdir
        lines = (workdir / LEDGER).read_bytes().splitlines()
        self.bodies: list[Body] = [json.loads(line) for line in lines]

    # -- records ----------------------------------------------------------------------------------------------------

    def all(self, kind: str, **match: Any) -> list[Body]:
        return [b for b in self.bodies if b["kind"] == kind and all(b["payload"].get(k) == v for k, v in match.items())]

    def one(self, kind: str, **match: Any) -> Body:
        return self.all(kind, **match)[-1]

    def payload(self, kind: str, **match: Any) -> Body:
        return self.one(kind, **match)["payload"]

    def drop(self, kind: str, **match: Any) -> None:
        gone = [id(b) for b in self.all(kind, **match)]
        assert gone, f"no {kind} with {match}"
        self.bodies = [b for b in self.bodies if id(b) not in gone]

    def insert(self, before: Body, kind: str, payload: Body, **envelope: Any) -> Body:
        """A new record in front of another one, at the same moment."""
        body = {**before, "kind": kind, "payload": payload, "key": None, "seq": None, **envelope}
        self.bodies.insert(self.bodies.index(before), body)
        return body

    def append(self, kind: str, payload: Body, **envelope: Any) -> Body:
        body = {**self.bodies[-1], "kind": kind, "payload": payload, "key": None, "seq": None, **envelope}
        self.bodies.append(body)
        return body

    def move(self, body: Body, before: Body) -> None:
        self.bodies.remove(body)
        body["ts"] = before["ts"]
        self.bodies.insert(self.bodies.index(before), body)

    # -- files and the records that name them -----------------------------------------------------------------------

    def sha(self, name: str) -> str:
        return hashlib.sha256((self.workdir / name).read_bytes()).hexdigest()

    def edit_json(self, name: str, change: Callable[[Any], Any]) -> None:
        path = self.workdir / name
        value = json.loads(path.read_text())
        changed = change(value)
        path.write_text(
            json.dumps(value if changed is None else changed, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
        )

    def edit_lines(self, name: str, change: Callable[[list[Any]], list[Any] | None]) -> None:
        path = self.workdir / name
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        changed = change(rows)
        path.write_text("".join(json.dumps(r, ensure_ascii=False, sort_keys=True) + "\n" for r in (changed or rows)))

    def rescore(
        self, eval_id: str, change: Callable[[list[Body]], list[Body] | None] | None = None, name: str = ""
    ) -> None:
        """Change the rows of an evaluation; scores, digests and its records follow."""
        folder = self.workdir / "evals" / eval_id
        rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
        rows = (change(rows) if change else None) or rows
        frozen = self.payload("freeze")["contract"]["profile"]["name"]
        done = write_evaluation(folder, [ScoredRow.from_json(r) for r in rows], profile(name or frozen))
        payload = self.payload("eval", eval_id=eval_id)
        counts = ("insertions", "deletions", "substitutions", "reference_units")
        scores = {
            "wer": done.scores["value"],
            "cer": done.scores["cer"]["value"],
            **{k: done.scores[k] for k in counts},
        }
        payload |= {
            "rows": done.rows, "rows_sha256": done.rows_sha256, "scores_sha256": done.scores_sha256,
            "row_digests_sha256": write_digests(folder), "scores": scores,
        }  # fmt: skip
        for outcome in self.all("outcome", effect="evaluate"):
            if outcome["payload"]["result"].get("rows_sha256") and outcome["key"] == self._intent_key(eval_id):
                outcome["payload"]["result"] |= {k: payload[k] for k in ("rows", "rows_sha256", "scores_sha256")}

    def _intent_key(self, eval_id: str) -> str | None:
        return next((i["key"] for i in self.all("intent") if i["payload"]["args"].get("eval_id") == eval_id), None)

    def refile(self, name: str) -> None:
        """The digest of a file that was changed, wherever an outcome names it."""
        for outcome in self.all("outcome"):
            files = outcome["payload"]["result"].get("files") or {}
            if name in files:
                files[name] = self.sha(name)

    def remember(self, change: Callable[[list[Body]], list[Body] | None]) -> None:
        """Change the membership; data check, contract and everything that names their digests follow."""
        self.edit_lines("data/membership.jsonl", change)
        found = self.sha("data/membership.jsonl")
        rows = [json.loads(line) for line in (self.workdir / "data/membership.jsonl").read_text().splitlines()]
        check = self.payload("data_check")
        check |= {"membership_sha256": found, "kept": len(rows)}
        for name, split in check["splits"].items():
            split["rows"] = sum(r["split"] == name for r in rows)
        for opened in self.all("test_open"):
            opened["payload"]["membership_sha256"] = found
        self.freeze(lambda contract: contract.update(membership_sha256=found))

    def freeze(self, change: Callable[[Body], None]) -> None:
        """Change the contract as if it had been so from the first; every digest of it follows."""
        record = self.payload("freeze")
        before = record["contract_sha256"]
        change(record["contract"])
        record["contract_sha256"] = digest(record["contract"])
        text = json.dumps(self.bodies).replace(before, record["contract_sha256"])
        self.bodies = json.loads(text)
        frozen = self.payload("freeze")["contract"]
        (self.workdir / CONTRACT).write_text(json.dumps(frozen, indent=1, sort_keys=True, ensure_ascii=False) + "\n")

    # -- covering the tracks ----------------------------------------------------------------------------------------

    def save(self, *, git: bool = True, pages: bool = True, report: bool = False) -> Path:
        """Chain again; render pages (and the report) again; a git history of one commit that fits."""
        self._chain()
        if report:
            self.report()
        records = [parse_line(line) for line in (self.workdir / LEDGER).read_bytes().splitlines()]
        if pages:
            render_pages(self.workdir, records)
        if git:
            self.history(len(records), records[-1].hash)
        return self.workdir

    def _chain(self) -> None:
        seqs = {b["seq"]: number for number, b in enumerate(self.bodies, start=1) if b["seq"] is not None}
        prev, lines = GENESIS, []
        for number, body in enumerate(self.bodies, start=1):
            body.pop("hash", None)
            body |= {"seq": number, "prev": prev}
            if body["kind"] == "claim" and body["payload"]["register"] in seqs:
                body["payload"]["register"] = seqs[body["payload"]["register"]]
            prev, line = seal(body)
            body["hash"] = prev
            lines.append(line + b"\n")
        (self.workdir / LEDGER).write_bytes(b"".join(lines))

    def report(self, change: Callable[[Body], None] | None = None) -> None:
        """Make result.json again from the forged records, change it, render it, and put the new digests on record."""
        outcome = self.one("outcome", effect="report")
        made_from = self.bodies.index(outcome) - 1  # the intent stands between
        evidence = Evidence.read(self.workdir)
        head = evidence.records[made_from - 1].hash
        evidence.cache.clear()
        evidence.result.setdefault("provenance", {})["ledger"] = {"records": made_from, "head": head}  # type: ignore[union-attr]
        result = result_again(evidence)
        if change:
            change(result)
        path = self.workdir / "report" / "result.json"
        path.write_text(json.dumps(result, ensure_ascii=False, sort_keys=True, indent=1) + "\n")
        render_all(self.workdir)
        for name in outcome["payload"]["result"]["files"]:
            if (self.workdir / name).is_file():
                outcome["payload"]["result"]["files"][name] = self.sha(name)
        self._chain()

    def history(self, count: int, head: str) -> None:
        ignore = (self.workdir / ".gitignore").read_text()
        shutil.rmtree(self.workdir / ".git")
        history = History(self.workdir)
        history.init(ignore)
        history.commit("state handover", count, head)
