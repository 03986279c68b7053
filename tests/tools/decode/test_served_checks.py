"""What answers alone show of a server: each rule with its counter-example."""

from pathlib import Path

from tools.decode.served.checks import audio_marks, cut_at, foreign, leaks, moved, silent
from tools.rows import Clip

REFS = [
    "please move six crates to the office", "the driver asked for a signed receipt", "two clerks counted all the boxes",
    "we close the northern gate at seven", "seven boxes of green tea were lost",
]  # fmt: skip


def clips(*texts, lang="en"):
    return [Clip(f"c{i}", Path("x"), t, lang=lang) for i, t in enumerate(texts)]


def test_swaps_and_shifts_are_seen_and_weak_answers_are_not_taken_for_them():
    rows = clips(*REFS)
    right = {c.id: c.text for c in rows}
    assert not moved(rows, right)
    assert moved(rows, {**right, "c0": REFS[1], "c1": REFS[0]}) == ["c0", "c1"]
    shifted = {c.id: REFS[(i + 1) % 5] for i, c in enumerate(rows)}
    assert moved(rows, shifted) == [c.id for c in rows]
    assert not moved(
        rows, {**right, "c0": "peas mauve sick grates too tea of is", "c1": "quite something else was said"}
    )


def test_an_answer_without_a_word_is_told_from_a_clip_in_which_nothing_is_said():
    rows = clips("yes", "", "the gate")
    assert silent(rows, {"c0": " ...", "c1": "", "c2": "the gate"}) == ["c0"]
    assert silent(rows, {"c0": "yes"}) == ["c2"]


def test_marks_of_an_audio_are_told_from_the_word():
    assert audio_marks("<|user|>Transcribe the audio. <|AUDIO|>[AUDIO]<audio>") == [30, 39, 46]
    assert audio_marks("Audio 1: <|audio_bos|>") == [9] and not audio_marks("an audio book [sic] <|user|>")


def test_labels_are_said_in_many_clips_and_say_nothing_about_order():
    rows = clips("yes", "no", "yes", "no")
    assert not moved(rows, {"c0": "no", "c1": "yes", "c2": "no", "c3": "no"})


def test_a_prompt_in_the_text_is_a_leak_unless_it_was_said():
    prompt = "Orders and deliveries of the northern warehouse."
    assert leaks(prompt, "orders and deliveries of the crates") and leaks("", "<think></think> hello")
    assert not leaks(prompt, "orders arrived") and not leaks(prompt, REFS[0])
    assert not leaks(prompt, "orders and deliveries of the day", "orders and deliveries of the day")
    assert not leaks("yes, no", "yes")


def test_another_language_or_script_is_named_where_the_reference_is_in_the_clips_own():
    (one,) = clips("the gate is closed and they have the key")
    assert foreign(one, "das ist nicht die Kiste und der Fahrer war auch da") == "de"
    assert foreign(one, "Это совсем другой язык") == "another script"
    assert foreign(one, "the gate was closed") is None and foreign(one, "taxi hotel") is None
    (own,) = clips("das ist nicht die Kiste und der Fahrer auch")
    assert foreign(own, "das ist nicht die Kiste und der Fahrer war auch da") is None
    assert foreign(Clip("x", Path("x"), "hello"), "das ist nicht die Kiste und der Fahrer") is None


def test_a_cut_that_is_not_told_needs_good_beginnings_of_several_longer_references():
    long = [" ".join(f"{w}{i}" for i in range(20)) for w in ("alpha", "beta", "gamma")]
    rows = clips(*long, "short one here now")
    cut = {c.id: " ".join(c.text.split()[:8]) for c in rows}
    assert cut_at(rows, cut) == (8, ["c0", "c1", "c2"])
    assert cut_at(rows, {c.id: c.text for c in rows}) is None
    assert cut_at(rows, {**cut, "c0": long[0]}) is None, "one whole long answer shows that there is no cut"
    assert cut_at(rows, {c.id: "quite other words come out of this bad model" for c in rows}) is None
