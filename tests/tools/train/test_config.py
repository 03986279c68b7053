from pathlib import Path

import pytest

from tools.errors import UsageError
from tools.train.config import GspoConfig, load_config, make_config


def test_every_field_has_a_sentence_and_a_default() -> None:
    for name, field in GspoConfig.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name
        assert not field.is_required(), name


def test_preset_file_and_overrides(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text("updates: 20\nlr: 1.0e-6\nsurface: [model.decoder.layer_norm.weight]\n")
    config = load_config(path, random_seed=7)
    assert (config.preset, config.updates, config.lr, config.random_seed) == ("small", 20, 1e-6, 7)
    assert config.surface == ("model.decoder.layer_norm.weight",)
    assert config.digest != load_config(path).digest
    assert config.digest == config.model_copy(update={"preset": "other"}).digest


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("updatez: 3", "unknown key 'updatez'"),
        ("updates: many", "updates"),
        ("updates: 0", "updates"),
        ("estimator: mine", "estimator"),
        ("groups: 2\noptimiser_steps: 3", "optimiser_steps 3 is more than groups 2"),
        ("length_ratio_min: 2", "length_ratio_min must be below"),
        ("lr: .inf", "lr: .*finite"),
        ("kl_max: .nan", "kl_max"),
        ("updates: yes", "updates: a number or a name is needed here"),
        ("frontier_weight: 2000", "frontier_weight"),
        ("lr: 1.0e-5\ngroups: 4\nlr: 1.0e-3", "the key 'lr' stands twice"),
        ("- a list", "not a mapping"),
        ("a: [", "cannot be read"),
    ],
)
def test_bad_presets_are_usage_errors(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=says) as caught:
        load_config(path)
    assert "\n" not in str(caught.value).split(": ", 1)[0]
    with pytest.raises(UsageError, match="cannot be read"):
        load_config(tmp_path / "absent.yaml")


def test_exposure_of_the_reference_recipe() -> None:
    """Seed 000 section 4: 20 retained groups x 64 answers, 100 updates: 2,000 groups and 128,000 answers."""
    out = make_config({"updates": 100, "groups": 20, "answers": 64, "optimiser_steps": 1}).exposure(pool=500)
    assert (out["groups"], out["answers"]) == (2000, 128_000)
    assert (out["sampled_groups_worst"], out["sampled_answers_worst"]) == (4000, 256_000)
    assert (out["epochs"], out["epochs_worst"], out["checkpoints"]) == (4.0, 8.0, 10)


def test_warm_up_then_constant() -> None:
    config = make_config({"lr": 1.0, "warmup_updates": 5})
    assert [config.learning_rate(u) for u in (1, 2, 5, 6, 50)] == [0.2, 0.4, 1.0, 1.0, 1.0]
    assert make_config({"lr": 1.0, "warmup_updates": 0}).learning_rate(1) == 1.0
