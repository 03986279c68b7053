import pytest

from tests.tools.report.results import ENDINGS, hostile, make
from tools.report.schema import parse_result
from tools.report.terminal import columns, render_terminal


@pytest.mark.parametrize("ending", [*ENDINGS, "hostile"])
def test_no_line_is_wider_than_100_columns_and_none_moves_the_cursor(ending):
    text = render_terminal(parse_result(hostile() if ending == "hostile" else make(ending)))
    assert max(columns(line) for line in text.splitlines()) <= 100
    assert all(ch == "\n" or ch.isprintable() for ch in text)
    assert "None" not in text


def test_wide_characters_count_double():
    doc = make("candidate_wins") | {"next_action": "声音" * 90}
    text = render_terminal(parse_result(doc))
    assert max(columns(line) for line in text.splitlines()) <= 100


def test_the_table_shows_counts_and_records():
    lines = render_terminal(parse_result(make("candidate_wins"))).splitlines()
    row = next(line for line in lines if line.startswith("test"))
    assert row.split() == ["test", "seed", "0.482", "494", "70", "98", "326", "1,024", "128", "61"]
    assert any(line.startswith("retention") and "within the limit of +0.010" in line for line in lines)


def test_bold_is_only_on_request():
    result = parse_result(make("candidate_wins"))
    assert "\x1b" not in render_terminal(result)
    assert render_terminal(result, bold=True).startswith("\x1b[1m")


def test_a_label_task_shows_no_columns_it_has_no_counts_for():
    text = render_terminal(parse_result(make("label")))
    assert "label error" in text and "n/a" not in text


def test_the_audit_command_can_be_copied():
    text = render_terminal(parse_result(make("candidate_wins")))
    joined = text.replace("\\\n", " ")
    assert (
        f"rehear audit WORKDIR --expect-head {make('candidate_wins')['provenance']['ledger']['head']}:66"
        in " ".join(joined.split())
    )
