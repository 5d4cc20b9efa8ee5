"""Denoising of images by a mixture of Gaussians over patches (Zoran and Weiss 2011, EPLL)."""

from typing import NamedTuple

import numpy as np

from stickbreak.kernels.statistics import pack_products

SIZE = 8
SHARPNESS = (1.0, 4.0, 8.0, 16.0, 32.0)  # beta in units of 1 / sigma^2, one for each step
BLOCK = 512  # patches whose products stay in the cache


class Patches(NamedTuple):
    """A mixture over patches without their mean: weights (K,), means (K, 64) and covariances (K, 64, 64)."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray


def patches_of(image: np.ndarray) -> np.ndarray:
    """All overlapping patches of an image, (n, 64)."""
    return np.lib.stride_tricks.sliding_window_view(image, (SIZE, SIZE)).reshape(-1, SIZE * SIZE)


def averaged(patches: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The image in which every pixel is the mean of the overlapping patches that have it."""
    rows = shape[0] - SIZE + 1
    columns = shape[1] - SIZE + 1
    cubes = patches.reshape(rows, columns, SIZE, SIZE)
    total = np.zeros(shape)
    count = np.zeros(shape)
    for i in range(SIZE):
        for j in range(SIZE):
            total[i : i + rows, j : j + columns] += cubes[:, :, i, j]
            count[i : i + rows, j : j + columns] += 1.0
    return total / count


def owners(y: np.ndarray, model: Patches, noise: float) -> np.ndarray:
    """The most probable component (n,) of patches y (n, 64) without their means, seen with noise of a variance.

    argmax_k log w_k + log N(y | mu_k, C_k + noise I)
    """
    D = y.shape[1]
    precisions = np.linalg.inv(model.covariances + noise * np.eye(D))
    a, b = np.triu_indices(D)
    linear = np.einsum("kab,kb->ka", precisions, model.means)
    products = precisions[:, a, b] * np.where(a == b, -0.5, -1.0)
    W = np.hstack([products, linear]).T.astype(np.float32)
    constant = np.log(model.weights) + 0.5 * np.linalg.slogdet(precisions)[1] - 0.5 * (linear * model.means).sum(axis=1)
    T = np.empty((BLOCK, len(W)), np.float32)
    found = np.empty(len(y), dtype=np.intp)
    for start in range(0, len(y), BLOCK):
        rows = y[start : start + BLOCK]
        pack_products(rows, np.zeros(D), np.ones(D), True, T[: len(rows)])
        found[start : start + BLOCK] = (T[: len(rows)] @ W + constant.astype(np.float32)).argmax(axis=1)
    return found


def restored_patches(patches: np.ndarray, model: Patches, noise: float) -> np.ndarray:
    """The posterior mean of patches (n, 64) seen with noise of a variance, under the most probable component k of each.

    x = m + mu_k + C_k (C_k + noise I)^-1 (y - m - mu_k),   m the mean of the pixels of a patch
    """
    mean = patches.mean(axis=1, keepdims=True)
    y = patches - mean
    owner = owners(y, model, noise)
    restored = np.empty_like(y)
    for k in np.unique(owner):
        rows = owner == k
        noisy = model.covariances[k] + noise * np.eye(y.shape[1])
        mu = model.means[k]
        restored[rows] = (y[rows] - mu) @ np.linalg.solve(noisy, model.covariances[k]) + mu
    return restored + mean


def denoised(image: np.ndarray, model: Patches, sigma: float) -> np.ndarray:
    """The image of the highest expected patch log likelihood, by half quadratic splitting (Zoran and Weiss 2011, Eq. 4 to 7).

    image : (rows, columns) with noise of the standard deviation sigma > 0, in the units of the covariances
    """
    estimate = image
    for sharpness in SHARPNESS:
        patches = restored_patches(patches_of(estimate), model, sigma**2 / sharpness)
        estimate = (image + sharpness * averaged(patches, image.shape)) / (1.0 + sharpness)
    return np.clip(estimate, 0.0, 1.0)


def psnr(image: np.ndarray, truth: np.ndarray) -> float:
    """Peak signal to noise ratio of an image with values in [0, 1], in dB."""
    return float(-10.0 * np.log10(((image - truth) ** 2).mean()))
