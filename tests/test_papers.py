"""The experiments of the papers run, and write what they found."""

import json

import frame
import numpy as np
import pytest
from frame import Experiment, Outcome

ROWS = [{"what": "clusters", "paper": 8, "ours": 8, "peer": 7}]


def experiment() -> Experiment:
    def measure(small: bool, seeds: int) -> Outcome:
        return Outcome(ROWS, [{"curve": [float(small), float(seed)]} for seed in range(seeds)])

    def draw(outcome: Outcome, picture: object) -> None:
        for run in outcome.runs:
            picture.subplots().plot(run["curve"])

    return Experiment("toy", "A toy.", measure, draw, seeds=10, small_seeds=2)


@pytest.mark.parametrize(
    ("arguments", "name", "curves"),
    [(["--small"], "toy_small", [[1.0, 0.0], [1.0, 1.0]]), (["--seeds", "1"], "toy", [[0.0, 0.0]])],
)
def test_an_experiment_writes_its_runs_and_its_picture(arguments, name, curves, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(frame, "RESULTS", tmp_path)
    experiment().main(arguments)
    written = json.loads((tmp_path / f"{name}.json").read_text())
    assert written["table"] == ROWS
    assert [run["curve"] for run in written["runs"]] == curves
    assert (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
    assert "clusters" in capsys.readouterr().out


def test_a_picture_is_drawn_again_without_a_run(tmp_path, monkeypatch):
    monkeypatch.setattr(frame, "RESULTS", tmp_path)
    ran = experiment().main(["--small"])
    (tmp_path / "toy_small.png").unlink()
    assert experiment().main(["--small", "--redraw"]) == ran
    assert (tmp_path / "toy_small.png").exists()


@pytest.mark.parametrize(("inside", "arguments"), [(True, ["--small"]), (True, []), (False, ["--small"])])
def test_only_a_small_version_without_its_data_is_skipped(inside, arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(frame, "DATA", tmp_path)

    def measure(small: bool, seeds: int) -> Outcome:
        np.load((tmp_path if inside else tmp_path.parent) / "absent.npz")

    toy = Experiment("toy", "A toy.", measure, lambda outcome, picture: None)
    if inside and arguments:
        assert toy.main(arguments) is None
        assert "absent.npz is not there" in capsys.readouterr().out
    else:
        with pytest.raises(FileNotFoundError):
            toy.main(arguments)
