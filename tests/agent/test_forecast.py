"""What a run may cost at worst: only what is decoded here is reckoned with this machine's decoding."""

from dataclasses import replace

from agent.brief import Brief
from agent.driver import load
from agent.forecast import baseline_minutes, evaluate_minutes, mine_minutes, mined_minutes, train_minutes
from agent.presets import choose_preset, mining_plan, work_sizes

ROWS = {"train": 500, "dev": 100, "test": 100, "retention": 50}


def work(seed_model):
    skill = load()
    brief = Brief.build({"name": "x", "seed_model": seed_model, "prompts": [""]})
    return work_sizes(brief, ROWS, choose_preset(skill, brief, ROWS), mining_plan(skill))


def test_a_served_model_and_given_answers_cost_little_here() -> None:
    local = work("embedded")
    for seed_model in ({"endpoints": "http://localhost:1/v1", "model": "big"}, {"answers": "answers.jsonl"}):
        far = work(seed_model)
        assert mined_minutes(far) < mined_minutes(local) / 2
        assert train_minutes(far) == train_minutes(local), "training is done here, whoever decoded before"


def test_more_work_never_costs_less() -> None:
    base = work("embedded")
    for more in ({"dev": 200}, {"prompts": 4}, {"mined": 200}, {"retention": 90}):
        bigger = replace(base, **more)
        for minutes in (baseline_minutes, mine_minutes, train_minutes, evaluate_minutes):
            assert minutes(bigger) >= minutes(base)
