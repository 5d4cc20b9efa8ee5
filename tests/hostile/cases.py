"""A hostile fit as a plain value: what is fitted to which data; its repr reproduces it."""

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from stickbreak.likelihoods import REGISTRY

ESTIMATORS = ("Mixture", "TopicModel", "HMM")
LIKELIHOODS = (*REGISTRY, "auto", "product")
OF_ROWS = ("student_t", "background")  # which only mixtures take

DOMAIN = {
    "auto": "mixed",
    "bernoulli": "bits",
    "categorical": "codes",
    "dirichlet": "shares",
    "exponential": "durations",
    "gamma": "durations",
    "log_scale": "durations",
    "multinomial": "counts",
    "poisson": "counts",
    "product": "mixed",
}
SQUARES = (
    *("gaussian", "zero_mean_gaussian", "diagonal_gaussian", "spherical_gaussian", "student_t"),
    *("background", "gaussian_network", "linear_regression"),
)
HYPERPARAMETERS = {
    "bernoulli": ("a", "b"),
    "categorical": ("concentration", "n_levels"),
    "dirichlet": ("median", "spread", "floor"),
    "poisson": ("shape", "rate", "exposure"),
    "exponential": ("shape", "rate"),
    "gamma": ("known_shape", "shape", "rate"),
    "multinomial": ("concentration",),
    "gaussian": ("mean", "mean_precision", "degrees_of_freedom", "scale"),
    "gaussian_network": ("n_parents", "mean", "mean_precision", "degrees_of_freedom", "scale"),
    "background": ("share",),
    "student_t": ("tails", "mean", "mean_precision", "degrees_of_freedom", "scale"),
    "zero_mean_gaussian": ("degrees_of_freedom", "scale"),
    "known_covariance_gaussian": ("covariance", "mean", "mean_precision"),
    "diagonal_gaussian": ("mean", "mean_precision", "shape", "rate"),
    "spherical_gaussian": ("mean", "mean_precision", "shape", "rate"),
    "linear_regression": ("mean", "mean_precision", "degrees_of_freedom", "scale", "targets"),
    "autoregressive_gaussian": ("mean", "mean_precision", "degrees_of_freedom", "scale", "order"),
}

