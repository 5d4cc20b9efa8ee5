"""k-means."""

import numpy as np
import pytest

from stickbreak.moves.k_means import centers_of, nearest


def test_groups_far_apart_are_found():
    rng = np.random.default_rng(0)
    z = rng.integers(4, size=400)
    points = 20.0 * np.eye(4)[z] + rng.standard_normal((400, 4))
    centers = centers_of(points, 4, np.random.default_rng(1), 4)
    labels = nearest(points, centers)
    assert len({(a, b) for a, b in zip(z, labels)}) == 4
    assert centers[labels[0]] == pytest.approx(points[labels == labels[0]].mean(axis=0))


def test_of_several_tries_the_closest_counts():
    rng = np.random.default_rng(2)
    points = 5.0 * rng.standard_normal((12, 2))[rng.integers(12, size=600)] + rng.standard_normal((600, 2))

    def distance(centers):
        return ((points - centers[nearest(points, centers)]) ** 2).sum()

    one = [distance(centers_of(points, 12, np.random.default_rng(seed))) for seed in range(10)]
    several = [distance(centers_of(points, 12, np.random.default_rng(seed), 5)) for seed in range(10)]
    assert np.mean(several) < np.mean(one) - 0.5 * np.std(one)


def test_there_are_no_more_groups_than_points_that_differ():
    points = np.repeat([[0.0, 1.0], [2.0, 3.0]], 5, axis=0)
    assert len(centers_of(points, 6, np.random.default_rng(0))) == 2
