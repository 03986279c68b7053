import hashlib
import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.ledger.chain import GENESIS, LEDGER, BrokenLine, Ledger, canonical, parse_line, read_ledger, seal
from tools.errors import CheckError, UsageError


def clock_from(*times):
    ticks = iter(times)
    last = times[-1]
    return lambda: next(ticks, last)


@pytest.fixture
def ledger(tmp_path):
    book = Ledger.open(tmp_path, skill="5" * 64, code="abc")
    for n in range(5):
        book.append("note", {"text": f"number {n}", "details": {"n": n, "wer": n / 7}}, state="intake")
    yield book
    book.close()


def lines_of(ledger):
    return ledger.path.read_bytes().splitlines(keepends=True)


def test_records_are_chained_and_canonical(ledger):
    records, torn = read_ledger(ledger.path.parent)
    assert [r.seq for r in records] == [1, 2, 3, 4, 5] and torn == b""
    assert records[0].prev == GENESIS
    assert all(a.hash == b.prev for a, b in pairwise(records))
    for line, record in zip(lines_of(ledger), records):
        body = json.loads(line)
        assert body.pop("hash") == record.hash == hashlib.sha256(canonical(body)).hexdigest()


def test_open_again_goes_on_where_it_was(ledger):
    head = ledger.head
    ledger.close()
    again = Ledger.open(ledger.path.parent)
    assert (again.count, again.head) == (5, head)
    assert again.append("note", {"text": "six"}).prev == head


def test_any_flipped_byte_is_found_with_its_line(ledger):
    data = ledger.path.read_bytes()
    starts = [0, *(i + 1 for i, b in enumerate(data) if b == 10)]
    for at in range(0, len(data), 7):
        if data[at] == 10:
            continue
        changed = bytearray(data)
        changed[at] ^= 1
        if changed[at] == 10:
            continue
        ledger.path.write_bytes(bytes(changed))
        with pytest.raises(BrokenLine) as err:
            read_ledger(ledger.path.parent)
        assert err.value.line == sum(1 for s in starts if s <= at)


@pytest.mark.parametrize(
    "mutate, line",
    [
        (lambda ls: ls[:2] + ls[3:], 3),
        (lambda ls: ls[1:], 1),
        (lambda ls: [ls[0], ls[2], ls[1], *ls[3:]], 2),
        (lambda ls: [*ls[:2], ls[1], *ls[2:]], 3),
        (lambda ls: [*ls[:2], b"\n", *ls[2:]], 3),
        (lambda ls: [*ls[:2], b'{"i":2\n', *ls[3:]], 3),
    ],
    ids=["dropped", "first dropped", "swapped", "doubled", "blank", "broken middle"],
)
def test_removed_moved_or_doubled_records_are_found(ledger, mutate, line):
    changed = b"".join(mutate(lines_of(ledger)))
    ledger.path.write_bytes(changed)
    with pytest.raises(BrokenLine) as err:
        Ledger.open(ledger.path.parent)
    assert err.value.line == line and f"line {line}" in str(err.value)
    assert ledger.path.read_bytes() == changed


def test_a_line_in_another_spelling_of_the_same_json_is_refused(ledger):
    with pytest.raises(ValueError, match="canonical"):
        parse_line(json.dumps(json.loads(lines_of(ledger)[0])).encode())


def test_a_torn_last_line_is_moved_aside_and_told(ledger):
    ledger.close()
    torn = b'{"actor":"agent","code":"ab'
    with open(ledger.path, "ab") as out:
        out.write(torn)
    assert read_ledger(ledger.path.parent)[1] == torn
    again = Ledger.open(ledger.path.parent)
    assert (again.path.parent / "ledger.torn-1").read_bytes() == torn
    assert again.records()[-1].kind == "recovery"
    assert again.records()[-1].payload["details"] == {
        "file": "ledger.torn-1",
        "bytes": len(torn),
        "sha256": hashlib.sha256(torn).hexdigest(),
    }
    again.append("note", {"text": "goes on"})
    assert len(read_ledger(again.path.parent)[0]) == 7


