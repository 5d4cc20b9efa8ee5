"""Fits that are interrupted."""

from contextlib import nullcontext

from stickbreak import HMM


class Interrupted(HMM):
    """Ctrl-C after ``verbose`` laps."""

    def _progress(self, source):
        def on_lap(lap):
            if lap.number == self.verbose:
                raise KeyboardInterrupt

        return nullcontext(on_lap)
