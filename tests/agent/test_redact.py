import json
import logging
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent.brief import Brief
from agent.redact import MARK, RedactingFilter, redact
from agent.session import Session
from tools.errors import UsageError

# Made-up keys of the usual shapes; none was ever valid.
SHAPES = {
    "hugging face": "hf_TESTTESTTEST",
    "openai": "sk-proj-abcdefghijklmnopqrstuvwx0123456789",
    "anthropic": "sk-ant-api03-abcdefghijklmnopqrstuvwx",
    "stripe": "sk_live_abcdefghijklmnop",
    "github": "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "github fine": "github_pat_11ABCDEFG0abcdefghijklmnop",
    "gitlab": "glpat-abcdefghijklmnopqrst",
    "slack": "xoxb-123456789012-abcdefghijkl",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "google": "AIzaSyA-abcdefghijklmnopqrstuvwxyz01234",
    "nvidia": "nvapi-abcdefghijklmnopqrstuvwxyz012345",
    "pypi": "pypi-AgEIcHlwaS5vcmcCJGFiY2RlZmdo",
    "npm": "npm_abcdefghijklmnopqrstuvwxyz012345",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcDEF123",
    "slack hook": "https://hooks.slack.com/services/T000/B000/XXXXXXXX",
}
CONTEXTS = {
    "assignment": (
        "WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567",
        "0123456789abcdef0123456789abcdef01234567",
    ),
    "export": ("export MY_SECRET='correct horse'", "correct"),
    "yaml": ("password: hunter2hunter2", "hunter2hunter2"),
    "json": ('{"api_key": "abcdef123456"}', "abcdef123456"),
    "url user": ("git clone https://me:s3cr3tpass@host/x.git", "s3cr3tpass"),
    "url token": ("https://0123456789abcdef0123@host/x", "0123456789abcdef0123"),
    "url query": ("GET https://host/v1?api_key=abc123def456&x=1", "abc123def456"),
    "signed url": ("https://host/b?sig=abc%2Fdef%3D123&se=1", "abc%2Fdef%3D123"),
    "bearer": ("Authorization: Bearer abcdefgh12345678", "abcdefgh12345678"),
    "private key": ("-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\n-----END RSA PRIVATE KEY-----", "MIIEabc"),
}
HARMLESS = [
    "max_tokens=448 of 512",
    "tokens: 123456",
    "sha256 " + "0123456789abcdef" * 4,
    "commit 0123456789abcdef0123456789abcdef01234567",
    "https://host/path?lang=en&x=1",
    "the speaker said: secret",
    "runs/run1/checkpoints/u0010",
    "a basic profile",
]


@pytest.mark.parametrize("name", SHAPES)
def test_known_shapes_are_taken_out_of_text_and_json(name: str) -> None:
    secret = SHAPES[name]
    assert secret not in redact(f"before {secret}, after")
    assert secret not in json.dumps(redact({"a": [f"x={secret}"], secret: 1, "url": f"https://h/{secret}"}))
    assert redact(f"before {secret}, after").startswith("before ") and MARK in redact(secret)


@pytest.mark.parametrize("name", CONTEXTS)
def test_what_its_context_gives_away_is_taken_out(name: str) -> None:
    text, secret = CONTEXTS[name]
    assert secret in text and secret not in redact(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_is_left_alone(text: str) -> None:
    assert redact(text, {}) == text


def test_values_of_the_environment_are_taken_out_whatever_their_shape() -> None:
    environ = {
        "HF_TOKEN": "plainwordplainword",
        "MY_API_KEY": "xyzzy-xyzzy",
        "HOME": "/root",
        "DB_PASSWORD": "short",
        "PATH_TOKEN": "/tmp",
    }
    out = redact("plainwordplainword xyzzy-xyzzy /root short /tmp", environ)
    assert out == f"{MARK} {MARK} /root short /tmp"


def test_keys_that_name_a_secret_lose_their_value() -> None:
    assert redact({"token": "abc", "max_tokens": 5, "tokens": [1, 2], "keyword": "yes", "api_key": ""}) == {
        "token": MARK,
        "max_tokens": 5,
        "tokens": [1, 2],
        "keyword": "yes",
        "api_key": "",
    }


def test_log_messages_and_tracebacks_are_redacted(tmp_path: Path) -> None:
    handler = logging.FileHandler(tmp_path / "log")
    handler.addFilter(RedactingFilter())
    log = logging.Logger("t")
    log.addHandler(handler)
    log.error("token %s", "hf_TESTTESTTEST")
    try:
        raise ValueError("cannot fetch https://me:s3cr3tpass@host")
    except ValueError:
        log.exception("failed")
    text = (tmp_path / "log").read_text()
    assert "hf_TESTTESTTEST" not in text and "s3cr3tpass" not in text
    assert "ValueError" in text and text.count(MARK) >= 2


def test_planted_keys_never_reach_the_work_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "plainwordplainword")
    monkeypatch.setenv("WANDB_API_KEY", "0123456789abcdef0123456789abcdef01234567")
    secrets = ["plainwordplainword", "0123456789abcdef0123456789abcdef01234567", *SHAPES.values()]
    brief = Brief.build({"name": "x", "data": {"train": "a.jsonl"}, "budget": {"cpu_minutes": 5}})
    with Session.open(tmp_path / "w", brief) as session:
        session.assume_defaults()
        session.ledger.append("plan", session.plan_payload([]))
        for secret in secrets:
            text = f"the cluster refused {secret} in https://u:{secret}@h/?token={secret}"
            session.ledger.append(
                "note", {"text": text, "details": {"argv": ["run", secret], "env": {"HF_TOKEN": secret}}}
            )
        session.commit_state("define")
    for secret in secrets:
        found = subprocess.run(["grep", "-rIl", "--", secret, str(tmp_path / "w")], capture_output=True, text=True)
        assert found.stdout == "", secret


def test_a_secret_among_the_brief_s_keys_is_refused_without_being_shown() -> None:
    values: dict[str, Any] = {"name": "x", "hf_token": "hf_TESTTESTTEST"}
    with pytest.raises(UsageError) as err:
        Brief.build(values)
    assert "hf_token" in str(err.value) and "hf_TESTTESTTEST" not in str(err.value)
