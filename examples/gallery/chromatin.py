"""
Chromatin states, and a BED file of them
========================================

Marks of chromatin, present or absent in bins of 200 bases, on two chromosomes. A hidden Markov model of yes/no
columns segments them; the segments become a BED file for a genome browser.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from stickbreak import HMM
from stickbreak.data.bed_files import write_bed

rng = np.random.default_rng(0)
MARKS = ["H3K4me3", "H3K27ac", "H3K4me1", "H3K36me3", "H3K27me3", "H3K9me3", "CTCF"]
EMISSION = np.array(  # chances of the marks in six states
    [
        [0.01, 0.01, 0.02, 0.01, 0.02, 0.02, 0.01],  # quiescent
        [0.95, 0.90, 0.30, 0.05, 0.02, 0.01, 0.20],  # promoter
        [0.05, 0.75, 0.90, 0.05, 0.02, 0.01, 0.10],  # enhancer
        [0.01, 0.02, 0.10, 0.85, 0.01, 0.02, 0.01],  # transcribed
        [0.05, 0.01, 0.05, 0.01, 0.85, 0.05, 0.02],  # repressed
        [0.01, 0.01, 0.01, 0.05, 0.05, 0.80, 0.02],  # heterochromatin
    ]
)
LENGTHS = {"chr21": 9000, "chr22": 6000}
DURATION = np.array([80, 8, 6, 30, 25, 40])


def chromosome(T):
    """States (T,) that last as long as those of a genome."""
    runs = rng.choice(6, T, p=[0.35, 0.12, 0.18, 0.15, 0.12, 0.08])
    return np.repeat(runs, rng.geometric(1.0 / DURATION[runs]))[:T]


states = np.concatenate([chromosome(T) for T in LENGTHS.values()])
marks = (rng.random((len(states), 7)) < EMISSION[states]).astype(float)
lengths = list(LENGTHS.values())

model = HMM("bernoulli", random_state=0).fit(marks, lengths=lengths)
found = model.predict(marks, lengths)
with tempfile.TemporaryDirectory() as folder:
    bed = Path(folder) / "segments.bed"
    write_bed(bed, found, lengths, list(LENGTHS), bin_size=200)
    print(f"{model.n_states_} states; the first segments:", *bed.read_text().splitlines()[:5], sep="\n")

# %%
# The chances of the marks in each state, how long states last, and 800 bins as a browser would show them.

figure = plt.figure(figsize=(11, 6.6), layout="constrained")
(heat, bars), (track, _) = figure.subplots(2, 2, width_ratios=[2.2, 1], height_ratios=[1.3, 1])
_.remove()
track.set_subplotspec(figure.axes[0].get_subplotspec().get_gridspec()[1, :])
image = heat.imshow(model.probabilities_, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
for k, d in np.ndindex(model.probabilities_.shape):
    p = model.probabilities_[k, d]
    heat.text(d, k, f"{p:.2f}", ha="center", va="center", fontsize=8, color="white" if p > 0.6 else "#222222")
heat.set_xticks(range(7), MARKS)
heat.set_yticks(range(model.n_states_), [f"E{k + 1}" for k in range(model.n_states_)])
heat.set_title("chance of each mark", loc="left", fontsize=11)
colours = ["#bdc3c7", "#d55e00", "#e69f00", "#009e73", "#0072b2", "#cc79a7", "#56b4e9", "#767676"]
bars.barh(range(model.n_states_), 0.2 * model.durations(), color=colours[: model.n_states_])
bars.invert_yaxis()
bars.set(yticks=[], xlabel="expected length (kb)")
window = slice(2000, 2800)
for d in range(7):
    track.vlines(np.flatnonzero(marks[window, d]), 6.5 - d, 7.3 - d, color="#222222", linewidth=0.8)
for t, k in enumerate(found[window]):
    track.broken_barh([(t, 1)], (-1.2, 1.2), color=colours[k % 8], linewidth=0)
track.set_yticks([*(6.9 - d for d in range(7)), -0.6], [*MARKS, "state"], fontsize=9)
track.set(xlim=(0, 800), xlabel="bins of 200 bases on chr21, from 400 kb", ylim=(-1.3, 7.5))
for ax in (bars, track):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
