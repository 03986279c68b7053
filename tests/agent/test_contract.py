import json
from pathlib import Path
from typing import Any

import pytest

from agent.contract import (
    CONTRACT,
    SELECTION_RULE,
    build_contract,
    contract_digest,
    explain,
    read_contract,
    references_digest,
    write_contract,
)
from tools.errors import CheckError, UsageError

PARTS: dict[str, Any] = {
    "seed_model": {"path_name": "embedded", "digest": "a" * 64},
    "prompt": {"text": "", "ids": [50257, 50362]},
    "profile": {"name": "english", "version": "1", "digest": "b" * 64},
    "scoring": {"metric": "wer", "unit": "word", "scorer": "rehear", "version": "1"},
    "decoding": {"kind": "greedy", "temperature": 0, "limit": 64},
    "sampling": {"temperature": 0.8, "n": 8, "extend_to": 16},
    "reward": {"name": "cer", "digest": "c" * 64},
    "selection": {"rule": SELECTION_RULE, "metric": "wer", "split": "dev", "retention_limit": 0.01},
    "references": {"dev": "d" * 64},
    "membership_sha256": "e" * 64,
    "languages": ["en"],
    "random_seed": 0,
}


def test_digest_does_not_depend_on_order_or_file(tmp_path: Path) -> None:
    contract = build_contract(**PARTS)
    assert write_contract(tmp_path, contract) == contract_digest(dict(reversed(contract.items())))
    assert contract_digest(read_contract(tmp_path)) == contract_digest(contract)
    assert json.loads((tmp_path / CONTRACT).read_text())["v"] == 1


def test_every_part_matters() -> None:
    whole = contract_digest(build_contract(**PARTS))
    for key in PARTS:
        changed = {
            **PARTS,
            key: 7 if key == "random_seed" else {**PARTS[key], "more": 1} if isinstance(PARTS[key], dict) else "x",
        }
        assert contract_digest(build_contract(**changed)) != whole, key


@pytest.mark.parametrize("gone", list(PARTS))
def test_a_missing_part_is_named(gone: str) -> None:
    with pytest.raises(UsageError, match=f"needs {gone}"):
        build_contract(**{k: v for k, v in PARTS.items() if k != gone})


def test_another_contract_in_its_place_is_refused(tmp_path: Path) -> None:
    write_contract(tmp_path, build_contract(**PARTS))
    write_contract(tmp_path, build_contract(**PARTS))
    with pytest.raises(CheckError, match=r'already frozen and differs: .*prompt.text: "" -> "boxes"'):
        write_contract(tmp_path, build_contract(**{**PARTS, "prompt": {"text": "boxes", "ids": [1]}}))


def test_differences_are_explained_in_order() -> None:
    other = {**PARTS, "decoding": {**PARTS["decoding"], "limit": 32}, "languages": ["de"]}
    assert explain(PARTS, other) == ["decoding.limit: 64 -> 32", 'languages: ["en"] -> ["de"]']
    assert explain(PARTS, json.loads(json.dumps(PARTS))) == []
    assert explain({"a": 1}, {"a": 1.0}) == []


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_broken_contract_file_is_a_check_error(tmp_path: Path, text: str) -> None:
    (tmp_path / CONTRACT).write_text(text)
    with pytest.raises(CheckError, match=r"contract.json"):
        read_contract(tmp_path)


def test_a_secret_in_the_prompt_is_refused() -> None:
    prompt = {"text": "my key is hf_abcdefghijklmnop", "ids": []}
    with pytest.raises(UsageError, match="looks like a secret"):
        build_contract(**{**PARTS, "prompt": prompt})


def test_references_digest_sees_every_letter_and_no_order() -> None:
    pairs = [("b", "two"), ("a", "one")]
    assert (
        references_digest(pairs)
        == references_digest(reversed(pairs))
        != references_digest([("a", "one"), ("b", "Two")])
    )
    assert references_digest([("a", "b\nc")]) != references_digest([("a", "b"), ("c", "")])
