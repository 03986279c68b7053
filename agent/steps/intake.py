"""intake: take what the customer said, apply the safe defaults, and write down that they were assumed."""

from __future__ import annotations

from agent.act import Context


def run(context: Context) -> str:
    context.session.brief.check_files()
    context.session.assume_defaults(state=context.state)
    for assumption in context.session.assumptions():
        context.notice(f"assumed {assumption['id']}: {assumption['value']} ({assumption['why']})")
    if "retention" not in context.session.brief.manifests():
        context.notice("there is no retention set: what the model may lose elsewhere stays unmeasured", level="warn")
    return "ready"
