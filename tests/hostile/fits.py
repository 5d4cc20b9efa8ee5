"""The attackers that fit: one per estimator."""

from .attacker import Attacker
from .cases import ESTIMATORS, Case, fits
from .verdict import run

SECONDS = 120.0  # of a case, which is up to eight fits; documents of 1e10 words each keep births at work for ten seconds a fit
ATTACKERS = [Attacker(f"fits of {name}", fits(name), run, {"Case": Case}, SECONDS) for name in ESTIMATORS]
