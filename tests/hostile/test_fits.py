"""The attack in small: the same few hundred cases in every run; ``make attack`` runs as many others as there is time for."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from hostile import command_line, doors, full_disks, input_files, model_files, sparse_arrays
from hostile.cases import ESTIMATORS, LIKELIHOODS, OF_ROWS, fits
from hostile.verdict import run

PHASES = (Phase.explicit, Phase.generate, Phase.shrink)
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
MODULES = (command_line, doors, full_disks, input_files, model_files, sparse_arrays)
OTHERS = {a.name: a for module in MODULES for a in module.ATTACKERS}


def assert_ends_well(outcome):
    assert not outcome.is_finding, f"{outcome.kind}: {outcome.detail}"


PAIRS = [(e, name) for e in ESTIMATORS for name in LIKELIHOODS if e == "Mixture" or name not in OF_ROWS]


@pytest.mark.parametrize(("estimator", "likelihood"), PAIRS)
def test_a_fit_is_sound_or_refused_with_a_reason(estimator, likelihood):
    @settings(max_examples=2, phases=PHASES, suppress_health_check=SLOW)
    @given(fits(estimator, likelihood))
    def attack(case):
        assert_ends_well(run(case))

    attack()


@pytest.mark.parametrize("name", OTHERS)
def test_other_attacks_end_well(name):
    @settings(max_examples=30, phases=PHASES, suppress_health_check=SLOW)
    @given(OTHERS[name].cases)
    def attack(case):
        assert_ends_well(OTHERS[name].run(case))

    attack()
