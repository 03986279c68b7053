"""`rehear audit`: re-derives what a work directory claims. It reads, recomputes, and never calls a model.

A report is ok when no rule is violated; what could not be looked at is listed, never passed over. What no audit can see
is in docs/audit.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.ledger.evidence import Evidence, Finding, NotChecked, Rule, Violation
from agent.ledger.rules import ALL
from tools.errors import UsageError

RULES: dict[str, str] = {rule.id: rule.text for rule in ALL}
MOST = 20  # violations shown of one rule; the rest are counted


@dataclass
class AuditReport:
    """`violations` [{rule, records, files[{path, line}], text}], `not_checked` [{rule, why}]; ok without violations."""

    workdir: str
    violations: list[dict[str, Any]] = field(default_factory=list)
    not_checked: list[dict[str, Any]] = field(default_factory=list)
    records: int = 0
    head: str = ""

    @property
    def ok(self) -> bool:
        return not self.violations

    @property
    def rules(self) -> list[str]:
        """Ids of the violated rules, in order."""
        return list(dict.fromkeys(v["rule"] for v in self.violations))

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "violations": self.violations,
            "not_checked": self.not_checked,
            "workdir": self.workdir,
            "rules": len(RULES),
            "ledger": {"records": self.records, "head": self.head},
        }

    def to_text(self) -> str:
        """For a terminal: one line a violation, then what was not checked."""
        lines = [_line(v) for v in self.violations]
        lines += [f"not checked  {n['rule']}: {n['why']}" for n in self.not_checked]
        word = "clean" if self.ok else f"{len(self.violations)} violation(s)"
        lines.append(f"{word}: {len(RULES)} rules over {self.records} records, head {self.head}")
        return "\n".join(lines)


def _line(violation: dict[str, Any]) -> str:
    where = [f"records {', '.join(map(str, violation['records']))}"] if violation["records"] else []
    where += [f["path"] + (f":{f['line']}" if f["line"] else "") for f in violation["files"]]
    return f"VIOLATED  {violation['rule']}: {violation['text']}" + (f"  [{'; '.join(where)}]" if where else "")


def audit(workdir: Path | str, expect_head: str | None = None, only: Collection[str] | None = None) -> AuditReport:
    """Every rule (or `only` those ids) over a work directory. `expect_head`: "HASH:COUNT" as given out.

    Raises UsageError where there is no ledger or the head cannot be read; never for what it finds.
    """
    evidence = Evidence.read(Path(workdir), _head(expect_head))
    report = AuditReport(str(workdir), records=len(evidence.records))
    report.head = evidence.records[-1].hash if evidence.records else ""
    for rule in ALL:
        if only is not None and rule.id not in only:
            continue
        for finding in _limited(_checked(rule, evidence)):
            _add(report, rule, finding)
    return report


def _checked(rule: Rule, evidence: Evidence) -> Iterator[Finding]:
    """A rule's findings; evidence that it cannot even read is a finding too, for what we write can be read."""
    try:
        yield from rule.check(evidence)
    except Exception as err:
        what = f"{type(err).__name__}: {err}" if str(err) else type(err).__name__
        yield Violation(f"the evidence for this rule is not what a run writes ({what})")


def _limited(findings: Iterator[Finding]) -> Iterator[Finding]:
    shown = 0
    more = 0
    for finding in findings:
        if isinstance(finding, NotChecked):
            yield finding
        elif shown < MOST:
            shown += 1
            yield finding
        else:
            more += 1
    if more:
        yield Violation(f"and {more} more of this kind")


def _add(report: AuditReport, rule: Rule, finding: Finding) -> None:
    if isinstance(finding, NotChecked):
        report.not_checked.append({"rule": rule.id, "why": finding.why})
        return
    files = [{"path": path, "line": line} for path, line in finding.files]
    report.violations.append({"rule": rule.id, "records": list(finding.records), "files": files, "text": finding.text})


def _head(text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"\s*([0-9a-f]{64}):(\d+)\s*", text)
    if not found:
        raise UsageError(f"--expect-head takes HASH:COUNT (64 hex digits and the number of records), got {text!r}")
    return found[1], int(found[2])
