import pytest

from tools.select import Point, Stage, going_on, is_boundary


def stage(points, offered=100, retained=90, rises=True, update=20, noise=0.0):
    made = tuple(Point(u, dev, ok) for u, dev, ok in points)
    return Stage(update, 20, 0.4, noise, made, offered, retained, rises)


@pytest.mark.parametrize(
    ("given", "go_on", "reason"),
    [
        (stage([(10, 0.35, True), (20, 0.30, True)]), True, "improving"),
        (stage([(10, 0.30, True), (20, 0.35, True)]), True, "improving"),  # the best is still of this stage
        (stage([(20, 0.3, True), (30, 0.31, True), (40, 0.32, True)], update=40), False, "no_new_best"),
        (stage([(20, 0.3, True), (30, 0.2, False), (40, 0.1, False)], update=40), True, "improving"),  # it wavers
        (stage([(20, 0.3, True), *((u, 0.2 - u / 1000, False) for u in (30, 40, 50, 60))], update=60), False, "limits"),
        (stage([(10, 0.3, False), (20, 0.2, False)]), False, "limits"),
        (stage([(10, 0.3, True), (20, 0.2, True)], retained=40), False, "refills"),
        (stage([(10, 0.41, True), (20, 0.4, True)]), False, "inspect"),
        (stage([(10, 0.41, True), (20, 0.4, True)], rises=False), False, "flat"),
        (stage([(10, 0.395, True), (20, 0.392, True)], noise=0.01), False, "inspect"),  # within the noise
        (stage([(10, None, True), (20, None, True)], rises=False), False, "flat"),
    ],
)
def test_twenty_updates_first_and_then_only_as_long_as_dev_improves(given, go_on, reason):
    decided = going_on(given)
    assert (decided.go_on, decided.reason) == (go_on, reason) and decided.because


def test_a_stage_ends_at_the_first_checkpoint_at_or_after_it():
    assert [u for u in range(10, 70, 10) if is_boundary(u, 20, 10)] == [20, 40, 60]
    assert [u for u in range(8, 48, 8) if is_boundary(u, 20, 8)] == [24, 40]
