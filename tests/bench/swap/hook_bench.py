#!/usr/bin/python3
"""What tierpilot.swap costs a PyTorch program for each saved tensor and its way back, where nothing
leaves: its hooks in C++, those in Python, and hooks that do nothing, in turn. Medians of all rounds,
and the least and most of the processes' medians.

    hook_bench.py MODULES LIBRARY [PROCESSES]
"""
import contextlib
import json
import os
import subprocess
import sys
import time
from statistics import median

TENSORS, ROUNDS, PROCESSES = 300, 40, 5
KINDS = {"hooks in C++": "", "hooks in Python": "python"}


def seconds(torch, around):
    x = torch.full((1 << 14,), 1e-3, requires_grad=True)  # 64 KiB, the least that is taken
    begin = time.perf_counter()
    with around:
        y = x
        for _ in range(TENSORS):
            y = y.sigmoid()
    middle = time.perf_counter()
    y.sum().backward()
    return middle - begin, time.perf_counter() - middle


def measure(modules, library):
    """Microseconds a tensor more than without hooks, [saved, back] of each way."""
    os.environ["TIERPILOT_SWAP_LIBRARY"] = library
    sys.path.insert(0, modules)
    import tierpilot
    import torch
    from torch.autograd.graph import saved_tensors_hooks

    class Idle(saved_tensors_hooks):
        """To be entered again and again."""

        def __init__(self):
            super().__init__(lambda tensor: tensor, lambda tensor: tensor)

    torch.set_num_threads(1)
    ways = {"none": contextlib.nullcontext(), "idle hooks": Idle(), "swap": tierpilot.swap(1 << 40, "none", "memory=64MiB")}
    taken = {name: [] for name in ways}
    for _ in range(ROUNDS):  # in turn, as machines are busy
        for name, way in ways.items():
            taken[name].append(seconds(torch, way))
    typical = {name: [median(column) for column in zip(*rows)] for name, rows in taken.items()}
    none = typical.pop("none")
    return {name: [(one - less) / TENSORS * 1e6 for one, less in zip(of, none)] for name, of in typical.items()}


def main(modules, library, processes=PROCESSES):
    found = {}
    for _ in range(int(processes)):
        for name, kind in KINDS.items():
            told = subprocess.run([sys.executable, __file__, modules, library, "measure"], check=True, text=True,
                                  stdout=subprocess.PIPE, env={**os.environ, "TIERPILOT_SWAP_HOOKS": kind}).stdout
            of = json.loads(told)
            found.setdefault(name, []).append(of["swap"])
            found.setdefault("idle hooks", []).append(of["idle hooks"])
    print(f"{'a tensor, us':<20}  {'saved':>16}  {'back':>16}")
    for name, rows in found.items():
        print(f"{name:<20}", *(f" {median(column):5.1f} ({min(column):.1f}-{max(column):.1f})" for column in zip(*rows)))


if __name__ == "__main__":
    if sys.argv[3:] == ["measure"]:
        print(json.dumps(measure(*sys.argv[1:3])))
    else:
        main(*sys.argv[1:])
