import shutil
from pathlib import Path

import pytest
import yaml

from agent.brief import QUESTION_IDS
from agent.gates import GATES
from agent.procedure import Vocabulary, load_skill, skill_digest, skills_folder
from agent.steps import VERBS
from tools.errors import UsageError

SKILL = "nemotron-transcribe-rl"
WORDS = Vocabulary(VERBS, GATES, QUESTION_IDS)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(skills_folder() / SKILL, tmp_path / SKILL)
    return tmp_path


def change(root: Path, edit) -> None:
    path = root / SKILL / "assets" / "procedure.yaml"
    data = yaml.safe_load(path.read_text())
    edit({s["id"]: s for s in data["states"]}, data)
    path.write_text(yaml.safe_dump(data, sort_keys=False))


def test_the_shipped_skill_is_valid_and_every_verb_is_used():
    skill = load_skill(SKILL, WORDS)
    assert {s.does for s in skill.procedure.states if s.does} == set(VERBS)
    assert {g for s in skill.procedure.states for g in s.gates} == set(GATES)


def test_the_digest_changes_with_any_file_of_the_skill(copy):
    before = skill_digest(copy / SKILL)
    reference = copy / SKILL / "references" / "execution.md"
    reference.write_text(reference.read_text() + "\n")
    assert skill_digest(copy / SKILL) != before


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda s, d: s["mine"].update(does="dig"), "unknown verb 'dig'"),
        (lambda s, d: s["mine"]["gates"].append("lucky"), "unknown gate 'lucky'"),
        (lambda s, d: s["intake"]["needs"].append("shoe_size"), "needs 'shoe_size'"),
        (lambda s, d: s["mine"]["next"].pop("no_contrast"), "its verb can end in"),
        (lambda s, d: s["select"]["next"].update(seed="nowhere"), "unknown state 'nowhere'"),
        (lambda s, d: s["mine"]["next"].update(no_contrast="select"), "cannot be reached"),
        (lambda s, d: d["states"].append({**s["mine"]}), "listed twice"),
        (lambda s, d: d["states"].remove(s["stop_budget"]), "no stop_budget state"),
        (lambda s, d: s["mine"].update(surprise=1), "cannot be read"),
        (lambda s, d: d.update(start="bed"), "unknown state 'bed'"),
    ],
)
def test_a_broken_procedure_is_refused_with_its_fault(copy, edit, says):
    change(copy, edit)
    with pytest.raises(UsageError, match=says):
        load_skill(SKILL, WORDS, copy)


def test_a_state_that_the_prose_does_not_describe_is_refused(copy):
    page = copy / SKILL / "SKILL.md"
    page.write_text(page.read_text().replace("### `select`", "### choosing"))
    with pytest.raises(UsageError, match="does not describe state 'select'"):
        load_skill(SKILL, WORDS, copy)


def test_an_unknown_skill_and_preset_say_what_there_is():
    with pytest.raises(UsageError, match="no skill 'other'"):
        load_skill("other", WORDS)
    with pytest.raises(UsageError, match="choose one of"):
        load_skill(SKILL, WORDS).preset_path("giant")
