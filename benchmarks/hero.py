"""The picture at the top of the README: clusters of handwritten digits, each a tile as large as it has rows.

`Mixture(random_state=0)` begins with one cluster of the 1,797 images of scikit-learn, in 16 principal components, and sees no
label.  A tile has the mean image of its cluster, and the colour of the commonest digit among its rows, which only the picture
knows.

    python benchmarks/hero.py [--out docs/hero.png]
"""

import argparse
import colorsys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import normalized_mutual_info_score

from common import ROOT
from stickbreak import Mixture

WIDTH, HEIGHT, GAP = 12.0, 5.6, 0.025  # inches
SHOWN = 9.4  # pixels of an image along the shorter side of its tile
Tile = tuple[float, float, float, float]  # x, y, width, height


def tiles(sizes: np.ndarray, where: Tile) -> list[Tile]:
    """Tiles that fill a rectangle, with areas in proportion to sizes (n,), cut in half along the longer side."""
    if len(sizes) == 1:
        return [where]
    x, y, width, height = where
    before = np.cumsum(sizes)[:-1]
    cut = int(np.abs(before - sizes.sum() / 2.0).argmin()) + 1
    share = float(sizes[:cut].sum() / sizes.sum())
    if width >= height:
        first, second = (x, y, width * share, height), (x + width * share, y, width * (1.0 - share), height)
    else:
        first, second = (x, y, width, height * share), (x, y + height * share, width, height * (1.0 - share))
    return tiles(sizes[:cut], first) + tiles(sizes[cut:], second)


def ink(digit: int) -> LinearSegmentedColormap:
    """From a dark shade of the digit's hue to almost white."""
    hue = (0.58 + digit * 0.1) % 1.0
    shades = [colorsys.hls_to_rgb(hue, lightness, s) for lightness, s in ((0.2, 0.5), (0.5, 0.55), (0.96, 0.7))]
    return LinearSegmentedColormap.from_list(str(digit), shades)


def draw(means: np.ndarray, counts: np.ndarray, out: Path) -> None:
    """Draw clusters with mean images (K, 8, 8) and counts (K, 10) of the digits."""
    common, size = counts.argmax(axis=1), counts.sum(axis=1)
    shown = [np.flatnonzero(common == d) for d in range(10)]
    shown = [own[np.argsort(-size[own])] for own in shown if len(own)]
    fields = tiles(np.array([float(size[own].sum()) for own in shown]), (0.0, 0.0, WIDTH, HEIGHT))
    images = np.pad(means, ((0, 0), (1, 1), (1, 1)))
    figure = plt.figure(figsize=(WIDTH, HEIGHT), facecolor="white")
    for own, field in zip(shown, fields):
        for k, (x, y, width, height) in zip(own, tiles(size[own].astype(float), field)):
            width, height = width - GAP, height - GAP
            ax = figure.add_axes((x / WIDTH, 1.0 - (y + height) / HEIGHT, width / WIDTH, height / HEIGHT))
            colours = ink(int(common[k]))
            ax.set_facecolor(colours(0.0))
            ax.imshow(images[k], cmap=colours, vmin=0.0, vmax=images[k].max(), interpolation="catrom")
            across, down = SHOWN / 2 * max(width / height, 1.0), SHOWN / 2 * max(height / width, 1.0)
            ax.set(xlim=(4.5 - across, 4.5 + across), ylim=(4.5 + down, 4.5 - down), xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
    figure.savefig(out, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT.parent / "docs" / "hero.png")
    arguments = parser.parse_args()
    images, digit = load_digits(return_X_y=True)
    model = Mixture(random_state=0).fit(PCA(16, random_state=0).fit_transform(images))
    members = [model.labels_ == k for k in range(model.n_clusters_)]
    counts = np.array([np.bincount(digit[own], minlength=10) for own in members])
    share = counts.max(axis=1).sum() / len(digit)
    agreement = normalized_mutual_info_score(digit, model.labels_)
    print(f"{len(members)} clusters; {share:.1%} of the rows have the digit of their tile; NMI {agreement:.3f}")
    draw(np.array([images[own].mean(axis=0).reshape(8, 8) for own in members]), counts, arguments.out)


if __name__ == "__main__":
    main()