VALUES = (  # the first are ordinary
    *("blobs", "overlapping", "rounded", "zeros of both signs"),
    *("constant column", "duplicate columns", "collinear", "one distinct row", "all zero"),
    *("offset 1e6", "offset 1e10", "narrow at 1e10", "offset 1e16", "outlier 1e6", "outlier 1e20"),
    *("scale 1e-300", "scale 1e-150", "scale 1e-8", "scale 1e8", "scale 1e100", "scale 1e150", "scale 1e300"),
    *("denormal", "one denormal", "counts 1e5", "counts 1e6", "counts 1e7", "counts 1e30", "many levels"),
    *("fractions", "one negative", "one NaN", "one infinity", "unlike units"),
)
WRONG_VALUES = ("one negative", "one infinity", "one NaN")
DTYPES = ("float64", "float32", "int64", "int8", "uint8", "bool", "object", "float16", "longdouble", ">f4", "complex")
NOT_NUMBERS = ("text", "dates")
ARRAYS = ("array", "fortran", "strided", "reversed", "readonly", "memmap", "list", "masked", "masked objects")
FRAMES = ("pandas", "pandas nullable", "pandas categories", "polars", "pyarrow")
SPARSE = ("csr", "csc", "coo", "coo repeated", "csr unsorted")
LISTS = ("list of arrays", "list of masked", "list of lists", "list of frames", "list of polars", "list of series")
FLOATS = ("list", "list of lists", "list of series", "masked objects")  # of Python, whatever the dtype
CONTAINERS = (*ARRAYS, *FRAMES, *SPARSE, *LISTS, "list of unlike frames")
FRAMED = (*FRAMES, *LISTS[3:], "list of unlike frames")  # in which text is categories
WEIGHTS = ("none", "ones", "thousandths", "zeros in part", "1e-8 to 1e8", "1e16", "1e155", "1e200", "1e-200", "1e300")
WRONG_WEIGHTS = ("negative", "NaN", "too few", "all zero", "infinite sum")
LENGTHS = ("one", "ragged", "single steps", "none given")
WRONG_LENGTHS = ("wrong sum", "zero", "negative", "fractional", "text", "empty")
INITS = {
    "Mixture": ("one", "k-means++", "random", "k-means", "permutation"),
    "TopicModel": ("random", "k-means++", "anchor"),
    "HMM": ("one", "blocks"),
}
GIVEN_INITS = (
    *("labels", "names", "mixed labels", "responsibilities", "model", "mixture", "other levels"),
    *("too few", "nonsense", "3"),
)
MOVES = (("birth", "merge", "delete"), (), ("merge",), ("birth",), ("delete", "merge"), ("split",))
EXTREME = (1e-300, 1e-12, 1e-3, 0.5, 1.0, 20.0, 1e3, 1e5, 1e6, 1e8, 1e12, 1e300)
WRONG = (0.0, -1.0, float("nan"), float("inf"), True, "x", None, 10**400, 2.5)
CONCENTRATIONS = {
    "Mixture": ("concentration",),
    "TopicModel": ("concentration", "document_concentration"),
    "HMM": ("concentration", "transition_concentration", "start_concentration", "stickiness"),
}
OTHERS = ("n_batches", "max_laps", "tol", "n_jobs", "random_state")
LIMITS = {
    "Mixture": "most_kept",
    "TopicModel": "restarts",
    "HMM": "n_batches",
}  # whole numbers with effects of their own
COUNTED = {"Mixture": "n_init_clusters", "TopicModel": "n_init_topics", "HMM": "n_init_states"}
ALLOCATIONS = {"Mixture": ("dp", "finite", "pitman-yor"), "TopicModel": ("hdp", "lda"), "HMM": ("hdp", "finite")}
OBJECTS = {
    "Mixture": ("DirichletProcess", "FiniteDirichlet", "PitmanYor"),
    "TopicModel": ("HierarchicalDirichletProcess", "LatentDirichlet"),
    "HMM": ("HDPMarkovChain", "FiniteMarkovChain"),
}
SIZES = (60, 10, 3, 2, 1, 40, 300)
WIDTHS = (2, 1, 5, 3, 30)


@dataclass(frozen=True)
class Case:
    """One fit.  ``parameters`` and ``hyperparameters`` are (name, value) pairs; ``object`` names an allocation object."""

    estimator: str = "Mixture"
    likelihood: str = "gaussian"
    allocation: str = ""
    algorithm: str = "memoized"
    init: str = ""
    n_init: int = 4
    laps: int = 6
    moves: tuple[str, ...] = MOVES[0]
    moves_as: str = "tuple"
    domain: str = "own"
    values: str = "blobs"
    n: int = 60
    d: int = 2
    dtype: str = "float64"
    container: str = "array"
    read_as: str = "same"
    missing: str = "none"
    weights: str = "none"
    lengths: str = "none given"
    learns: bool = False
    parameters: tuple[tuple[str, Any], ...] = ()
    hyperparameters: tuple[tuple[str, Any], ...] = ()
    seed: int = 0

    @property
    def holds(self) -> str:
        """What the columns hold: reals, bits, codes, counts, durations, or a mixture of them."""
        return DOMAIN.get(self.likelihood, "reals") if self.domain == "own" else self.domain

    @property
    def plain(self) -> "Case":
        """The same fit to the same values in the plainest container that the library could get them in."""
        sparse = self.container in SPARSE
        return replace(self, container="csr" if sparse else "array", moves_as="tuple", read_as="same")


def mostly(usual: tuple, rare: tuple, odds: int = 6):
    """One of the usual values, rarely one of the others; shrinks to the first."""
    return st.integers(0, odds).flatmap(lambda n: st.sampled_from(usual if n < odds or not rare else rare))


