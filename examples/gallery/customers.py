"""
A messy table of customers
==========================

A table as it comes out of a database: customer numbers, a date, an income with a long tail, a sentinel -999,
categories, a yes/no column, and a tenth of the cells empty. Five kinds of customers are behind it.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from stickbreak import Mixture

rng = np.random.default_rng(1)
kind = rng.choice(5, 1500, p=[0.35, 0.25, 0.2, 0.15, 0.05])  # students, families, retired, commuters, collectors
last = pd.Timestamp("2026-01-01") - pd.to_timedelta(
    rng.lognormal(np.array([3.0, 1.5, 4.5, 3.5, 6.0])[kind], 0.5), unit="D"
)
customers = pd.DataFrame(
    {
        "customer": 100_000 + rng.permutation(1500),
        "last_order": last,
        "income": np.exp(rng.normal(np.array([9.6, 11.0, 10.3, 10.8, 11.9])[kind], 0.25)),
        "age": rng.normal(np.array([23, 41, 70, 36, 55])[kind], np.array([3, 6, 6, 8, 10])[kind]).round(),
        "orders": rng.poisson(np.array([6, 20, 4, 9, 2])[kind]),
        "newsletter": rng.random(1500) < np.array([0.2, 0.7, 0.8, 0.3, 0.5])[kind],
        "device": np.array(["phone", "laptop", "tablet"])[(kind % 3 + (rng.random(1500) < 0.25)) % 3],
    }
)
customers.loc[rng.random(1500) < 0.05, "age"] = -999
cells = rng.random((1500, 4)) < 0.1
customers[["income", "orders", "newsletter", "device"]] = customers[["income", "orders", "newsletter", "device"]].mask(
    cells
)

# %%
# A date is neither a number nor a category. The time since then is a number:

customers["days_since_order"] = (pd.Timestamp("2026-01-01") - customers.pop("last_order")) / pd.Timedelta(days=1)

# %%
# The check of the data, which every fit makes, finds what else will mislead, and says how to cure it:

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    Mixture(random_state=0, max_laps=1).fit(customers)
print(caught[0].message)

# %%
# Three lines of cures. What is missing stays missing: it is integrated out.

table = customers.drop(columns="customer")
table["age"] = table["age"].where(table["age"] > 0)
table["log_days"] = np.log(table.pop("days_since_order"))
model = Mixture(random_state=0).fit(table)
print(
    f"{model.n_clusters_} clusters; adjusted Rand index with the kinds {adjusted_rand_score(kind, model.labels_):.2f}"
)
_, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
model.plot.profiles(ax=ax)
plt.show()
