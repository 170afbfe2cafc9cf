"""Trainings of one of the published nets within its budget, each in a process of its own: what real_nets.py measures."""
import dataclasses
import itertools
import math
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools/demo/swap"))

import largest  # noqa: E402
import race  # noqa: E402
from child import Child, environment  # noqa: E402

MIB = 1 << 20
INTERPRETER = 120 * MIB  # Python with PyTorch, before a net
POLICIES = ["plain", "swap-all", "capuchin", "swap", "swap-states", "q-published", "vdnn", "checkpoint"]
MEANT = {"swap-states": {"policy": "swap", "states": True}}  # the optimiser's states may leave too
WARM = 3  # steps that nothing is judged by: the first are measured closely, which takes time


@dataclasses.dataclass
class Net:
    """`parameters` and the `largest` of them are numbers of floats; `room` is for all but these, chosen by what one picture takes,
    before anything was run: plain training gets some tens of pictures."""

    name: str
    parameters: int
    largest: int
    room: int  # MiB
    first: int  # a batch to begin the search with

    def fixed(self):
        """Interpreter; weights, gradients and momentum; one gradient more, as a new one is made before it is added."""
        return INTERPRETER + 4 * (3 * self.parameters + self.largest)

    def budget(self):
        return (self.fixed() // MIB + self.room) // 4 * 4 * MIB


NETS = {
    net.name: net
    for net in (
        Net("alexnet", 23_272_266, 16_777_216, 32, 64),
        Net("vgg16", 14_728_266, 2_359_296, 80, 16),
        Net("resnet50", 23_520_842, 2_359_296, 128, 12),
        Net("inception_v3", 21_806_058, 1_548_288, 176, 8),
    )
}


@dataclasses.dataclass
class Bench:
    """What all trainings of a net share."""

    net: Net
    modules: str
    library: str
    budget: int
    threads: int = 1
    tiers: str | None = None
    channels_last: bool = True

    def settings(self, policy, batch):
        said = {"policy": policy, "net": self.net.name, "batch": batch, "budget": self.budget, "threads": self.threads,
                "channels_last": self.channels_last, **MEANT.get(policy, {})}
        return {**said, "tiers": self.tiers} if self.tiers else said

    def start(self, policy, batch):
        """Killed where it is over the budget."""
        return race.start(policy, self, self.settings(policy, batch))

    def unbounded(self, policy, batch):
        """Only looked at."""
        made = environment(self.library, self.modules)
        return race.Racer(policy, Child(made, **self.settings(policy, batch)))

    def largest_batch(self, policy, steps, first, say):
        """By strides that double from `first` on, then by halving, to 3 %."""

        def fits(batch):
            good, _ = largest.try_steps(self.start(policy, batch).child, steps)
            say(f"{self.net.name} {policy}: batch {batch} {'fits' if good else 'does not fit'}")
            return good

        return search(fits, first)


def search(fits, first, close=1.03):
    """The largest batch that fits, or 0; the next one that was tried is at most so `close`, or one more."""
    most, fails, batch, stride = 0, None, first, 0.04
    while batch > 0:
        if fits(batch):
            most = batch
        else:
            fails = batch
        if fails is not None and (fails - most <= 1 or fails <= most * close):
            break
        if fails is None:
            batch = math.ceil(most * (1 + stride))
        elif most == 0:
            batch = min(int(fails * (1 - stride)), fails - 1)
        else:
            batch = (most + fails) // 2
        stride = min(2 * stride, 0.5)
    return most


def run_race(reference, racers, turns):
    """Steps in turn, each racer's right before or behind one of the reference's; who fails drops out."""
    for turn in range(turns):
        running = [racer for racer in racers if racer.fits]
        at = turn % max(len(running), 1)
        order = running[at:] + running[:at]
        for first, second in itertools.zip_longest(order[::2], order[1::2]):
            _step(first)
            plain = reference.child.ask("step")
            if plain is None:
                sys.exit(f"error: plain training without a budget: {reference.child.failed}")
            reference.steps.append(plain)
            if first.fits:
                first.pairs.append(plain)
            if second:
                _step(second)
                if second.fits:
                    second.pairs.append(plain)


def _step(racer):
    said = racer.child.ask("step")
    if said:
        racer.steps.append({**said, "peak": racer.child.last_peak_bytes})


def speeds_at(bench, batch, policies, turns, say):
    """A row for each policy: its speed to that of plain training without a budget."""
    reference = bench.unbounded("plain", batch)
    racers = [bench.start(policy, batch) for policy in policies]
    for racer in racers:
        racer.pairs = []
    run_race(reference, racers, turns)
    rows = {}
    for racer in racers:
        rows[racer.name] = row = _row(racer, reference)
        say(f"{bench.net.name} {racer.name} at {batch}: {row}")
    for racer in [reference, *racers]:
        racer.child.end()
    return rows


def _row(racer, reference):
    row = {"fits": racer.fits, "peak_bytes": racer.child.peak_bytes, "steps": len(racer.steps)}
    if not racer.fits:
        return {**row, "failed": racer.child.failed}
    curve = [ours["seconds"] / plain["seconds"] for ours, plain in zip(racer.steps, racer.pairs)]
    ratios = [1 / relative for relative in curve[WARM:]]
    digests = [(step["gradients"], step["loss"]) for step in reference.steps]
    row.update(
        speed=statistics.median(ratios),
        least=min(ratios),
        most=max(ratios),
        curve=curve,
        plain_seconds=statistics.median(plain["seconds"] for plain in racer.pairs[WARM:]),
        equal=[(step["gradients"], step["loss"]) for step in racer.steps] == digests[: len(racer.steps)],
    )
    said = racer.statistics()
    if said:
        steps = max(len(racer.steps) - WARM, 1)
        before = racer.steps[WARM - 1]["swap"]
        row.update(
            stall_ms=(said["stall_ns"] - before["stall_ns"]) / 1e6 / steps,
            giving_ms=(said["giving_ns"] - before["giving_ns"]) / 1e6 / steps,
            out_mib=(said["bytes_out"] - before["bytes_out"]) / MIB / steps,
            late=(said["late"] - before["late"]) / steps,
            learning_steps=said["learning_steps"],
        )
    return row


def curves_at(bench, batch, policies, turns):
    """From a cold start, of who is not ended: each step's time to plain's beside it, and whether it was over the budget."""
    reference = bench.unbounded("plain", batch)
    racers = [bench.unbounded(policy, batch) for policy in policies]
    for racer in racers:
        racer.pairs = []
    run_race(reference, racers, turns)
    curves = {
        racer.name: {
            "relative_time": [ours["seconds"] / plain["seconds"] for ours, plain in zip(racer.steps, racer.pairs)],
            "over_budget": [step["peak"] > bench.budget for step in racer.steps],
        }
        for racer in racers
    }
    for racer in [reference, *racers]:
        racer.child.end()
    return curves
