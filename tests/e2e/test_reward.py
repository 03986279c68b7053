"""What the brief's `reward` says is what the contract freezes, mining ranks by, and training pays for."""

import json

import pytest

from tests.e2e.conftest import rehear
from tests.e2e.test_mine import clean, other_brief, records
from tools.reward import reward_from
from tools.text import profile

pytestmark = [pytest.mark.seed_model, pytest.mark.voices]
KEYWORDS = {"name": "keyword", "keywords": {"crates": 2, "the warehouse": 1}, "weight": 0.4}


def test_a_keyword_reward_goes_from_the_brief_to_the_trainer(small_brief, tmp_path):
    brief, workdir = other_brief(small_brief, "keywords", reward=KEYWORDS), tmp_path / "w"
    done = rehear("run", brief, "--workdir", workdir, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    due = reward_from(KEYWORDS, profile("english"))
    frozen = json.loads((workdir / "contract.json").read_text())["reward"]
    assert frozen == {"name": "keyword", "digest": due.digest, "options": due.options}
    (config,) = [json.loads(p.read_text()) for p in workdir.glob("runs/*/config.json")]
    assert config["identity"]["reward"] == due.digest != reward_from("cer", profile("english")).digest
    (told,) = [r["payload"] for r in records(workdir) if r["kind"] == "decision" and r["payload"]["what"] == "reward"]
    assert told["chosen"] == "keyword"
    clean(workdir)


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        ("wrr", "the brief's reward: There is no reward 'wrr': choose one of cer"),
        ("label_exact", "the brief's reward: label_exact does not suit task asr"),
        ({"name": "blend", "weights": {"length": 1}}, "weights neither cer nor wer"),
        ({"name": "keyword", "keywords": ["..."]}, "is empty under the profile 'english'"),
        (7, "reward"),
    ],
)
def test_a_reward_that_cannot_be_is_refused_before_anything_is_decoded(reward, message, small_brief, tmp_path):
    brief, workdir = other_brief(small_brief, "wrong-reward", reward=reward), tmp_path / "w"
    done = rehear("run", brief, "--workdir", workdir, "--json", cwd=tmp_path)
    assert done.returncode == 2 and message in json.loads(done.stdout)["error"]["message"], done.stdout
    assert not list(workdir.glob("evals/*"))
