"""
Ratings: topics that follow stars
=================================

Reviews of a telephone, half of which have stars. Topics follow words and stars together, and the stars of a review follow from
the shares of its topics. The picture shows, for each topic, what a review of that topic alone would give, and its words.
"""

import matplotlib.pyplot as plt
import numpy as np

from stickbreak import TopicModel

PARTS = {
    4.7: "battery charge lasts days power weekend hours travel",
    4.1: "screen bright sharp pixels colours sun films display",
    3.3: "case leather buttons size hand pocket weight grip",
    2.2: "menu updates slow crashed restart apps settings freezes",
    1.4: "courier parcel late box missing refund waiting service",
}
words = np.array([*" ".join(PARTS.values()).split(), "phone", "bought", "new", "week"])
rng = np.random.default_rng(0)
topics = np.full((5, len(words)), 0.002)
for k in range(5):
    topics[k, 8 * k : 8 * k + 8] = rng.dirichlet(np.full(8, 3.0))
topics[:, -4:] = 0.06
topics /= topics.sum(axis=1, keepdims=True)
shares = rng.dirichlet(np.full(5, 0.25), 1000)
counts = np.array([rng.multinomial(40, p @ topics) for p in shares])
stars = np.clip(shares @ list(PARTS) + rng.normal(0.0, 0.4, 1000), 1.0, 5.0)
given = np.where(rng.random(1000) < 0.5, stars, np.nan)

model = TopicModel(random_state=0).fit(counts[:700], given[:700])
found = model.predict_targets(counts[700:])
r2 = 1.0 - ((found - stars[700:]) ** 2).mean() / stars[700:].var()
print(f"{model.n_topics_} topics; R^2 of the stars of 300 new reviews {r2:.2f}")

# %%
# What a review of one topic gives.

alone = model.response_weights_[:, 0]
order = np.argsort(alone)
figure, ax = plt.subplots(figsize=(8.5, 3.2))
ax.scatter(alone[order], range(len(order)), s=70, color="#2a6f97", zorder=2)
for place, k in enumerate(order):
    names = ", ".join(word for word, _ in model.top_words(words, n=5)[k])
    left = alone[k] > 3.0
    ax.annotate(
        names,
        (alone[k], place),
        (-9 if left else 9, 0),
        textcoords="offset points",
        va="center",
        ha="right" if left else "left",
    )
ax.set(xlim=(0.8, 5.2), ylim=(-0.6, len(order) - 0.4), yticks=[], xlabel="stars of a review of this topic alone")
ax.spines[["top", "left", "right"]].set_visible(False)
figure.tight_layout()
plt.show()
