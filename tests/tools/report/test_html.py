from html.parser import HTMLParser

import pytest

from tests.tools.report.results import ENDINGS, hostile, make
from tools.report.html import declared, not_reached, others, render_html, sources, tiles
from tools.report.schema import parse_result

PNG = dict.fromkeys(("curve.png", "training.png", "speakers.png", "mining.png", "changes.png"), b"\x89PNG")


def page(doc):
    return render_html(parse_result(doc), PNG, PNG, "rehear report 1, test")


class Reader(HTMLParser):
    """Collects tags, addresses, ids and text, and the tags left open."""

    VOID = frozenset({"meta", "img", "source", "br", "link", "input", "hr"})

    def __init__(self, text):
        super().__init__()
        self.tags, self.urls, self.ids, self.open, self.words, self.handlers = set(), [], [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, value in attrs:
            if name in ("src", "href", "srcset", "action", "data"):
                self.urls.append(value)
            if name == "id":
                self.ids.append(value)
            if name.startswith("on"):
                self.handlers.append(name)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).replace("\xa0", " ").split())


@pytest.mark.parametrize("ending", [*ENDINGS, "hostile"])
def test_every_page_stands_alone_and_is_well_formed(ending):
    seen = Reader(page(hostile() if ending == "hostile" else make(ending)))
    assert not seen.open
    assert not seen.tags & {"script", "link", "iframe", "object", "form", "base", "b"}
    assert not seen.handlers
    assert all(url.startswith(("#", "data:image/png;base64,")) for url in seen.urls)
    assert len(seen.ids) == len(set(seen.ids))
    assert {url[1:] for url in seen.urls if url.startswith("#")} <= set(seen.ids)
    assert "None" not in seen.text.replace("None on record", "")


def test_hostile_text_is_shown_as_it_is():
    seen = Reader(page(hostile()))
    assert seen.text.count("<script>alert('x')</script> **bold**") > 10
    assert "\\u202eabc" in seen.text and "\u202e" not in seen.text
    assert "{{ 7*7 }}" in seen.text


def test_the_verdict_comes_first_with_interval_and_retention_in_words():
    text = Reader(page(make("candidate_wins"))).text
    assert text.index("The candidate wins") < text.index("Read with care") < text.index("Exact commands")
    assert "95 % interval by 16 speakers: 57 % to 70 %" in text
    assert "within the limit of +0.010" in text
    assert "rehear audit WORKDIR --expect-head" in text


def test_figures_in_the_table_name_their_evaluation_and_record():
    text = page(make("candidate_wins"))
    assert 'title="ledger record 63, eval selected-test"' in text
    assert 'id="record-63"' in text
    found = {s.record: s for s in sources(parse_result(make("candidate_wins")))}
    assert found[61].what == "eval seed-test" and found[61].rows_sha256
    assert found[60].what == "opening of the test"
    assert list(found) == sorted(found)


def test_a_nearly_perfect_baseline_shows_no_percentage_of_errors():
    text = Reader(page(make("near_perfect"))).text
    assert "9 → 4 errors of 1,024 words" in text
    assert "% fewer" not in text and "56 %" not in text


def test_stages_not_reached_are_said():
    result = parse_result(make("no_contrast"))
    assert not_reached(result) == ["training", "selection", "test"]
    assert "Not reached in this run: training, selection, test." in Reader(page(make("no_contrast"))).text
    assert [tile.label for tile in tiles(result)] == ["Dev WER", "Retention WER", "Oracle WER"]


def test_why_each_other_checkpoint_was_not_selected():
    rows = dict(others(parse_result(make("candidate_wins"))))
    assert rows["update 60"].startswith("retention WER") and rows["seed model"] == "allowed, dev 0.517 against 0.194"
    assert set(rows) == {"seed model", *(f"update {u}" for u in (10, 20, 30, 40, 60))}


def test_what_was_declared_is_shown_without_digests():
    rows = dict(declared(parse_result(make("candidate_wins"))))
    assert rows["prompt"] == "(empty)"
    assert rows["normaliser"] == "english; version 1"
    assert "retention limit 0.01" in rows["selection"]


def test_transcripts_are_shown_only_where_they_are_kept():
    doc = make("candidate_wins")
    assert "reference" not in Reader(page(doc)).text.partition("Worst rows")[2].partition("Budget")[0]
    doc["worst"][0] |= {"ref": "move six crates", "seed_hyp": "move sick rates", "candidate_hyp": ""}
    text = Reader(page(doc)).text
    assert "move six crates" in text and "candidate (empty)" in text


def test_commands_keep_their_lines_and_spaces():
    doc = make("candidate_wins") | {"commands": [{"what": "x", "command": "printf 50 %s \\\n  a"}]}
    assert "printf 50 %s \\\n  a</pre>" in page(doc)
