"""The birth of Thesis 4.2: the mass of a cluster in one batch goes to new clusters, and that batch alone decides."""

from dataclasses import dataclass

from .._arguments import check_count, shown


@dataclass(frozen=True)
class BatchBirth:
    """Births as published in Thesis 4.2, each accepted or rejected after the visit to a single batch.

    In ``moves=`` of `stickbreak.Mixture` in place of "birth", as in ``moves=(BatchBirth(n_new=10), "merge", "delete")``.  At
    each batch after the first lap one cluster k is targeted: among those tried least often, the one whose rows have the
    lowest expected log density (Thesis Eq. 4.24).  New clusters J are fitted to rows of the batch with r_nk > 0.1 and get
    the mass of k in this batch,

        r'_nj = r_nk p_nj,    p_n = softmax of the scores of J    (Thesis Eq. 4.12, 4.16),

    other batches have none of it (Eq. 4.21, 4.22), so the summary of all rows stays exact, and the birth is accepted if the
    ELBO of the whole data set rises (by a nat for each cluster more, as for all moves).

    The fit is one ascent as published: laps are those of ``Memoized(accelerate=False)``, the other moves are verified at
    the end of a lap, there are no excursions, and the ELBO never falls.  A cluster whose births have failed three times is
    not tried again until its count has changed by a tenth.  Hyperparameters are learnt once no more clusters are born.
    New clusters are fitted as those of other births, from Bregman k-means++ seeds by steps of a mixture of their own, in
    which pieces that belong together are merged, where the thesis has Bregman k-means.

    A batch must hold enough rows of the new clusters to pay for them by itself, while the other batches do without: large
    batches find more than small ones, and rows sorted by cluster must be shuffled first.

    Parameters
    ----------
    n_new : int >= 2, default 10
        J', the most clusters that a birth adds.
    least_rows : int >= 1, default 20
        Clusters with less mass in a batch are not targeted there.

    Raises
    ------
    ValueError
        If a value is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from stickbreak import Mixture
    >>> from stickbreak.moves import BatchBirth
    >>> rng = np.random.default_rng(0)
    >>> centres = np.array([[-30.0, 0.0], [0.0, 30.0], [30.0, 0.0]])
    >>> X = rng.normal(centres[rng.integers(3, size=600)])
    >>> moves = (BatchBirth(n_new=5), "merge", "delete")
    >>> Mixture("gaussian", moves=moves, n_batches=3, random_state=0).fit(X).n_clusters_
    3
    """

    n_new: int = 10
    least_rows: int = 20

    def __post_init__(self) -> None:
        check_count(self.n_new, "n_new")
        check_count(self.least_rows, "least_rows")
        if self.n_new < 2:
            raise ValueError(
                f"n_new must be at least 2, since one new cluster replaces nothing; got {shown(self.n_new)}."
            )
