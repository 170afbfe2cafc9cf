"""Measures two trainings beside each other: what each keeps of its iterations per CPU second.

A share is enforced, so that iterations per second say how large it is; iterations per second of CPU
time say what a neighbour takes beyond it: caches, memory bandwidth.
"""

import random
import signal
import statistics
import sys
import time

from .measure import own_s
from .running import RunningTraining

ROUNDS = 5
_SETTLE_S = 0.05  # after a change, before anything counts
_FEWEST = 3  # iterations in a phase
_LONGEST = 6  # times the wanted seconds, until there are as many
_OF_JOB = """model architecture_seed batch milli memory_bytes traffic_bytes_s alone together
    spread""".split()
GPU_OF_JOB = [*_OF_JOB, "traced_milli"]


class _Sums:
    def __init__(self):
        self.iterations = self.cpu_s = self.wall_s = 0
        self.rates = []

    def add(self, before, after, wall_s):
        iterations, cpu_s = after[0] - before[0], after[1] - before[1]
        self.wall_s += wall_s
        if iterations > 0 and cpu_s > 0:
            self.iterations += iterations
            self.cpu_s += cpu_s
            self.rates.append(iterations / cpu_s)

    def rate(self):
        # The middle of the rounds: a burst of other work on the machine spoils one of them.
        if not self.rates:
            raise RuntimeError("too slow: no iterations in its time")
        return statistics.median(self.rates)


def _phase(running, seconds):
    """What those that run do, and for how long; everybody else stands still."""
    for training in running:
        training.signal(signal.SIGCONT)
    time.sleep(_SETTLE_S)
    before, began = [training.counts() for training in running], time.monotonic()
    waited_s = running[0].waited_s()
    while True:
        time.sleep(seconds / 4)
        for training in running:
            training.check_lives()
        wall_s = time.monotonic() - began
        after = [training.counts() for training in running]
        done = all(now[0] - then[0] >= _FEWEST for now, then in zip(after, before))
        if (done and wall_s >= seconds) or wall_s >= _LONGEST * seconds:
            break
    for training in running:
        training.signal(signal.SIGSTOP)
    # What others took of the core is no time of one that runs alone.
    ahead_s = running[0].loaded_ahead_s(after[0][0] - before[0][0])
    return before, after, max(own_s(wall_s, running[0].waited_s() - waited_s, ahead_s), wall_s / 10)


def measure_pair(one, other, cpus, seconds, limit_s):
    """Cells of each of the two (architecture, seed). RuntimeError: one of them failed."""
    trainings = []
    try:
        for (architecture, seed), cpu in zip((one, other), cpus):
            trainings.append(RunningTraining(architecture, seed, cpu, limit_s))
            trainings[-1].warm_up()
            trainings[-1].signal(signal.SIGSTOP)
        return _measured(trainings, seconds)
    finally:
        for training in trainings:
            training.end()


def _measured(trainings, seconds):
    alone, together = [_Sums(), _Sums()], [_Sums(), _Sums()]
    # In turn, so that a machine that becomes slower does so for both.
    for _ in range(ROUNDS):
        for i, training in enumerate(trainings):
            (before,), (after,), wall_s = _phase([training], seconds)
            alone[i].add(before, after, wall_s)
        before, after, wall_s = _phase(trainings, seconds)
        for i in range(2):
            together[i].add(before[i], after[i], wall_s)
    return [_cells(training, *sums) for training, *sums in zip(trainings, alone, together)]


def _cells(training, alone, together):
    return {
        "model": training.architecture,
        "architecture_seed": training.seed,
        "batch": training.card["batch"],
        "milli": round(min(1000, 1000 * alone.cpu_s / alone.wall_s), 1),
        "memory_bytes": int(training.counts()[2]),
        "traffic_bytes_s": training.card["traffic_bytes"] * alone.rate(),
        "alone": alone.rate(),
        "together": together.rate(),
        # Of single rounds alone, as a part: what one measurement may be off by.
        "spread": statistics.stdev(alone.rates) / alone.rate() if len(alone.rates) > 1 else 0,
    }


def drawn_pairs(chosen, given):
    """(seed, (architecture, seed) of one, of the other) of each that is wanted: the same for the same seed."""
    random_ = random.Random(f"pairs {given.seed}")
    for i in range(given.configurations):
        seed = given.seed * 100_000 + i
        yield seed, *((random_.choice(chosen), 2 * seed + job) for job in range(2))


def columns(of_job=tuple(_OF_JOB)):
    return ["card", "seed"] + [f"{name}_{job}" for job in "ab" for name in of_job]


def pair_row(card, seed, cells, of_job=tuple(_OF_JOB)):
    """In the order of columns(), of the cells of each of the two."""
    return [card, seed, *(each[name] for each in cells for name in of_job)]


def tell_pair_left_out(one, other, error):
    print(f"left out: {one[0]} beside {other[0]}: {error}", file=sys.stderr)


def tell_pairs_progress(ended, given, one, other):
    if sys.stderr.isatty():
        print(f"\r{ended}/{given.configurations} {one[0]} beside {other[0]:20}", end="", file=sys.stderr)


def collect_pairs(chosen, given, limit_s, cpu, beside, write):
    """Rows of drawn pairs go to `write`: on one core or, where there is another one beside it, on
    two. How many were left out."""
    failed = 0
    for i, (seed, one, other) in enumerate(drawn_pairs(chosen, given)):
        # Every third on cores of their own, where there are two.
        apart = beside is not None and i % 3 == 2
        try:
            cells = measure_pair(one, other, (cpu, beside if apart else cpu), given.seconds, limit_s)
        except RuntimeError as error:
            failed += 1
            tell_pair_left_out(one, other, error)
            continue
        write(pair_row("two cores" if apart else "one core", seed, cells))
        tell_pairs_progress(i + 1, given, one, other)
    return failed
