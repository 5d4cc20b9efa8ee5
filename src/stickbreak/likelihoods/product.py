"""Mixed columns: the product of several likelihoods, each for some of the columns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ._arrays import like, namespace
from ._base import Array, Likelihood
from ._cells import Cells
from ._column_names import column_numbers
from ._hyperparameters import require
from ._learnt_parts import LearntParts, PartMarginals
from ._profile import Profile
from ._sample import Sample
from ._size import Size
from .features import features, prefers_sparse

MOST_UNUSED = 1 << 20  # columns of a table that belong to no part


@dataclass(frozen=True, eq=False)
class Product(LearntParts):
    """Product of likelihoods: given the cluster, groups of columns are independent.

        p(x | phi) = prod_g p_g(x_g | phi_g)

    so its statistics are those of the parts side by side, and log marginals add up.  Values may be missing wherever the part
    allows it.

    Parameters
    ----------
    parts : dict of name -> (likelihood, columns)
        Columns by number or, for frames, by name; ``"auto"`` as the likelihood of a Mixture makes one from a table.

    Examples
    --------
    >>> from stickbreak.likelihoods import Categorical, DiagonalGaussian, Product
    >>> both = Product({"size": (DiagonalGaussian(), ["height", "weight"]), "kind": (Categorical(), ["colour"])})
    """

    takes_missing: ClassVar[bool] = True
    domain: ClassVar[str] = "what its parts take"

    def __post_init__(self) -> None:
        fits = isinstance(self.parts, Mapping) and all(isinstance(name, str) for name in self.parts)
        fits = fits and all(
            isinstance(part, (tuple, list)) and len(part) == 2 and isinstance(part[0], Likelihood)
            for part in self.parts.values()
        )
        if not fits or not self.parts:
            raise ValueError(f"parts must be a dict of name -> (likelihood, columns); got {self.parts!r}.")

    def locate(self, names: Sequence[str] | None, D: int) -> Self:
        """With the columns of the parts as numbers."""
        parts = {}
        for name, (likelihood, given) in self.parts.items():
            columns = column_numbers(given, names, D)
            if len(columns) == 0:
                raise ValueError(f"part {name!r} of the product has no columns.")
            own = None if names is None else [names[d] for d in columns]
            parts[name] = (likelihood.locate(own, len(columns)), columns)
        owned = np.concatenate([columns[part.describes(len(columns))] for part, columns in parts.values()])
        twice = np.flatnonzero(np.bincount(owned) > 1)
        if len(twice):
            raise ValueError(f"column {twice[0]} belongs to more than one part of the product.")
        return replace(self, parts=parts, n_columns=D)

    def resolve(self, sample: Sample) -> Self:
        """Resolve each part on its columns."""
        located = self.locate(sample.names, sample.D)
        resolved = {name: (part.resolve(sample.take(c)), c) for name, (part, c) in located.parts.items()}
        for name, (part, _) in resolved.items():
            if part.latent is not None:
                raise ValueError(
                    f"part {name!r} is a {type(part).__name__}, whose rows have a latent variable that others do not share; "
                    "use Gaussian, or DiagonalGaussian."
                )
        return replace(located, parts=resolved)

    @property
    def conjugate(self) -> bool:
        """Whether all parts are."""
        return all(part.conjugate for part, _ in self._parts)

    def size(self, missing: NDArray[np.bool_], largest: Array) -> Size:
        """The sum of the sizes of the parts."""
        sizes = [part.size(missing[columns], largest[columns]) for part, columns in self._parts]
        return Size(*(sum(numbers) for numbers in zip(*sizes)))

    @property
    def n_statistics(self) -> int:
        """F, the sum of those of the parts."""
        return sum(part.n_statistics for part, _ in self._parts)

    @property
    def cells(self) -> Cells | None:
        """Those of the parts, among statistics side by side."""
        parts = [part for part, _ in self.parts.values()]
        cells = [part.cells for part in parts]
        if not any(cells):
            return None
        places = np.cumsum([0, *(part.n_statistics for part in parts)])
        return Cells(
            tuple(block for one, place in zip(cells, places) if one for block in one.shifted(int(place)).blocks)
        )

    @property
    def row_entries(self) -> int:
        """The sum of those of the parts; all statistics, where missing cells of a row are latent."""
        if self.cells is not None:
            return self.n_statistics
        return sum(part.row_entries if prefers_sparse(part) else part.n_statistics for part, _ in self._parts)

    @property
    def portable(self) -> bool:
        """Whether all parts are."""
        return all(part.portable for part, _ in self._parts)

    def features(self, X: Array, out: Array | None) -> Any:
        """T (n, F): the features of the parts side by side."""
        if out is None:
            return self._sparse_features(X)
        first = 0
        for part, columns in self._parts:
            part.features(_columns_of(X, columns), out[:, first : first + part.n_statistics])
            first += part.n_statistics
        return out

    def log_base(self, X: Array) -> Array:
        """The sum of those of the parts, (n,)."""
        return self._sum(lambda part, rows: part.log_base(rows), X)

    def weights(self, N: Array, S: Array) -> tuple[Array, Array]:
        """W of the parts side by side; the sum of their b."""
        W, b = zip(*(part.weights(N, s) for part, _, s in self._split(S)))
        return np.hstack(W), np.asarray(sum(b))

    def draw_weights(self, N: Array, S: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """The same of parameters drawn from their posterior."""
        W, b = zip(*(part.draw_weights(N, s, rng) for part, _, s in self._split(S)))
        return np.hstack(W), np.asarray(sum(b))

    def log_marginal(self, N: Array, S: Array) -> Array:
        """The sum of those of the parts, (K,)."""
        return np.asarray(sum(part.log_marginal(N, s) for part, _, s in self._split(S)))

    def log_marginals_of(self, N: Array, S: Array) -> Callable[[Any], Array]:
        """`log_marginal` as a function of the likelihood, of which parts that are as they were are not computed again."""
        return PartMarginals([part.log_marginals_of(N, s) for part, _, s in self._split(S)])

    def divergence(self, X: Array, centers: Array) -> Array:
        """The sum of those of the parts, (n, J)."""
        return self._sum(lambda part, rows, others: part.divergence(rows, others), X, centers)

    def posterior(self, N: Array, S: Array) -> dict[str, Any]:
        """The posterior of each part, by name."""
        return {name: part.posterior(N, s) for name, (part, _, s) in zip(self.parts, self._split(S))}

    def profile(self, N: Array, S: Array) -> Profile:
        """The profiles of the parts side by side."""
        profiles = [(part.profile(N, s), columns) for part, columns, s in self._split(S)]
        return Profile(
            np.concatenate([columns[profile.columns] for profile, columns in profiles]),
            np.concatenate([profile.levels for profile, _ in profiles]),
            np.hstack([profile.means for profile, _ in profiles]),
            np.hstack([profile.variances for profile, _ in profiles]),
            np.concatenate([profile.chances for profile, _ in profiles]),
        )

    def log_predictive(self, X: Array, N: Array, S: Array) -> Array:
        """The sum of those of the parts, (n, K)."""
        return np.asarray(sum(part.log_predictive(X[:, columns], N, s) for part, columns, s in self._split(S)))

    def sample(self, N: float, S: Array, rng: np.random.Generator, size: int) -> Array:
        """Draw ``size`` rows (size, D), part by part, regressions last; columns of no part are NaN."""
        X = np.full((size, self.n_columns), np.nan)
        parts = list(self._split(np.atleast_2d(S)))
        for part, columns, s in sorted(parts, key=lambda part: not part[0].describes(len(part[1])).all()):
            X[:, columns] = part.complete(X[:, columns], N, s, rng)
        return X

    def valid(self, X: Array) -> NDArray[np.bool_]:
        """What the parts allow; anything in columns of no part."""
        fine = np.ones(X.shape, np.bool_)
        for part, columns in self._parts:
            fine[:, columns] &= part.valid(np.ascontiguousarray(X[:, columns]))
        return fine

    def known(self, X: Any) -> Any:
        """With missing values where a part has them."""
        X = X.copy()
        for part, columns in self._parts:
            X[:, columns] = part.known(np.ascontiguousarray(X[:, columns]))
        return X

    def takes_targets(self) -> bool:
        """Whether a part does."""
        return any(part.takes_targets() for part, _ in self.parts.values())

    def may_miss(self, D: int) -> NDArray[np.bool_]:
        """The columns in which every part allows it."""
        may = np.ones(D, np.bool_)
        for part, columns in self._parts:
            may[columns] &= part.may_miss(len(columns))
        return may

    def fills_in(self, D: int) -> NDArray[np.bool_]:
        """As the parts that describe the columns."""
        return self._said(D, lambda part, d: part.fills_in(d))

    def nominal(self, D: int) -> NDArray[np.bool_]:
        """The columns in which a part allows it, and those of no part."""
        may = np.ones(D, np.bool_)
        for part, columns in self._parts:
            may[columns] &= part.nominal(len(columns))
        return may

    def measured(self, D: int) -> NDArray[np.bool_]:
        """The columns of which a part that describes them says so."""
        return self._said(D, lambda part, n: part.measured(n))

    def compositional(self, D: int) -> NDArray[np.bool_]:
        """The columns of which a part that describes them says so."""
        return self._said(D, lambda part, n: part.compositional(n))

    def with_missing(self, missing: NDArray[np.bool_], S: Array) -> tuple[Self, Array]:
        """Every part made for missing values in its columns."""
        wider = [part.with_missing(missing[columns], s) for part, columns, s in self._split(S)]
        parts = {name: (part, c) for (name, (_, c)), (part, _) in zip(self.parts.items(), wider)}
        return replace(self, parts=parts), np.hstack([s for _, s in wider])

    def impute(self, X: Array, R: Array, N: Array, S: Array) -> Array:
        """Missing values filled in part by part."""
        X = X.copy()
        for part, columns, s in self._split(S):
            X[:, columns] = part.impute(X[:, columns], R, N, s)
        return X

    def describes(self, D: int) -> NDArray[np.bool_]:
        """The columns that a part does."""
        own = np.zeros(D, np.bool_)
        for part, columns in self._parts:
            own[columns] |= part.describes(len(columns))
        return own

    def anew(self) -> Self:
        """With each part anew."""
        return type(self)({name: (part.anew(), columns) for name, (part, columns) in self.parts.items()})

    def simpler(self, missing: NDArray[np.bool_]) -> Self | None:
        """With a simpler family for each part that has one."""
        found = {name: part.simpler(missing[columns]) for name, (part, columns) in self.parts.items()}
        if not any(found.values()):
            return None
        return replace(self, parts={name: (found[name] or part, c) for name, (part, c) in self.parts.items()})

    def refuse(self, value: float, column: int, where: str) -> NoReturn:
        """Raise the error of the part to which the column belongs."""
        for part, columns in self._parts:
            if column in columns:
                part.refuse(value, int(np.flatnonzero(columns == column)[0]), where)
        super().refuse(value, column, where)

    def resolved_columns(self) -> int:
        """The number of columns that it was located in: those of its parts, and at most `MOST_UNUSED` others."""
        used = sum(len(columns) for _, columns in self._parts)
        most = used + MOST_UNUSED
        whole = isinstance(self.n_columns, int)
        require(whole and 0 < self.n_columns <= most, "n_columns", self.n_columns, f"a whole number from 1 to {most}")
        return int(self.n_columns)

    def check(self, D: int, N: Array, S: Array) -> None:
        """Check each part against its columns and statistics, and that no column belongs to two parts."""
        require(self.resolved_columns() == D, "n_columns", self.n_columns, f"{D}, as the table has")
        require(S.shape == (len(N), self.n_statistics), "shape", S.shape, f"that of {self.n_statistics} statistics")
        for part, columns, s in self._split(S):
            known = isinstance(columns, np.ndarray) and columns.ndim == 1 and columns.dtype.kind in "iu"
            require(known and bool((columns >= 0).all()), "columns", columns, "an array of numbers of at least 0")
            part.check(len(columns), N, s)
        self.locate(None, D)

    def _said(self, D: int, says: Callable[[Likelihood, int], NDArray[np.bool_]]) -> NDArray[np.bool_]:
        """The columns (D,) of which a part that describes them says something."""
        which = np.zeros(D, np.bool_)
        for part, columns in self._parts:
            which[columns] |= says(part, len(columns)) & part.describes(len(columns))
        return which

    def _sum(self, value: Callable[..., Array], *tables: Array) -> Array:
        return np.asarray(sum(value(part, *(X[:, columns] for X in tables)) for part, columns in self._parts))

    def _sparse_features(self, X: Array) -> sparse.csr_array:
        """CSR with the same number of entries in every row."""
        n = len(X)
        first = 0
        places = []
        values = []
        for part, columns in self._parts:
            rows = np.ascontiguousarray(X[:, columns])
            F = part.n_statistics
            T = features(part, rows, rows.dtype)
            if sparse.issparse(T):
                places.append(first + T.indices.reshape(n, part.row_entries))
                values.append(T.data.reshape(n, part.row_entries))
            else:
                places.append(np.broadcast_to(np.arange(first, first + F), (n, F)))
                values.append(T)
            first += F
        place = np.hstack(places)
        value = np.hstack(values)
        edges = np.arange(0, place.size + 1, place.shape[1])
        return sparse.csr_array((value.ravel(), place.ravel(), edges), (n, first))


def _columns_of(X: Any, columns: NDArray[np.intp]) -> Any:
    """Some columns of rows X (n, D), contiguous."""
    if isinstance(X, np.ndarray):
        return np.ascontiguousarray(X[:, columns])
    return namespace(X).take(X, like(columns, X, "int64"), axis=1)
