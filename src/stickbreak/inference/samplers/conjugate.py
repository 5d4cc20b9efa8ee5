"""Which models have marginal likelihoods of sets of rows, so that clusters can be drawn or born row by row."""

from ...data import ArraySource
from ...model import Model


def require_no_latent(model: Model, algorithm: str) -> None:
    """Refuse a likelihood with latent variables, whose log marginals are not those of rows alone.

    Raises
    ------
    ValueError
        If the rows of the model have latent variables.
    """
    likelihood = model.likelihood
    if likelihood.hidden is not None:
        family = type(likelihood).__name__
        needs = f"algorithm={algorithm}(...) needs a conjugate likelihood"
        if likelihood.cells is not None:
            raise ValueError(f"{needs}, but to a {family} missing values are latent; use DiagonalGaussian.")
        raise ValueError(
            f"{needs}, but each row of a {family} has a latent variable; use Gaussian, or DiagonalGaussian."
        )


def require_conjugate(model: Model, algorithm: str) -> None:
    """Refuse a likelihood whose log marginals of hard assignments are only bounds.

    Raises
    ------
    ValueError
        If the rows of the model have latent variables, or its prior is not conjugate.
    """
    require_no_latent(model, algorithm)
    if not model.likelihood.conjugate:
        family = type(model.likelihood).__name__
        raise ValueError(
            f"algorithm={algorithm}(...) needs the marginal likelihood of a cluster, of which a {family} has a lower bound; "
            'use algorithm="memoized", or "sequential".'
        )


def require_single_rows(source: ArraySource, algorithm: str) -> None:
    """Refuse weights of rows: a cluster is drawn for each.

    Raises
    ------
    ValueError
        If a weight is not one.
    """
    if source.weights is not None and not (source.weights == 1.0).all():
        raise ValueError(
            f"sample_weight must be 1 for every row with algorithm={algorithm}(...), which draws a cluster for each; repeat "
            'rows instead, or use algorithm="memoized".'
        )
