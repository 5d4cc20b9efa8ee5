"""When a change of the model is an improvement: the one definition that moves, excursions and searches share."""

WORTH = 1.0  # nats that each cluster more must gain: among many splits tried, fractions of rows nearly always gain something
ROUNDING = 1e-9  # of the numbers whose difference a gain is
LEAST = 1e-6  # nats
FORGIVEN = 5e-10  # of the bound: what a change that leaves fewer clusters may lose to rounding
NEGLIGIBLE = 0.01  # nats: what it may give back of what the bound has risen by


def accepts(gain: float, more: int, size: float, slack: float = 0.0) -> bool:
    """Whether a change raises the bound by more than rounding and what more clusters must be worth.

    Parameters
    ----------
    gain : of the bound, in nats
    more : clusters more than before, negative where there are fewer
    size : of the numbers whose difference ``gain`` is, in nats
    slack : nats that a change which leaves fewer clusters may lose (`slack_of`)
    """
    if gain > WORTH * max(0, more) + ROUNDING * abs(size) + LEAST:
        return True
    return more < 0 and gain > -slack


def slack_of(risen: float, rounding: float) -> float:
    """What a change that leaves fewer clusters may lose, in nats.

    A cluster to which no row belongs still explains the tails of all rows a little better than none.

    Parameters
    ----------
    risen : what the bound has risen by since it was last reported, which may be given back up to a hundredth of a nat
    rounding : what is within rounding of the bound
    """
    return max(min(risen, NEGLIGIBLE), rounding)
