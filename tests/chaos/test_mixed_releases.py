"""Two brokers run an earlier release's sources; the other three run these."""

from pathlib import Path

import pytest
from chaos.hosts import BROKER_IDS, ChaosError
from chaos.mixed_releases import draw_mixed

SEEDS = range(60)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    main = tmp_path / "src" / "strandline" / "cli" / "main.py"
    main.parent.mkdir(parents=True)
    main.touch()
    return tmp_path


def test_two_brokers_of_each_seed_run_the_earlier_release(checkout: Path) -> None:
    for seed in SEEDS:
        mixed = draw_mixed(seed, checkout)
        assert mixed == draw_mixed(seed, checkout)
        told = {one: mixed.environment_of(one) for one in BROKER_IDS}
        sources = {"PYTHONPATH": str(checkout / "src")}
        assert sorted(map(len, told.values())) == [0, 0, 0, 1, 1]
        assert all(told[one] == sources for one in mixed.earlier)


def test_every_broker_is_drawn_by_some_seed(checkout: Path) -> None:
    drawn = {one for seed in SEEDS for one in draw_mixed(seed, checkout).earlier}
    assert drawn == set(BROKER_IDS)


def test_a_directory_without_a_release_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ChaosError, match="git worktree add"):
        draw_mixed(1, tmp_path)
