"""Splits: whole groups, the same from the same seed, refused when they cannot be honest."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from tools.data.splits import connected_parts, make_splits, role
from tools.errors import CheckError
from tools.rows import Clip


def rows(speakers=4, each=10, **more):
    return [
        Clip(f"s{s}r{i}", Path(f"{s}_{i}.wav"), "text", duration_s=1.0 + i, speaker=f"s{s}", lang="en", **more)
        for s in range(speakers)
        for i in range(each)
    ]


def test_four_speakers_make_two_one_one():
    splits = make_splits(rows())
    assert {name: len({c.speaker for c in part}) for name, part in splits.items()} == {"train": 2, "dev": 1, "test": 1}
    assert all(clip.split == name for name, part in splits.items() for clip in part)


def test_the_same_seed_deals_the_same_whatever_the_order():
    clips = rows(20, 7)
    shuffled = random.Random(1).sample(clips, len(clips))
    first, second = make_splits(clips, seed=3), make_splits(shuffled, seed=3)
    assert {n: {c.id for c in part} for n, part in first.items()} == {n: {c.id for c in p} for n, p in second.items()}
    assert any({c.id for c in make_splits(clips, seed=s)["test"]} != {c.id for c in first["test"]} for s in range(4, 8))


def test_groups_join_over_speaker_recording_and_audio():
    clips = [
        Clip("a", Path("a.wav"), speaker="x", recording="r1"),
        Clip("b", Path("b.wav"), speaker="y", recording="r1"),
        Clip("c", Path("c.wav"), speaker="Y "),
        Clip("d", Path("d.wav"), speaker="z", audio_sha256="11"),
        Clip("e", Path("e.wav"), speaker="w", audio_sha256="11"),
        Clip("f", Path("f.wav")),
        Clip("g", Path("f.wav"), offset_s=3.0),
    ]
    assert [{c.id for c in part.rows} for part in connected_parts(clips)] == [{"a", "b", "c"}, {"d", "e"}, {"f", "g"}]
    assert len(connected_parts(clips, by="recording")) == 4


def test_shares_are_near_what_was_asked():
    splits = make_splits(rows(40, 5), fractions={"train": 0.8, "dev": 0.1, "test": 0.1})
    assert {name: len(part) for name, part in splits.items()} == {"train": 160, "dev": 20, "test": 20}


def test_refused_when_too_few_groups_or_a_label_cannot_be_in_train():
    with pytest.raises(CheckError, match="2 group"):
        make_splits(rows(2))
    clips = [Clip(f"{i}", Path(f"{i}.wav"), speaker=f"s{i}", label=f"l{i}") for i in range(3)]
    with pytest.raises(CheckError, match="never in train"):
        make_splits(clips)
    with pytest.raises(CheckError, match="no rows"):
        make_splits([])


def test_a_large_group_goes_to_train_or_is_refused():
    clips = [Clip(f"a{i}", Path(f"a{i}.wav"), speaker="a") for i in range(50)]
    clips += [Clip(f"{s}{i}", Path(f"{s}{i}.wav"), speaker=s) for s in "bc" for i in range(5)]
    assert {c.speaker for c in make_splits(clips)["train"]} == {"a"}
    labelled = [replace(c, label=c.speaker) for c in clips]
    with pytest.raises(CheckError, match="never in train"):
        make_splits(labelled)


@pytest.mark.parametrize(
    ("name", "is_"),
    [("train", "train"), ("test-clean", "test"), ("my_dev", "dev"), ("valid", "dev"), ("retention_test", "retention"),
     ("contest", "contest"), ("", "")],
)  # fmt: skip
def test_roles(name, is_):
    assert role(name) == is_
