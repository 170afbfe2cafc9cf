#!/usr/bin/python3
"""What tierpilot.swap costs a PyTorch program for each saved tensor and its way back, where nothing
leaves.

    hook_bench.py MODULES LIBRARY
"""
import contextlib
import os
import sys
import time
from statistics import median

os.environ["TIERPILOT_SWAP_LIBRARY"] = sys.argv[2]
sys.path.insert(0, sys.argv[1])

import tierpilot  # noqa: E402
import torch  # noqa: E402
from torch.autograd.graph import saved_tensors_hooks  # noqa: E402

TENSORS, ROUNDS = 300, 40
torch.set_num_threads(1)


def seconds(around):
    x = torch.full((1 << 14,), 1e-3, requires_grad=True)  # 64 KiB, the least that is taken
    begin = time.perf_counter()
    with around:
        y = x
        for _ in range(TENSORS):
            y = y.sigmoid()
    middle = time.perf_counter()
    y.sum().backward()
    return middle - begin, time.perf_counter() - middle


class Idle(saved_tensors_hooks):
    """Hooks that do nothing, to be entered again and again."""

    def __init__(self):
        super().__init__(lambda tensor: tensor, lambda tensor: tensor)


def main():
    ways = {"no hooks": contextlib.nullcontext(), "idle hooks": Idle(), "swap": tierpilot.swap(1 << 40, "none", "memory=64MiB")}
    taken = {name: [] for name in ways}
    for _ in range(ROUNDS):  # in turn, as machines are busy
        for name, way in ways.items():
            taken[name].append(seconds(way))
    least, middle = ({name: [of(column) for column in zip(*rows)] for name, rows in taken.items()} for of in (min, median))
    print(f"{'a tensor, us (least)':<20}  {'saved':>12}  {'back':>12}")
    for name in list(ways)[1:]:
        costs = [
            [(one - none) / TENSORS * 1e6 for one, none in zip(of[name], of["no hooks"])] for of in (middle, least)
        ]
        print(f"{name:<20}", *(f" {typical:5.1f} ({lowest:.1f})" for typical, lowest in zip(*costs)))


if __name__ == "__main__":
    main()
