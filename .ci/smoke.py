"""What an installation of the core alone must do: short fits of the three estimators, a file and back, a clear refusal.

python -I .ci/smoke.py         # in an empty folder; writes rows.npy and model files into it
"""

import importlib.util
from collections.abc import Callable

import numpy as np

import stickbreak
from stickbreak import HMM, Mixture, TopicModel

EXTRAS = ("matplotlib", "pandas", "polars", "pyarrow", "dask", "jinja2", "arviz", "torch")


def main() -> None:
    """Every step is asserted."""
    present = [name for name in EXTRAS if importlib.util.find_spec(name)]
    assert not present, f"the core must work without {present}"
    rng = np.random.default_rng(0)

    X = np.concatenate([rng.normal(m, 1.0, (150, 2)) for m in (-9.0, 0.0, 9.0)])
    mixture = Mixture(random_state=0).fit(X)
    assert mixture.n_clusters_ == 3
    mixture.summary()
    np.save("rows.npy", X)

    counts = rng.multinomial(50, rng.dirichlet([0.3] * 3, 200) @ np.repeat(np.eye(3), 5, axis=1) / 5)
    topics = TopicModel(random_state=0).fit(counts)
    assert topics.n_topics_ == 3

    states = np.repeat(rng.integers(3, size=40), 25)
    steps = rng.normal(10.0 * states[:, None], 1.0, (1000, 2))
    chain = HMM(random_state=0).fit(steps, lengths=[600, 400])
    assert chain.n_states_ == 3

    for name, model, rows in (("mixture", mixture, X), ("topics", topics, counts), ("hmm", chain, steps)):
        model.save(f"{name}.safetensors")
        assert stickbreak.load(f"{name}.safetensors").score(rows) == model.score(rows)
    assert "stickbreak[plot]" in refusal(mixture.plot.sizes)
    print(f"stickbreak {stickbreak.__version__} works")


def refusal(picture: Callable[[], object]) -> str:
    """What a picture says where matplotlib is missing."""
    try:
        picture()
    except ImportError as error:
        return str(error)
    raise AssertionError("a picture without matplotlib must be refused")


if __name__ == "__main__":
    main()
