import io
import json

import pytest

from agent.events import Finished, Measured, Notice, Progress, StateEntered
from agent.faces.headless import Plain, sparkline, stream


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_curve_is_low_where_it_is_low():
    assert sparkline([3.0, 2.0, 1.0]) == "█▄▁" or sparkline([3.0, 2.0, 1.0]) == "█▅▁"
    assert len(sparkline([0.5])) == 1


def test_states_notices_and_the_dev_curve_are_lines():
    out = io.StringIO()
    face = Plain(out)
    face(StateEntered(state="mine", title="Mine"))
    face(Measured(name="dev", value=0.4, details={"update": 10}))
    face(Measured(name="dev", value=0.2, details={"update": 20}))
    face(Notice(level="warn", text="[brackets] are data"))
    text = out.getvalue()
    assert "== Mine [mine]" in text and "dev 0.2000 █▁  update 20" in text and "warn: [brackets] are data" in text


def test_a_pipe_is_not_flooded_and_a_terminal_gets_one_bar_that_is_wiped(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("agent.faces.headless.time.monotonic", lambda: now[0])
    pipe, terminal = io.StringIO(), Terminal()
    for out in (pipe, terminal):
        face, now[0] = Plain(out), 0.0
        for done in range(1, 101):
            now[0] += 0.5
            face(Progress(what="training", done=done, total=100))
        face(Notice(level="info", text="done"))
    assert pipe.getvalue().count("training") == 4
    assert "s left" in terminal.getvalue() and terminal.getvalue().count("\n") <= 3


def test_progress_without_a_known_total_is_told(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("agent.faces.headless.time.monotonic", lambda: now[0])
    out = io.StringIO()
    face = Plain(out)
    face(Progress(what="rows", done=1, total=0))
    now[0] = 20.0
    face(Progress(what="rows", done=5000, total=0))
    assert "rows: 5000" in out.getvalue()


@pytest.mark.parametrize("event", [Notice(level="info", text="a\nb"), Finished(document={"status": "finished"})])
def test_a_streamed_event_is_one_json_line(capsys, event):
    stream(event)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 and json.loads(lines[0])["event"] == event.event
