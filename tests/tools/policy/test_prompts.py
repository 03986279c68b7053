"""Language, decoder prompt and text: pinned per clip, cut by position."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.errors import UsageError
from tools.policy.languages import language_code, pin_language
from tools.policy.whisper import WhisperPolicy


@pytest.mark.parametrize("name", ["de", "DE", " de ", "german", "German", "<|de|>", "de-AT", "de_DE"])
def test_every_way_to_write_a_language_gives_one_code(name: str) -> None:
    assert language_code(name) == "de"


def test_more_names() -> None:
    assert [language_code(n) for n in ("mandarin", "zh-TW", "castilian", "en-US", "xx", "", "klingon")] == [
        *("zh", "zh", "es", "en"),
        *(None, None, None),
    ]


@pytest.mark.parametrize(
    ("lang", "words"), [(None, "missing"), ("  ", "missing"), ("klingon", "not one"), ("sw", "not one")]
)
def test_a_language_missing_or_unknown_names_the_clip(tiny: WhisperPolicy, lang: str | None, words: str) -> None:
    with pytest.raises(UsageError, match=words) as error:
        tiny.prompt_ids("", lang, clip_id="row-17")
    assert "row-17" in str(error.value)
    with pytest.raises(UsageError):
        pin_language(lang, ["de"])


def test_the_language_is_pinned_per_clip(tiny: WhisperPolicy) -> None:
    ids = tiny.tokenizer.convert_tokens_to_ids
    want = ids(["<|startoftranscript|>", "<|de|>", "<|transcribe|>", "<|notimestamps|>"])
    prompts = {tiny.prompt_ids("", lang) for lang in ("de", "DE", "german", "<|de|>")}
    assert prompts == {tuple(want)}
    assert tiny.prompt_ids("", "fr")[1] == ids("<|fr|>")


def test_an_english_only_model_takes_english_and_nothing_else(english_folder: Path) -> None:
    policy = WhisperPolicy.load(english_folder)
    ids = policy.tokenizer.convert_tokens_to_ids
    want = tuple(ids(["<|startoftranscript|>", "<|notimestamps|>"]))
    assert not policy.multilingual
    assert {policy.prompt_ids("", lang) for lang in (None, "", "en", "English", "en-GB")} == {want}
    with pytest.raises(UsageError, match="English-only") as error:
        policy.prompt_ids("", "de", clip_id="row-3")
    assert "row-3" in str(error.value)


@pytest.mark.parametrize("prompt", ["the inn", "  then  ", "Antenna the", "über 12"])
def test_a_prompt_is_what_transformers_makes_of_it(tiny: WhisperPolicy, prompt: str) -> None:
    want = tiny.tokenizer.get_prompt_ids(prompt).tolist()
    ids = tiny.prompt_ids(prompt, "en")
    assert list(ids[: len(want)]) == want and ids[len(want) :] == tiny.prompt_ids("", "en")


def test_an_empty_prompt_adds_nothing_and_a_long_one_keeps_its_end(tiny: WhisperPolicy) -> None:
    assert tiny.prompt_ids("", "en") == tiny.prompt_ids("  ", "en")
    long = tiny.prompt_ids("x" * 200 + " the", "en")
    assert len(long) == tiny.max_target // 2 + 4
    assert long[-5] == tiny.tokenizer(" the", add_special_tokens=False).input_ids[0]


def test_special_tokens_in_a_prompt_are_refused(tiny: WhisperPolicy) -> None:
    with pytest.raises(UsageError, match="special tokens"):
        tiny.prompt_ids("hello <|endoftext|>", "en")


def test_a_text_holds_words_only(tiny: WhisperPolicy) -> None:
    words = tiny.tokenizer(" the thin  hand", add_special_tokens=False).input_ids
    stop, stamp = tiny.vocabulary.stop, tiny.tokenizer.convert_tokens_to_ids("<|0.00|>")
    assert tiny.text([stamp, *words, stop]) == "the thin  hand"
    assert tiny.text([stop]) == "" == tiny.text([])


def test_what_may_be_drawn(tiny: WhisperPolicy) -> None:
    vocabulary, ids = tiny.vocabulary, tiny.tokenizer.convert_tokens_to_ids
    for token in ("<|startoftranscript|>", "<|de|>", "<|notimestamps|>", "<|0.00|>", "<|startofprev|>"):
        assert not vocabulary.allowed(ids(token), first=False)
    assert not any(vocabulary.allowed(at, first=False) for at in (1, 2, 7, -1, 10**6))
    assert vocabulary.allowed(vocabulary.stop, first=False) and not vocabulary.allowed(vocabulary.stop, first=True)
    assert vocabulary.allowed(5, first=False) and not vocabulary.allowed(5, first=True)
