"""Colours that are told apart by the colour-blind too."""

import numpy as np
from numpy.typing import NDArray

# Okabe and Ito, without yellow and black, which are hard to see on white and among text
COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#767676")
SHADES = (1.0, 0.6, 1.4)
GOOD, ODD = "#0072b2", "#d55e00"
SEQUENTIAL, DIVERGING = "Blues", "PuOr_r"


def colors(K: int) -> NDArray[np.floating]:
    """RGB colours (K, 3) of clusters 0, 1, ...: seven hues, then the same ones darker and lighter, then all again.

    So many clusters cannot be told by colour alone; pictures also write their numbers.
    """
    hues = np.array([[int(text[i : i + 2], 16) for i in (1, 3, 5)] for text in COLORS]) / 255.0
    order = np.arange(K)
    shade = np.array(SHADES)[order // len(hues) % len(SHADES), None]
    hue = hues[order % len(hues)]
    darker = hue * np.minimum(shade, 1.0)
    lighter = 1.0 - (1.0 - darker) * np.minimum(1.0, 2.0 - shade)
    return np.asarray(np.where(shade > 1.0, lighter, darker))
