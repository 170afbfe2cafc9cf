"""The largest batch that trains within the budget: tried, not reckoned."""

from race import start

_STEPS = 3  # a plan is there from the second one on
_MOST_TRIES = 5
_CLOSE = 1.04  # so near to a batch that fails, the search ends
_STRIDE = 4


def try_steps(child, steps):
    """(whether it trained so many steps within its limit, the bytes that it needs at least)"""
    try:
        said = None
        for _ in range(steps):
            said = child.ask("step")
            if said is None:
                return False, 0
        return True, said.get("swap", {}).get("least_bytes") or child.peak_bytes
    finally:
        child.end()


class Search:
    def __init__(self, options, view, deadline):
        self.options, self.view, self.deadline = options, view, deadline

    def run(self, policy, fits, needs, fixed):
        """`fits` is a batch that is known to fit, or 0; it takes `needs` bytes, `fixed` of them
        whatever the batch. The largest that was found to fit; None: there was no time to look for it."""
        if self.deadline.passed():
            return None
        fails = None if fits else self.options.batch
        for _ in range(_MOST_TRIES):
            batch = self._next(fits, fails, needs, fixed)
            if batch is None or self.deadline.passed():
                break
            good, took = self._try(policy, batch)
            self.view.tried(policy, batch, good)
            if good:
                fits, needs = batch, took
            else:
                fails = batch
        return fits

    def _next(self, fits, fails, needs, fixed):
        if fails is not None and (fails <= fits * _CLOSE or fails - fits <= _STRIDE):
            return None
        most = fails - _STRIDE if fails is not None else None
        if needs > fixed:  # what it takes grows with the batch
            guess = fits * (self.options.budget - fixed) / (needs - fixed) * 0.97
        else:
            guess = fails / 2
        if most is not None and guess > most:
            guess = (fits + fails) / 2
        batch = max(round(guess / _STRIDE), fits // _STRIDE + 1) * _STRIDE
        return batch if most is None else min(batch, most)

    def _try(self, policy, batch):
        options = self.options
        settings = {"blocks": options.blocks, "batch": batch, "budget": options.budget}
        return try_steps(start(policy, options, settings).child, _STEPS)
