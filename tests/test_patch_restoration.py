"""Denoising by a mixture of patches, against closed forms."""

import numpy as np
from scipy.stats import multivariate_normal

from papers.baselines.patch_restoration import Patches, averaged, denoised, owners, patches_of, psnr, restored_patches


def covariance(rng):
    root = rng.standard_normal((64, 64)) / 8.0
    return root @ root.T


def test_overlapping_patches_average_to_the_image():
    image = np.random.default_rng(0).random((12, 15))
    np.testing.assert_allclose(averaged(patches_of(image), image.shape), image, rtol=1e-12)


def test_a_patch_is_the_posterior_mean_of_its_component():
    rng = np.random.default_rng(1)
    C = covariance(rng)
    mu = rng.standard_normal(64)
    y = rng.standard_normal((5, 64))
    y -= y.mean(axis=1, keepdims=True)
    precision = np.linalg.inv(C) + np.eye(64) / 0.3
    expected = np.linalg.solve(
        precision, (y / 0.3 + np.linalg.solve(C, mu)).T
    ).T  # the mean of p(x | y) by its precision
    found = restored_patches(y + 2.0, Patches(np.ones(1), mu[None], C[None]), 0.3)
    np.testing.assert_allclose(found, expected + 2.0, rtol=1e-6, atol=1e-8)


def test_each_patch_has_its_most_probable_component():
    rng = np.random.default_rng(2)
    wide = np.array([covariance(rng) for _ in range(3)])
    model = Patches(np.array([0.2, 0.5, 0.3]), 0.3 * rng.standard_normal((3, 64)), wide)
    y = rng.standard_normal((600, 64)) * rng.uniform(0.1, 2.0, 600)[:, None]
    y -= y.mean(axis=1, keepdims=True)
    scores = [np.log(w) + multivariate_normal(mu, C + 0.1 * np.eye(64)).logpdf(y) for w, mu, C in zip(*model)]
    assert (owners(y, model, 0.1) == np.argmax(scores, axis=0)).mean() > 0.995  # in single precision
    assert len(set(np.argmax(scores, axis=0))) == 3


def test_denoising_gains_on_a_smooth_image():
    rng = np.random.default_rng(3)
    smooth = np.add.outer(np.linspace(0.2, 0.5, 24), np.linspace(0.0, 0.3, 24))
    noisy = smooth + rng.normal(0.0, 0.1, smooth.shape)
    steps = np.arange(8) - 3.5
    ramps = np.array([np.repeat(steps, 8), np.tile(steps, 8)])  # the patches of a smooth image, without their means
    model = Patches(np.ones(1), np.zeros((1, 64)), 4e-4 * (ramps.T @ ramps)[None])
    assert psnr(denoised(noisy, model, 0.1), smooth) > psnr(noisy, smooth) + 8.0


def test_psnr_of_a_constant_error():
    assert np.isclose(psnr(np.full((3, 3), 0.1), np.zeros((3, 3))), 20.0)