def test_every_cut_of_the_last_line_leaves_the_records_before_it(tmp_path):
    book = Ledger.open(tmp_path)
    book.append("note", {"text": "one"})
    size = book.path.stat().st_size
    book.append("note", {"text": "two"})
    data = book.path.read_bytes()
    book.close()
    for number, cut in enumerate(range(size + 1, len(data), 23), start=1):
        book.path.write_bytes(data[:cut])
        for aside in tmp_path.glob("ledger.torn-*"):
            aside.unlink()
        again = Ledger.open(tmp_path)
        assert [r.kind for r in again.records()] == ["note", "recovery"], number
        again.close()


def test_a_kill_between_moving_aside_and_telling_is_told_at_the_next_start(ledger):
    ledger.close()
    (ledger.path.parent / "ledger.torn-1").write_bytes(b"{torn")
    again = Ledger.open(ledger.path.parent)
    assert again.records()[-1].payload["details"]["file"] == "ledger.torn-1"
    again.close()
    assert Ledger.open(ledger.path.parent).count == again.count


def test_a_second_writer_is_noticed(ledger):
    other = Ledger.open(ledger.path.parent)
    other.append("note", {"text": "from elsewhere"})
    with pytest.raises(CheckError, match="another process"):
        ledger.append("note", {"text": "mine"})
    assert len(read_ledger(ledger.path.parent)[0]) == 6


def test_a_clock_that_jumps_back_keeps_times_in_order_with_one_note(tmp_path):
    book = Ledger.open(
        tmp_path,
        clock=clock_from(
            "2026-01-01T00:00:05.000Z",
            "2026-01-01T00:00:01.000Z",
            "2026-01-01T00:00:02.000Z",
            "2026-01-01T00:00:06.000Z",
        ),
    )
    for n in range(4):
        book.append("note", {"text": f"n{n}"})
    texts = [r.payload["text"] for r in book.records()]
    assert [t[:9] for t in texts] == ["n0", "the clock", "n1", "n2", "n3"]
    times = [r.ts for r in read_ledger(tmp_path)[0]]
    assert times == sorted(times) and times[-1] == "2026-01-01T00:00:06.000Z"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**60])
def test_values_that_json_cannot_hold_exactly_are_refused_and_nothing_is_written(ledger, value):
    with pytest.raises((UsageError, ValueError)):
        ledger.append("note", {"text": "x", "details": {"v": value}})
    assert len(read_ledger(ledger.path.parent)[0]) == 5


@pytest.mark.parametrize("payload", [{}, {"text": 3}, {"text": "x", "foreign": 1}])
def test_a_payload_that_does_not_fit_its_kind_is_refused(ledger, payload):
    with pytest.raises(UsageError, match="note record"):
        ledger.append("note", payload)


def test_an_unknown_kind_is_refused(ledger):
    with pytest.raises(UsageError, match="not a kind"):
        ledger.append("launched", {})


def test_a_full_disk_leaves_a_sentence_and_a_readable_ledger(ledger, monkeypatch):
    real = __import__("os").write
    monkeypatch.setattr("agent.ledger.chain.os.write", lambda fd, data: real(fd, data[:40]))
    with pytest.raises(UsageError, match="no space left"):
        ledger.append("note", {"text": "lost"})
    monkeypatch.undo()
    with pytest.raises(UsageError, match="no space left"):
        ledger.append("note", {"text": "still broken"})
    ledger.close()
    assert [r.kind for r in Ledger.open(ledger.path.parent).records()] == ["note"] * 5 + ["recovery"]


def test_a_folder_in_the_way_of_the_ledger_is_named(tmp_path):
    (tmp_path / LEDGER).mkdir()
    with pytest.raises(UsageError, match="in the way"):
        Ledger.open(tmp_path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e15, 1e15) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(st.text(max_size=8), json_values, max_size=4))
def test_any_json_value_survives_the_line(payload):
    body = dict.fromkeys(("actor", "code", "key", "kind", "prev", "skill", "state", "ts"), "x")
    body |= {"v": 1, "seq": 1, "payload": payload}
    mark, line = seal(body)
    record = parse_line(line)
    assert record.hash == mark and record.payload == json.loads(canonical(payload))
