"""The largest batch that trains within the budget: tried, not reckoned."""

from race import start

_STEPS = 3  # a plan is there from the second one on


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
    """`attempt(batch)` is what `try_steps` says. It ends so `close` to a batch that fails, or after `most_tries`;
    `first` is tried where nothing is known."""

    def __init__(self, budget, attempt, first=None, stride=4, close=1.04, most_tries=5):
        self.budget, self.attempt, self.first = budget, attempt, first
        self.stride, self.close, self.most_tries = stride, close, most_tries

    def run(self, fits, fails, needs, fixed, over=lambda: False):
        """`fits` is a batch that is known to fit, or 0; it takes `needs` bytes, `fixed` of them
        whatever the batch. `fails`: one that is known not to, or None. No try begins once it is `over`. The
        largest that was found to fit."""
        for _ in range(self.most_tries):
            batch = self._next(fits, fails, needs, fixed)
            if batch is None or over():
                break
            good, took = self.attempt(batch)
            if good:
                fits, needs = batch, took
            else:
                fails = batch
        return fits

    def _next(self, fits, fails, needs, fixed):
        stride = self.stride
        if fails is not None and (fails <= fits * self.close or fails - fits <= stride):
            return None
        most = fails - stride if fails is not None else None
        if needs > fixed:  # what it takes grows with the batch
            guess = fits * (self.budget - fixed) / (needs - fixed) * 0.97
        elif fails is None:
            guess = 2 * fits or self.first
        else:
            guess = fails / 2
        if most is not None and guess > most:
            guess = (fits + fails) / 2
        least = max(fits // stride + 1, round(fits * self.close / stride))
        batch = max(round(guess / stride), least) * stride
        return batch if most is None else min(batch, most)


def search(policy, options, view, deadline, fits, needs, fixed):
    """Of a policy of the race; `fits` as there."""

    def attempt(batch):
        settings = {"blocks": options.blocks, "batch": batch, "budget": options.budget}
        good, took = try_steps(start(policy, options, settings).child, _STEPS)
        view.tried(policy, batch, good)
        return good, took

    fails = None if fits else options.batch
    return Search(options.budget, attempt).run(fits, fails, needs, fixed, deadline.passed)
