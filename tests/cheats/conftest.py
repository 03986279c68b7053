from __future__ import annotations

from pathlib import Path

import pytest

from tests.cheats.forge import Forger
from tests.cheats.workdirs import Maker, copy


@pytest.fixture(scope="session")
def maker(tmp_path_factory: pytest.TempPathFactory) -> Maker:
    return Maker(tmp_path_factory.mktemp("experiment"))


@pytest.fixture(scope="session")
def finished(maker: Maker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run in which the candidate wins; never changed, only copied."""
    workdir = tmp_path_factory.mktemp("finished") / "sample"
    ended = maker.run(workdir)
    assert ended == {"outcome": "done", "error": None, "state": "end"}, ended
    return workdir


@pytest.fixture
def forger(finished: Path, tmp_path: Path) -> Forger:
    return Forger(copy(finished, tmp_path / "sample"))
