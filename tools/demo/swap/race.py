"""The same training under each policy, step by step in turn, so that a busy machine disturbs all of
them alike."""

import statistics

from child import Child, environment

POLICIES = ["plain", "swap-all", "capuchin", "swap"]
_WARM = 3  # steps that nothing is judged by: they are measured closely, which takes time


class Racer:
    def __init__(self, name, child):
        self.name, self.child, self.steps = name, child, []

    @property
    def fits(self):
        return self.child.failed is None

    def statistics(self):
        return self.steps[-1].get("swap", {}) if self.steps else {}


def start(name, options, settings):
    made = environment(options.library, options.modules, tight=name == "plain")
    return Racer(name, Child(made, limit=options.budget, **{"policy": name, **settings}))


class Race:
    def __init__(self, options, view):
        self.options, self.view = options, view
        settings = {"blocks": options.blocks, "batch": options.batch, "budget": options.budget}
        made = environment(options.library, options.modules)
        self.reference = Racer("no budget", Child(made, policy="plain", **settings))
        self.racers = [start(name, options, settings) for name in POLICIES]

    def run(self):
        for turn in range(self.options.iterations):
            for racer in [self.reference, *self.racers]:
                failed_before = not racer.fits
                said = racer.child.ask("step")
                if said:
                    racer.steps.append(said)
                if not failed_before:
                    self.view.turn(turn, racer)

    def end(self):
        for racer in [self.reference, *self.racers]:
            racer.child.end()

    def times(self, racer):
        return [step["seconds"] for step in racer.steps]

    def relative_speed(self, racer):
        """Of the reference's, in the median of turns."""
        pairs = list(zip(self.times(self.reference), self.times(racer)))[_WARM:]
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
            for ours, plain in zip(racer.steps, self.reference.steps)
        )

    def learning(self):
        swap = self.racers[POLICIES.index("swap")]
        pairs = zip(self.times(swap), self.times(self.reference))
        return [
            {"iteration": at, "relative_time": ours / plain} for at, (ours, plain) in enumerate(pairs, 1)
        ]
