"""F16: references that do not belong to the audio."""

import json

import pytest

from tools.data.checks import check_clips, check_paths
from tools.data.doubtful import doubtful_references, slipped_references
from tools.data.manifest import read_manifest

HARVARD = {
    "spk1_snt1": "drop the two when you add the figures",
    "spk1_snt2": "we are sure that one war is enough",
    "spk2_snt3": "tear a thin sheet from the yellow pad",
    "spk2_snt5": "canned pears lack full flavor",
}


@pytest.mark.speech
def test_f16_answers_that_agree_against_the_reference(shared_speech):
    rows = {}
    for name in ("ASR_train.json", "ASR_dev.json"):
        rows |= json.loads((shared_speech / "read/harvard" / name).read_text())
    references = {key: row["wrd"] for key, row in rows.items()}
    answers = {key: [text] * 9 for key, text in references.items()}
    wrong = [k for k, text in references.items() if any(w in text for w in ("TUE", "WORE", "THIN SHEEP", "KEN PAIRS"))]
    for key, text in zip(sorted(wrong), HARVARD.values()):
        answers[key] = [text.capitalize() + "."] * 9
    undecided = next(key for key in references if key not in wrong)
    answers[undecided] = ["something else"] * 5 + [references[undecided]] * 4
    found = doubtful_references(references, answers)
    assert {doubt.id for doubt in found} == set(wrong) and len(wrong) == 4
    assert all(doubt.agreement == 1.0 and doubt.reference == references[doubt.id] for doubt in found)


def test_f16_a_column_that_slipped():
    texts = [f"{w} is a word of its own number {i}" for i, w in enumerate("ant bee cow dog elk fox gnu hen".split())]
    assert slipped_references(texts, texts) is None
    said = ["please say something that is heard here"] * 8
    assert slipped_references(texts, said) is None
    distinct = ["red apple", "blue sky", "green tree", "old house", "new car", "tall man", "wet dog", "hot tea"]
    late = [*distinct[-1:], *distinct[:-1]]
    slip = slipped_references(late, distinct)
    assert slip is not None and slip.rows == 1 and slip.error == 1.0 and slip.moved_error == 0.0
    some = slipped_references(late, [text if i % 2 else None for i, text in enumerate(distinct)])
    assert some is not None and some.rows == 1  # rows that were not decoded have no say


@pytest.mark.speech
@pytest.mark.seed_model
def test_f16_what_the_seed_model_hears(tmp_path, shared_speech, seed_folder):
    """Real clips, real references of which four are wrong, real answers: greedy and eight sampled ones."""
    from tools.verbs.recogniser import Recogniser

    folder = shared_speech / "read/harvard"
    rows = [row for name in ("ASR_train.json", "ASR_dev.json") for row in read_manifest(folder / name).rows]
    clips = check_clips(rows, near=False).kept
    heard = Recogniser.load(seed_folder, tmp_path / "encoder", 2)
    greedy = [answer.text for answer in heard.greedy(clips, "", 40)]
    sampled = heard.sample(clips, "", 40, n=8, first=0, temperature=0.8, seed=0)
    answers = {c.id: [one, *(a.text for a in more)] for c, one, more in zip(clips, greedy, sampled)}
    texts = [clip.text or "" for clip in clips]
    doubts = doubtful_references({c.id: t for c, t in zip(clips, texts)}, answers)
    wrong = {"spk1_snt2", "spk2_snt1", "spk2_snt3", "spk2_snt5"}
    assert doubts and {doubt.id for doubt in doubts} <= wrong
    assert "we are sure that one war is enough" in {doubt.answer for doubt in doubts}
    assert slipped_references(texts, greedy) is None
    slip = slipped_references(texts[-1:] + texts[:-1], greedy)
    assert slip is not None and slip.rows == 1 and slip.error > 0.9 and slip.moved_error < 0.3


@pytest.mark.speech
def test_f16_far_too_few_characters(tmp_path, shared_speech, manifest):
    audio = str(shared_speech / "read/libri/libri-1088-134315-0000.wav")
    report = check_paths([manifest(tmp_path / "m.jsonl", [{"audio": audio, "text": "EXAMPLE OF TEXT"}])])
    (slow,) = [f for f in report.findings if f.check == "slow"]
    assert "15 characters in 16.04 s, 0.9 per second" in slow.text and slow.severity == "warn"
