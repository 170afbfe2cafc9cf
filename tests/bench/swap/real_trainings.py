"""Trainings of one of the published nets within its budget, each in a process of its own: what real_nets.py measures."""
import dataclasses
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
POLICIES = ["plain", "swap-all", "capuchin", "swap", "swap-activations", "q-published", "vdnn", "checkpoint"]
# What the library's heap brings: swapping without it, and training in which nothing leaves, without a budget, with it.
HEAP = ["swap-malloc", "heap"]
MEANT = {
    "swap-activations": {"policy": "swap", "states": False},  # the optimiser's states stay
    "swap-malloc": {"policy": "swap", "heap": "0"},
    "heap": {"policy": "none", "budget": 1 << 40},
}
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


def run_race(reference, racer, turns):
    """Steps in turn, who is first too. No third training: what its step has left to be written to a disk slows the next one, whoever
    that is of."""
    for turn in range(turns):
        for one in (racer, reference) if turn % 2 == 0 else (reference, racer):
            said = one.child.ask("step")
            if said is None and one is reference:
                sys.exit(f"error: plain training without a budget: {reference.child.failed}")
            if said is None:
                return
            one.steps.append({**said, "peak": one.child.last_peak_bytes})


def speed_at(bench, batch, policy, turns, say):
    """A policy's row: its speed to that of plain training without a budget."""
    start = bench.unbounded if policy == "heap" else bench.start
    reference, racer = bench.unbounded("plain", batch), start(policy, batch)
    run_race(reference, racer, turns)
    row = _row(racer, reference)
    say(f"{bench.net.name} {policy} at {batch}: {row}")
    for one in (reference, racer):
        one.child.end()
    return row


def _row(racer, reference):
    row = {"fits": racer.fits, "peak_bytes": racer.child.peak_bytes, "steps": len(racer.steps)}
    if not racer.fits:
        return {**row, "failed": racer.child.failed}
    curve = _curve(racer, reference)
    ratios = [1 / relative for relative in curve[WARM:]]
    digests = [(step["gradients"], step["loss"]) for step in reference.steps]
    row.update(
        speed=statistics.median(ratios),
        least=min(ratios),
        most=max(ratios),
        curve=curve,
        plain_seconds=statistics.median(step["seconds"] for step in reference.steps[WARM:]),
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


def _curve(racer, reference):
    return [ours["seconds"] / plain["seconds"] for ours, plain in zip(racer.steps, reference.steps)]


def curve_at(bench, batch, policy, turns):
    """From a cold start, of who is not ended: each step's time to plain's beside it, and whether it was over the budget."""
    reference, racer = bench.unbounded("plain", batch), bench.unbounded(policy, batch)
    run_race(reference, racer, turns)
    for one in (reference, racer):
        one.child.end()
    return {"relative_time": _curve(racer, reference), "over_budget": [step["peak"] > bench.budget for step in racer.steps]}
