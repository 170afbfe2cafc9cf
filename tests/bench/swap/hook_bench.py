#!/usr/bin/python3
"""What tierpilot.swap costs a PyTorch program for each saved tensor and its way back, where nothing
leaves.

    hook_bench.py MODULES LIBRARY
"""
import contextlib
import os
import sys
import time

os.environ["TIERPILOT_SWAP_LIBRARY"] = sys.argv[2]
sys.path.insert(0, sys.argv[1])

import tierpilot  # noqa: E402
import torch  # noqa: E402

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


def main():
    swap = tierpilot.swap(1 << 40, "none", "memory=64MiB")
    plain, hooked = [], []
    for _ in range(ROUNDS):  # in turn, as machines are busy
        plain.append(seconds(contextlib.nullcontext()))
        hooked.append(seconds(swap))
    costs = [
        (min(column) - min(other)) / TENSORS * 1e6 for column, other in zip(zip(*hooked), zip(*plain))
    ]
    print(f"SAVED us  BACK us\n{costs[0]:<8.1f}  {costs[1]:.1f}")


if __name__ == "__main__":
    main()
