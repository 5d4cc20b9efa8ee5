"""The birth of 2013: new clusters fitted to rows of one, which the whole data set then adopts or leaves."""

from dataclasses import dataclass

from .._arguments import check_count, shown


@dataclass(frozen=True)
class AdoptedBirth:
    """Births as published in 2013 (section 3.1, supplement 2), each kept if the ELBO is higher after its adoption.

    In ``moves=`` of `stickbreak.Mixture` in place of "birth", as in ``moves=(AdoptedBirth(n_new=10), "merge", "delete")``.
    Laps with the other moves go on until they have settled, and then again after each birth:

    - collect: a cluster is drawn in proportion to its rows, among those not tried since the last birth that was kept (2013
      Eq. 22 prefers the same clusters), and rows with r_nk > 0.1 are drawn (Eq. 23);
    - create: a mixture with the same prior is fitted to these rows alone, by laps from ``n_new`` random rows as seeds.
      Clusters with less than a twentieth of the rows go.  Of the others the summary S' is kept (Eq. 24, 25);
    - adopt: over a lap all clusters, old and new, compete for every batch.  Parameters follow the total and S' (Eq. 26, 27),
      which counts the rows collected twice, so that new clusters keep their shape before they have rows of their own.  At the
      end S' is left out, and the total is exact again.

    An ascent with merges and deletes follows, an excursion: new clusters stay if its ELBO ends higher than before the birth,
    where the source keeps all births and the ELBO may fall.  The fit is over when every cluster has been tried in vain.
    Hyperparameters are learnt once there are several clusters.

    Parameters
    ----------
    n_new : int >= 2, default 10
        K', the clusters that are fitted to the rows of one.
    n_rows : int >= 2, default 10,000
        N', the most rows to collect, about.
    n_laps : int >= 1, default 100
        Most laps over these rows.

    Raises
    ------
    ValueError
        If a value is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from stickbreak import Mixture
    >>> from stickbreak.moves import AdoptedBirth
    >>> rng = np.random.default_rng(0)
    >>> centres = np.array([[-30.0, 0.0], [0.0, 30.0], [30.0, 0.0]])
    >>> X = rng.normal(centres[rng.integers(3, size=600)])
    >>> moves = (AdoptedBirth(n_new=5), "merge", "delete")
    >>> Mixture("gaussian", moves=moves, n_batches=3, random_state=0).fit(X).n_clusters_
    3
    """

    n_new: int = 10
    n_rows: int = 10_000
    n_laps: int = 100

    def __post_init__(self) -> None:
        for name in ("n_new", "n_rows", "n_laps"):
            check_count(getattr(self, name), name)
        for name in ("n_new", "n_rows"):
            if getattr(self, name) < 2:
                raise ValueError(f"{name} must be at least 2; got {shown(getattr(self, name))}.")
