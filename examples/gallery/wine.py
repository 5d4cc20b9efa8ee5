"""
Wine: three cultivars from thirteen measurements
================================================

178 Italian wines, 13 chemical measurements of each. The fit is not told that they are of three cultivars, nor how
many clusters to look for: it chooses the family of the clusters and finds their number.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score

from stickbreak import Mixture

wines, cultivar = load_wine(return_X_y=True, as_frame=True)
wines = wines.rename(columns={"od280/od315_of_diluted_wines": "dilution", "nonflavanoid_phenols": "nonflavanoids"})
model = Mixture(random_state=0).fit(wines)
print(f"{model.n_clusters_} clusters; agreement with the cultivars {adjusted_rand_score(cultivar, model.labels_):.2f}")

# %%
# Cultivars are not all there is to a wine: the bound prefers pieces of them, and a few odd bottles. What would three cost?

three = model.merge_clusters(3, wines)
print(f"3 clusters: {model.lower_bound_ - three.lower_bound_:.0f} nats worse; ", end="")
print(f"agreement {adjusted_rand_score(cultivar, three.labels_):.2f}")
print(pd.crosstab(cultivar, pd.Series(three.labels_, name="cluster")))

# %%
# On the left the wines along the two axes that part the clusters best; on the right what is unusual in each, in standard
# deviations from the mean of all wines.

_, (plane, heatmap) = plt.subplots(1, 2, figsize=(12, 5.2), layout="constrained", width_ratios=[1.3, 1])
three.plot.clusters(wines, ax=plane)
three.plot.profiles(ax=heatmap)
plt.show()
