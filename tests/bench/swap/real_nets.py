#!/usr/bin/python3
"""The nets of the publication (AlexNet, VGG16, ResNet-50, Inception-v3) trained within less memory, under every policy that the
library has: the largest batch within a budget, and the speed to that of plain training of the same batch without a budget.

    real_nets.py MODULES LIBRARY PROGRAM [--json FILE] [--nets LIST] [--parts LIST] [--policies LIST]

Pictures are random, of CIFAR-10's size. Budgets are fixed here (real_trainings.py), whatever is measured. Who takes more, as seen
from outside every 2 ms or by the kernel's mark, is killed. Prints Markdown, worst row first; what FILE has already is not measured again,
so a run that was ended goes on.
"""
import argparse
import json
import os
import pathlib
import sys

import real_tables
from real_trainings import HEAP, MIB, NETS, POLICIES, WARM, Bench, curve_at, speed_at

from demo import measured_tiers

PARTS = ("largest", "double", "own", "curve")
LEARNERS = ("swap", "q-published")


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules")
    parser.add_argument("library")
    parser.add_argument("program")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path, help="read and written: every row, once it is measured")
    parser.add_argument("--nets", default=",".join(NETS))
    parser.add_argument("--parts", default=",".join(PARTS),
                        help="largest: batches; double: speed at twice plain's; own: speed at each policy's largest; curve: the learners' steps from a cold start")
    parser.add_argument("--policies", default=",".join(POLICIES), help=f"the library's, and {' and '.join(HEAP)} for what its heap brings")
    parser.add_argument("--plain", metavar="N", type=int, help="taken for plain's largest batch, which is not searched for then")
    parser.add_argument("--steps", type=int, default=3, help="of each try at a batch")
    parser.add_argument("--turns", type=int, default=27, help="of the race at twice plain's batch, the first 3 of which do not count")
    parser.add_argument("--own-turns", type=int, default=11, help="of the race at a policy's own largest batch")
    parser.add_argument("--curve-turns", type=int, default=24, help="of the learning curve")
    parser.add_argument("--threads", type=int, default=1, help="that compute; copies have their own")
    parser.add_argument("--tiers", metavar="LIST", help="as of tierpilot-swap run")
    chosen = parser.parse_args()
    for name, known in (("nets", NETS), ("parts", PARTS), ("policies", POLICIES + HEAP)):
        values = getattr(chosen, name).split(",")
        setattr(chosen, name, values)
        if not set(values) <= set(known):
            parser.error(f"--{name}: {', '.join(set(values) - set(known))} is none of {', '.join(known)}")
    if min(chosen.steps, chosen.turns - WARM, chosen.own_turns - WARM, chosen.curve_turns) < 1:
        parser.error(f"at least one step and {WARM + 1} turns are needed")
    return chosen


class Results:
    """Of all nets, in a file as soon as they are there."""

    def __init__(self, path):
        self._path = path
        self.all = {"schema": 1, "nets": {}}
        if path and path.exists():
            self.all = json.loads(path.read_text())

    def of(self, bench):
        net = self.all["nets"].setdefault(bench.net.name, {"budget_bytes": bench.budget})
        if net["budget_bytes"] != bench.budget:
            sys.exit(f"error: {self._path} has another budget for {bench.net.name}: write to another file")
        return net

    def write(self):
        if self._path:
            written = self._path.with_suffix(".new")
            written.write_text(json.dumps(self.all, indent=1) + "\n")
            os.replace(written, self._path)


def say(text):
    print(text, file=sys.stderr, flush=True)


def find_largest(bench, policies, chosen, results):
    found = results.of(bench).setdefault("largest", {})
    for policy in policies:
        if policy in found or policy == "heap":
            continue
        first = bench.net.first
        if policy != "plain":
            first = list(found.values())[-1] if len(found) > 1 else 2 * found["plain"]
        found[policy] = bench.largest_batch(policy, chosen.steps, first, say)
        results.write()


def race_double(bench, policies, chosen, results):
    net = results.of(bench)
    plain = net.get("largest", {}).get("plain")
    if not plain:
        return
    rows = net.setdefault("double", {"batch": 2 * plain, "rows": {}})["rows"]
    for policy in policies:
        if policy not in rows:
            rows[policy] = speed_at(bench, 2 * plain, policy, chosen.turns, say)
            results.write()


def race_own(bench, policies, chosen, results):
    net = results.of(bench)
    rows = net.setdefault("own", {})
    for policy in policies:
        batch = net.get("largest", {}).get(policy)
        if policy == "plain" or policy in rows or not batch:
            continue
        rows[policy] = {"batch": batch, **speed_at(bench, batch, policy, chosen.own_turns, say)}
        results.write()


def follow_learning(bench, policies, chosen, results):
    net = results.of(bench)
    plain = net.get("largest", {}).get("plain")
    if not plain:
        return
    curves = net.setdefault("curve", {"batch": 2 * plain})
    for policy in LEARNERS:
        if policy in policies and policy not in curves:
            curves[policy] = curve_at(bench, 2 * plain, policy, chosen.curve_turns)
            results.write()


def check_tiers(tiers):
    """The first one is the process's own memory: the slow tiers have to be slower, or nothing is shown."""
    own, others = tiers[0]["copy_gb_per_s"], tiers[1:]
    fastest = max(max(tier["write_gb_per_s"], tier["read_gb_per_s"]) for tier in others)
    if fastest >= own:
        say(f"warning: a slow tier is as fast as memory ({fastest:.1f} and {own:.1f} GB/s)")


def main():
    chosen = options()
    os.environ["TIERPILOT_SWAP_LIBRARY"] = chosen.library
    results = Results(chosen.json)
    tiers = measured_tiers(chosen.program)
    check_tiers(tiers)
    results.all.setdefault("tiers", []).append(tiers)
    for name in chosen.nets:
        net = NETS[name]
        bench = Bench(net, chosen.modules, chosen.library, net.budget(), chosen.threads, chosen.tiers)
        say(f"{name}: {bench.budget // MIB} MiB")
        if chosen.plain:
            results.of(bench).setdefault("largest", {})["plain"] = chosen.plain
        for part, measure in (("largest", find_largest), ("double", race_double), ("own", race_own),
                              ("curve", follow_learning)):
            if part in chosen.parts:
                measure(bench, chosen.policies, chosen, results)
    results.write()
    print(real_tables.text(results.all))


if __name__ == "__main__":
    main()