def _pairs(names: tuple[str, ...], values) -> st.SearchStrategy:
    return st.sampled_from(names).flatmap(lambda name: st.tuples(st.just(name), values))


def _parameters(estimator: str) -> st.SearchStrategy:
    """Seldom more than one parameter out of the ordinary."""
    extreme = _pairs(CONCENTRATIONS[estimator], st.sampled_from(EXTREME))
    learnt = _pairs(CONCENTRATIONS[estimator], st.just("learn"))
    wrong = _pairs((*CONCENTRATIONS[estimator], *OTHERS, COUNTED[estimator], LIMITS[estimator]), st.sampled_from(WRONG))
    few = st.tuples(st.just("n_batches"), st.sampled_from((1, 3, 70)))
    limit = st.tuples(st.just(LIMITS[estimator]), st.sampled_from((1, 2, 25)))
    one = st.tuples(st.one_of(extreme, extreme, few, limit, learnt, wrong))
    two = st.tuples(extreme, few)
    return st.one_of(st.just(()), st.just(()), one, st.tuples(extreme), two)


def _hyperparameters(likelihood: str) -> st.SearchStrategy:
    names = HYPERPARAMETERS.get(likelihood)
    if names is None:
        return st.just(())
    pair = _pairs(names, st.sampled_from((*EXTREME, *WRONG)))
    return st.integers(0, 7).flatmap(lambda n: st.just(()) if n < 7 else st.tuples(pair))


@st.composite
def fits(draw, estimator: str, likelihood: str | None = None) -> Case:
    """Mostly ordinary in most respects, so that most runs get far."""
    if likelihood is None:
        words = estimator == "TopicModel" and draw(st.booleans())
        taken = [name for name in LIKELIHOODS if estimator == "Mixture" or name not in OF_ROWS]
        likelihood = "multinomial" if words else draw(st.sampled_from(taken))
    containers = [*ARRAYS, *FRAMES, *(LISTS if estimator == "HMM" else ())]
    if likelihood in ("multinomial", "poisson", "bernoulli", "auto"):
        containers += 2 * SPARSE
    groups = estimator == "TopicModel" and likelihood != "multinomial"
    return Case(
        estimator=estimator,
        likelihood=likelihood,
        allocation=draw(mostly(ALLOCATIONS[estimator], OBJECTS[estimator], 3)),
        algorithm=draw(mostly(("memoized", "full"), ("stochastic",), 4)),
        init=draw(mostly(INITS[estimator], GIVEN_INITS, 4)),
        n_init=draw(st.sampled_from((4, 1, 2, 9))),
        laps=draw(mostly((6,), (40,), 8)),
        moves=draw(mostly(MOVES[:2], MOVES[2:], 5)),
        moves_as=draw(mostly(("tuple",), ("list", "iterator", "set", "text"), 9)),
        domain=draw(mostly(("own",), ("reals", "bits", "codes", "counts", "durations", "mixed"), 9)),
        values=draw(mostly(VALUES[:2], VALUES[2:], 2)),
        n=draw(st.sampled_from(SIZES)),
        d=draw(st.sampled_from(WIDTHS)),
        dtype=draw(mostly(("float64",), (*DTYPES[1:], *DTYPES[1:], "float32", "float32", *NOT_NUMBERS), 2)),
        container=draw(mostly(("array",), tuple(containers), 2)),
        read_as=draw(mostly(("same",), ("array", "list", "pandas", "polars", "narrower", "wider"), 7)),
        missing=draw(mostly(("none",), ("some", "a column", "a row", "all"), 5)),
        weights="none" if estimator != "Mixture" else draw(mostly(("none",), (*WEIGHTS[1:], *WRONG_WEIGHTS), 3)),
        lengths=draw(mostly(LENGTHS[: 3 if groups else 4], WRONG_LENGTHS, 9))
        if estimator == "HMM" or groups
        else "none given",
        learns=draw(mostly((False,), (True,), 4)),
        parameters=draw(_parameters(estimator)),
        hyperparameters=draw(_hyperparameters(likelihood)),
        seed=draw(st.integers(0, 999)),
    )
