"""The same training under each policy, beside plain training without a budget: a step of each in turn, so that a busy machine
disturbs both alike."""

import statistics

from child import Child, environment

POLICIES = ["plain", "swap-all", "capuchin", "swap"]
_WARM = 3  # steps that nothing is judged by: they are measured closely, which takes time


class Racer:
    def __init__(self, name, child):
        self.name, self.child, self.steps = name, child, []
        self.reference = None  # who it is held against

    @property
    def fits(self):
        return self.child.failed is None

    def statistics(self):
        return self.steps[-1].get("swap", {}) if self.steps else {}

    def last_stall_ms(self):
        """Of the last step; statistics count from the first one on."""
        before = self.steps[-2].get("swap", {}).get("stall_ns", 0) if len(self.steps) > 1 else 0
        return (self.statistics().get("stall_ns", 0) - before) / 1e6


def start(name, options, settings):
    made = environment(options.library, options.modules, tight=name == "plain")
    return Racer(name, Child(made, limit=options.budget, **{"policy": name, **settings}))


class Race:
    """One policy after the other: what a third training's step has left to be written to a disk would slow the next one, whoever
    that is of."""

    def __init__(self, options, view):
        self.options, self.view = options, view
        self.racers = []

    def run(self):
        settings = {"blocks": self.options.blocks, "batch": self.options.batch, "budget": self.options.budget}
        for name in POLICIES:
            racer = start(name, self.options, settings)
            made = environment(self.options.library, self.options.modules)
            racer.reference = Racer("no budget", Child(made, policy="plain", **settings))
            self.racers.append(racer)
            for turn in range(self.options.iterations):
                if racer.fits:
                    self._turn(turn, racer)
            racer.reference.child.end()

    def _turn(self, turn, racer):
        """Who is first changes: a step is faster behind one of its own."""
        for one in (racer, racer.reference) if turn % 2 == 0 else (racer.reference, racer):
            said = one.child.ask("step")
            if said:
                one.steps.append(said)
            self.view.turn(turn, one)

    @property
    def reference(self):
        return max((racer.reference for racer in self.racers), key=lambda reference: len(reference.steps))

    def end(self):
        for racer in self.racers:
            racer.child.end()

    def times(self, racer):
        return [step["seconds"] for step in racer.steps]

    def relative_speed(self, racer):
        """Of the reference's, in the median of turns."""
        pairs = list(zip(self.times(racer.reference), self.times(racer)))[_WARM:]
        return statistics.median(ours / theirs for ours, theirs in pairs) if pairs else None

    def samples_per_second(self, racer):
        times = self.times(racer)[_WARM:]
        return self.options.batch / statistics.median(times) if times else None

    def stall_ms(self, racer):
        later = [s["swap"]["stall_ns"] for s in racer.steps[_WARM - 1 :] if "swap" in s]
        return (later[-1] - later[0]) / 1e6 / (len(later) - 1) if len(later) > 1 else None

    def gradients_equal(self, racer):
        if not racer.fits or not racer.steps:
            return None
        return all(
            ours["gradients"] == plain["gradients"]
            for ours, plain in zip(racer.steps, racer.reference.steps)
        )

    def learning(self):
        swap = self.racers[POLICIES.index("swap")]
        pairs = zip(self.times(swap), self.times(swap.reference))
        return [
            {"iteration": at, "relative_time": ours / plain} for at, (ours, plain) in enumerate(pairs, 1)
        ]
