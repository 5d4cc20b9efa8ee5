"""Denoising of images by a mixture of zero-mean Gaussians over patches (Zoran and Weiss 2011, EPLL)."""

import numpy as np

SIZE = 8
SHARPNESS = (1.0, 4.0, 8.0, 16.0, 32.0)  # beta in units of 1 / sigma^2, one for each step


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


def restored_patches(patches: np.ndarray, weights: np.ndarray, covariances: np.ndarray, noise: float) -> np.ndarray:
    """The posterior mean of patches (n, 64) seen with noise of a variance, under the most probable component of each.

        k = argmax_k log w_k + log N(y | 0, C_k + noise I),   x = m + C_k (C_k + noise I)^-1 (y - m),

    where m is the mean of the pixels of a patch.

    weights : (K,) of the mixture
    covariances : (K, 64, 64)
    noise : variance > 0 of a pixel
    """
    mean = patches.mean(axis=1, keepdims=True)
    y = patches - mean
    best = np.full(len(y), -np.inf)
    owner = np.zeros(len(y), dtype=np.intp)
    for k, (weight, covariance) in enumerate(zip(weights, covariances)):
        values, vectors = np.linalg.eigh(covariance)
        spread = np.maximum(values, 0.0) + noise
        score = np.log(weight) - 0.5 * (np.log(spread).sum() + ((y @ vectors) ** 2 @ (1.0 / spread)))
        better = score > best
        best[better] = score[better]
        owner[better] = k
    restored = np.empty_like(y)
    for k in np.unique(owner):
        rows = owner == k
        noisy = covariances[k] + noise * np.eye(y.shape[1])
        restored[rows] = np.linalg.solve(noisy, y[rows].T).T @ covariances[k]
    return restored + mean


def denoised(image: np.ndarray, weights: np.ndarray, covariances: np.ndarray, sigma: float) -> np.ndarray:
    """The image of the highest expected patch log likelihood, by half quadratic splitting (Zoran and Weiss 2011, Eq. 4 to 7).

    image : (rows, columns) with noise of the standard deviation sigma > 0, in the units of the covariances
    """
    estimate = image
    for sharpness in SHARPNESS:
        patches = restored_patches(patches_of(estimate), weights, covariances, sigma**2 / sharpness)
        estimate = (image + sharpness * averaged(patches, image.shape)) / (1.0 + sharpness)
    return np.clip(estimate, 0.0, 1.0)


def psnr(image: np.ndarray, truth: np.ndarray) -> float:
    """Peak signal to noise ratio of an image with values in [0, 1], in dB."""
    return float(-10.0 * np.log10(((image - truth) ** 2).mean()))
