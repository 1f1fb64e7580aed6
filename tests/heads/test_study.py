"""The study: its fit is a least-squares line, its trivial points stay out of it, its picture exists."""

import math

import pytest

import thereexists.heads as heads
from thereexists.core.errors import InvalidInput
from thereexists.heads.plot import draw_head
from thereexists.heads.study import Line, Point, Study, _line, plot_study


def test_an_exact_line_is_recovered_and_trivial_points_are_left_out():
    lengths = [2**e for e in range(6, 15)]
    points = [Point("projection", 2, L, (round(1000 + 7000 * math.log(L)),), 0.0) for L in lengths]
    assert [p.trivial for p in points] == [2 * p.length <= p.hidden_size for p in points]
    line = _line(points, "projection", 2)
    used = [p for p in points if not p.trivial]
    assert line.points == len(used)
    points = [Point("convex", 2, L, (round(3 + 20 * math.log(L)),), 0.0) for L in lengths[2:]]
    line = _line(points, "convex", 2)
    assert line.points == 7
    assert line.slope is not None
    assert abs(line.slope - 20) < 0.5  # sizes were rounded to integers: half a unit over a span of log 2^6
    assert line.r2 is not None
    assert line.r2 > 0.999


def test_two_points_make_no_line():
    assert _line([Point("convex", 1, 256, (10,), 0.0), Point("convex", 1, 512, (12,), 0.0)], "convex", 1).slope is None


def test_a_small_study_runs_and_draws(tmp_path):
    study = heads.run_study([16, 32, 64], [1, 2], ["moments", "corrected"], seeds=range(2))
    assert len(study.points) == 12
    flat = [p.hidden_size for p in study.points if p.method == "moments" and p.k == 2]
    assert flat == [8.0, 8.0, 8.0]
    growing = [p.hidden_size for p in study.points if p.method == "corrected" and p.k == 2]
    assert growing == sorted(growing)
    plot_study(study, tmp_path / "s.png")
    assert (tmp_path / "s.png").read_bytes()[:4] == b"\x89PNG"
    assert [p.name for p in tmp_path.iterdir()] == ["s.png"]


def test_the_attention_map_is_drawn(tmp_path):
    draw_head(heads.fit(heads.random_matrix(20, 2), method="moments"), tmp_path / "h.png")
    assert (tmp_path / "h.png").stat().st_size > 5000


def test_of_a_head_of_words_only_the_target_is_drawn(made, tmp_path):
    """The attention of its leading word is another head's."""
    widths = {}
    for name in ("plain", "words"):
        draw_head(heads.load(made / name), tmp_path / f"{name}.png")
        widths[name] = int.from_bytes((tmp_path / f"{name}.png").read_bytes()[16:20], "big")
    assert widths["words"] < 0.7 * widths["plain"]


def test_senseless_lengths_are_refused():
    with pytest.raises(InvalidInput):
        heads.run_study([], [1])
    with pytest.raises(InvalidInput):
        heads.run_study([2], [1])


def test_the_report_is_plain_data():
    study = Study((Point("auto", 1, 8, (4,), 0.1),), (Line("auto", 1, None, None, None, 1),), {"eps1": 0.1})
    assert study.report()["table"][0]["hidden_size"] == 4.0
