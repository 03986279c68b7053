"""Loops (F27), scripts, control tokens, prompt leakage."""

from __future__ import annotations

import pytest

from tools.score.diagnose import find_loop, is_loop, leaks_prompt, main_script, special_tokens, wrong_script


@pytest.mark.parametrize(
    ("ref", "hyp", "finish", "loop"),
    [
        ("thank you", "thank you " * 20, "stop", True),  # F27
        ("no no no no", "no no no no", "stop", False),  # F27: in a real reference
        ("no no no no", "no " * 50, "stop", True),
        ("bora bora bora bora", "bora bora bora bora", "stop", False),
        ("hello there", "hello there", "stop", False),
        ("hello", "ha ha ha", "stop", True),
        ("he said ha ha", "he said ha ha ha", "stop", False),
        ("the end", "and so the end " + "and so " * 9, "stop", True),
        ("a long sentence of many words", "a long sentence of many words", "length", False),
        ("short", "one two three four five six", "length", True),  # hit the limit and ran away
        ("short", "aaaaaaaaaaaaaaaaaaaa", "stop", True),
        ("一", "谢谢观看" * 6, "stop", True),
        ("rhythmically incomprehensible", "rhythmically incomprehensible", "stop", False),
        ("x", "", "stop", False),
    ],
)
def test_loops(ref: str, hyp: str, finish: str, loop: bool) -> None:
    cut = list if ref == "一" else str.split
    assert is_loop(cut(ref), cut(hyp), finish) is loop


def test_the_loop_is_named() -> None:
    loop = find_loop(("well " + "thank you " * 5).split())
    assert loop is not None and loop.repeats == 5
    assert set(loop.gram) == {"thank", "you"} and loop.cover == pytest.approx(10 / 11)


@pytest.mark.parametrize(
    ("ref", "hyp", "wrong"),
    [
        ("hello", "привет", True),
        ("hello", "hola", False),
        ("你好", "こんにちは", False),
        ("नमस्ते", "namaste", True),
        ("123", "привет", False),
        ("hello", "", False),
        ("привет мир hello", "привет мир", False),
        ("안녕", "你好", True),
    ],
)
def test_wrong_script(ref: str, hyp: str, wrong: bool) -> None:
    assert wrong_script(ref, hyp) is wrong


def test_main_script_counts_letters() -> None:
    assert main_script("कखग abc") == "Devanagari"
    assert main_script("... 12") == ""


@pytest.mark.parametrize("text", ["<|endoftext|> hi", "a <spk:0> b", "<think></think>hi", "a <unk>", "[UNK]", "x ⁇ y"])
def test_special_tokens(text: str) -> None:
    assert special_tokens(text)


@pytest.mark.parametrize("text", ["a < b", "[laughs]", "hello", "1 <2> 3"])
def test_ordinary_brackets(text: str) -> None:
    assert not special_tokens(text)


def test_prompt_leakage() -> None:
    prompt = "transcribe the following audio in english".split()
    assert leaks_prompt(prompt, ["hi"], "transcribe the following audio in hi".split())
    assert not leaks_prompt(prompt, ["hi"], "the following hi".split())
    assert not leaks_prompt(
        prompt, "transcribe the following audio now".split(), "transcribe the following audio now".split()
    )
    assert leaks_prompt(["hotwords"], ["hi"], ["hotwords", "hi"])
    assert not leaks_prompt([], ["hi"], ["hi"])
