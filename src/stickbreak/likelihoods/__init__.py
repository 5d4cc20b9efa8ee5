"""Likelihoods: one exponential family and its conjugate prior per file."""

from ._base import Array, Likelihood
from ._columns import IndependentColumns
from ._dust import Dust
from ._gamma import log_gamma_ratio
from ._hyperparameters import column_values, positive_values, require
from ._latent import Latent
from ._profile import Profile
from ._sample import Sample
from .autoregressive_gaussian import AutoregressiveGaussian
from .background import Background
from .bernoulli import Bernoulli
from .categorical import Categorical
from .diagonal_gaussian import DiagonalGaussian
from .dirichlet import Dirichlet
from .exponential import Exponential, Gamma
from .gaussian import Gaussian
from .gaussian_network import GaussianNetwork
from .known_covariance_gaussian import KnownCovarianceGaussian
from .labelled import Labelled
from .linear_regression import LinearRegression
from .linked import Linked
from .log_scale import LogScale
from .multinomial import Multinomial
from .poisson import Poisson
from .product import Product
from .seeded import Seeded
from .spherical_gaussian import SphericalGaussian
from .student_t import StudentT
from .zero_mean_gaussian import ZeroMeanGaussian

REGISTRY: dict[str, type[Likelihood]] = {
    "autoregressive_gaussian": AutoregressiveGaussian,
    "background": Background,
    "bernoulli": Bernoulli,
    "categorical": Categorical,
    "diagonal_gaussian": DiagonalGaussian,
    "dirichlet": Dirichlet,
    "exponential": Exponential,
    "gamma": Gamma,
    "gaussian": Gaussian,
    "gaussian_network": GaussianNetwork,
    "known_covariance_gaussian": KnownCovarianceGaussian,
    "linear_regression": LinearRegression,
    "log_scale": LogScale,
    "multinomial": Multinomial,
    "poisson": Poisson,
    "spherical_gaussian": SphericalGaussian,
    "student_t": StudentT,
    "zero_mean_gaussian": ZeroMeanGaussian,
}

__all__ = [
    "REGISTRY",
    "Array",
    "AutoregressiveGaussian",
    "Background",
    "Bernoulli",
    "Categorical",
    "DiagonalGaussian",
    "Dirichlet",
    "Dust",
    "Exponential",
    "Gamma",
    "Gaussian",
    "GaussianNetwork",
    "IndependentColumns",
    "KnownCovarianceGaussian",
    "Labelled",
    "Latent",
    "Likelihood",
    "LinearRegression",
    "Linked",
    "LogScale",
    "Multinomial",
    "Poisson",
    "Product",
    "Profile",
    "Sample",
    "Seeded",
    "SphericalGaussian",
    "StudentT",
    "ZeroMeanGaussian",
    "column_values",
    "log_gamma_ratio",
    "positive_values",
    "require",
]
