"""The attackers that fit: one per estimator."""

from .attacker import Attacker
from .cases import ESTIMATORS, Case, fits
from .verdict import run

ATTACKERS = [Attacker(f"fits of {name}", fits(name), run, {"Case": Case}) for name in ESTIMATORS]
