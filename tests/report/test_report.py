"""Progress line, pictures and the demonstration."""

import io
import sys
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from stickbreak import Mixture
from stickbreak.cli import digits
from stickbreak.inference import Lap, ascents
from stickbreak.moves import MoveRecord
from stickbreak.plots.fit import visible_range
from stickbreak.report.figures import plot_fit
from stickbreak.report.progress import Progress, clock, short
from stickbreak.report.tables import search_table


def lap(number, bound=-100.0, K=3, moves=(), explored=None):
    explored = (bound, K) if explored is None else explored
    return Lap(number, 0.5 * number, bound, K, *explored, moves, 2.5e6)


def accepted(kind, *gains):
    return MoveRecord(kind, 5, gains)


HISTORY = [
    lap(1, -1000.0, 1),
    lap(2, -500.0, 4, (accepted("birth", 300.0, 9.0), accepted("merge"))),
    lap(3, -480.0, 3, (accepted("birth"), accepted("merge", 20.0))),
    lap(4, -480.0, 3, (accepted("merge", 5.0, 6.0),), explored=(-700.0, 6)),
    lap(5, -470.0, 3),
]


def test_the_line_tells_the_state_of_the_fit():
    progress = Progress(total_rows=50, max_laps=100, enabled=False)
    assert progress.text(3.0) == "lap 1  0:03"
    progress(lap(1, moves=(accepted("birth", 4.0), accepted("merge", 1.0, 2.0))))
    assert progress.text(0.5) == "lap 1  ELBO/row -2.0000  K 3  3 moves  2.5M rows/s  0:00  left --"
    progress(lap(2, moves=(accepted("delete", 4.0),)))
    assert "4 moves" in progress.text(1.0)
    assert progress.text(1.0).endswith("left <= 0:49")  # 98 laps of half a second


def test_the_line_tells_of_samples():
    progress = Progress(total_rows=50, max_laps=100, enabled=False)
    progress(replace(lap(1), sample_rows=20))
    progress(replace(lap(2), sample_rows=20))
    assert "ELBO/row -5.0000" in progress.text(1.0)
    assert progress.text(1.0).endswith("on 20 rows  0:01  left --")
    progress(lap(3))
    progress(lap(4))
    assert "ELBO/row -2.0000" in progress.text(2.0)
    assert progress.text(2.0).endswith("left <= 0:48")  # 96 laps at the pace of those over all rows


def test_the_history_tells_what_every_ascent_began_with_and_whether_it_was_kept():
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(m, 1.0, (7000, 2)) for m in ([0, 0], [5, 0], [0, 5], [6, 6])])
    model = Mixture("gaussian", random_state=0).fit(X)
    found = ascents(model.history_)
    sampled = [ascent for ascent in found if ascent.last.sample_rows]
    assert sampled == found[: len(sampled)]
    assert 0 < len(sampled) < len(found)
    assert [lap.number for lap in model.history_] == list(range(1, model.n_laps_ + 1))
    assert found[0].laps[0].explored_clusters == 1
    kept = [ascent for ascent in found[len(sampled) :] if ascent.kept]
    assert kept[0].last.origin == "start"
    assert {ascent.last.origin for ascent in found} <= {"start", "merges", "splits", "again", "seeds", "crossing"}
    assert kept[-1].last.explored_bound == model.lower_bound_
    assert len(model.lower_bounds_) == sum(len(ascent.laps) for ascent in found[len(sampled) :])
    assert all(np.diff(model.lower_bounds_) >= -1e-9 * abs(model.lower_bound_))
    table = search_table(model.history_)
    assert table.row_count == len(found)


def test_half_of_the_laps_at_most_are_of_samples():
    X = np.random.default_rng(2).normal(size=(24_000, 1))
    with pytest.warns(UserWarning, match="not converged"):
        model = Mixture("gaussian", random_state=0, max_laps=2).fit(X)
    assert [lap.sample_rows > 0 for lap in model.history_] == [True, False]


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("max_laps", [1, 2, 3])
def test_laps_on_samples_of_samples_stay_within_the_limit(max_laps):
    X = np.random.default_rng(2).normal(size=(90_000, 1))
    assert Mixture("gaussian", random_state=0, max_laps=max_laps).fit(X).n_laps_ == max_laps


def test_nothing_is_shown_unless_on_a_terminal(capsys):
    with Progress(10, 10) as progress:
        progress(lap(1))
    assert capsys.readouterr() == ("", "")


def test_the_line_is_live_on_a_terminal():
    screen = io.StringIO()
    with Progress(10, 10, enabled=True, console=Console(file=screen, force_terminal=True, width=120)) as progress:
        progress(lap(1))
        progress(lap(2, bound=-90.0))
    assert screen.getvalue().index("ELBO/row -10.0000") < screen.getvalue().index("ELBO/row -9.0000")
    assert screen.getvalue().count("\n") == 1


def interrupted(progress):
    with progress:
        raise KeyboardInterrupt


def test_an_interrupt_passes_through():
    console = Console(file=io.StringIO(), force_terminal=True)
    with pytest.raises(KeyboardInterrupt):
        interrupted(Progress(10, 10, enabled=True, console=console))


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (59.7, "1:00"), (61, "1:01"), (3600, "1:00:00")])
def test_clock(seconds, text):
    assert clock(seconds) == text


@pytest.mark.parametrize(("number", "text"), [(7, "7"), (999, "999"), (1234, "1.23k"), (5e6, "5M"), (2.5e9, "2.5G")])
def test_short(number, text):
    assert short(number) == text


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ([-1000.0, -500.0, -480.0, -470.0], (-500.0, -470.0)),  # from the second lap
        ([-1e9, -1e6, *[-3.0, -2.0, -1.0] * 10], (-9.0, -1.0)),  # early laps that dwarf the others
        ([-5.0], (-6.0, -5.0)),
        ([-5.0, -5.0, -5.0], (-6.0, -5.0)),
        ([-50.0, -5.5, -5.5 + 2.0**-20], (-6.5 + 2.0**-20, -5.5 + 2.0**-20)),  # no more than rounding
    ],
)
def test_the_interesting_part_of_the_bound_is_visible(bounds, expected):
    assert visible_range(np.array(bounds)) == expected


def test_the_picture_marks_the_moves_of_the_best_model(tmp_path):
    figure = plot_fit(HISTORY, path=tmp_path / "fit.png")
    assert (tmp_path / "fit.png").read_bytes().startswith(b"\x89PNG")
    left, counts = figure.axes
    labels = [text.get_text() for text in left.get_legend().get_texts()]
    assert labels[1:] == ["birth: 2 accepted", "merge: 1 accepted"]  # those of lap 4 were only tried
    merges = left.collections[1].get_offsets()
    np.testing.assert_allclose(merges, [[3, -480.0]])
    np.testing.assert_allclose(left.lines[0].get_ydata(), [-1000, -500, -480, -480, -470])
    assert left.get_ylim()[0] > -600
    assert counts.get_ylim()[1] > 6


def test_the_picture_orders_clusters_by_weight():
    images = np.arange(3.0)[:, None, None] * np.ones((3, 2, 4))
    figure = plot_fit(HISTORY, images, weights=[0.2, 0.7, 0.1])
    tiles = [axes for axes in figure.axes if axes.images]
    assert [axes.get_xlabel() for axes in tiles] == ["70.0%", "20.0%", "10.0%"]
    assert [axes.images[0].get_array().max() for axes in tiles] == [1, 0, 2]


def test_a_single_lap_and_many_clusters_can_be_drawn(tmp_path):
    many = np.random.default_rng(0).random((60, 3, 3))
    figure = plot_fit([lap(1)], many, tmp_path / "many.svg")
    assert "of 60" in figure.subfigs[1].get_suptitle()
    plot_fit([lap(1)], many[:1], captions=["only"])


def test_mistakes_in_pictures():
    with pytest.raises(ValueError, match="empty"):
        plot_fit([])
    with pytest.raises(ValueError, match=r"\(4, 4\)"):
        plot_fit(HISTORY, np.zeros((4, 4)))
    with pytest.raises(ValueError, match="weights must have one entry for each of the 2 images; got 3"):
        plot_fit(HISTORY, np.zeros((2, 4, 4)), weights=np.ones(3))


def test_pictures_without_matplotlib_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install stickbreak\[plot\]"):
        plot_fit(HISTORY)


def test_bounds_of_any_size_can_be_drawn():
    for scale in (1e-3, 1e12):
        plot_fit([replace(step, lower_bound=scale * step.lower_bound) for step in HISTORY])


def test_the_demonstration(tmp_path, capsys, monkeypatch):
    images, labels = digits.load_digits(return_X_y=True)
    monkeypatch.setattr(digits, "load_digits", lambda **_: (images[:150], labels[:150]))
    monkeypatch.setattr(digits, "N_STARTS", 2)
    digits.run(tmp_path / "new" / "folder")
    printed = capsys.readouterr().out
    assert "clusters found" in printed
    agreement = float(printed.split("(normalized mutual information): ")[1].split()[0])
    assert agreement > 0.7
    assert (tmp_path / "new" / "folder" / "digits.png").stat().st_size > 20_000
