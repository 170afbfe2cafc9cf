#!/usr/bin/python3
"""What tierpilot.swap costs while it learns a step, and afterwards, where all would fit into the budget: texts of many lengths, each
of which is a kind of step of its own, and a loop whose many small saved tensors lie in the C library's memory.

    first_steps.py MODULES LIBRARY [--lengths N] [--rounds N] [--cells N]

Steps of plain training and of this take turns, in one process; the C library's memory is kept as this has it for both.
"""
import argparse
import contextlib
import os
import statistics
import sys
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("modules")
parser.add_argument("library")
parser.add_argument("--lengths", type=int, default=36)
parser.add_argument("--rounds", type=int, default=6, help="of all lengths")
parser.add_argument("--cells", type=int, default=400)
chosen = parser.parse_args()
os.environ["TIERPILOT_SWAP_LIBRARY"] = chosen.library
sys.path.insert(0, chosen.modules)

import tierpilot  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

LEARNS = 3  # steps of a kind
torch.set_num_threads(1)


class Texts:
    name = f"{chosen.lengths} lengths of text"

    def __init__(self):
        layer = nn.TransformerEncoderLayer(64, 4, 256, dropout=0, batch_first=True)
        self.model = nn.TransformerEncoder(layer, 12)

    def steps(self):
        return [64 + i for _ in range(chosen.rounds) for i in range(chosen.lengths)]

    def loss(self, length):
        return self.model(torch.ones(8, length, 64)).square().mean()


class Cells:
    name = f"a loop of {chosen.cells} cells"

    def __init__(self):
        self.model = nn.ParameterList(nn.Parameter(torch.randn(512, 512) * 0.03) for _ in range(2))

    def steps(self):
        return [None] * 8

    def loss(self, _):
        gate, weight = self.model
        state = torch.zeros(64, 512)
        for _ in range(chosen.cells):
            x = torch.ones(64, 512)
            z = torch.sigmoid(x @ gate + state @ gate)
            state = z * state + (1 - z) * torch.tanh(x + state @ weight)
        return state.square().mean()


def seconds(training, kind, around):
    training.model.zero_grad()
    begin = time.perf_counter()
    with around:
        loss = training.loss(kind)
    loss.backward()
    return time.perf_counter() - begin


def main():
    swap = tierpilot.swap("8GiB", tiers="memory=4GiB")
    print("| training | plain, s a step | first step, to plain (least-most) | second and third | afterwards |\n|---|---|---|---|---|")
    for make in (Cells, Texts):
        training, seen, ratios, plain = make(), {}, ([], [], []), []
        for kind in training.steps():
            plain.append(seconds(training, kind, contextlib.nullcontext()))
            swapped = seconds(training, kind, swap)
            seen[kind] = seen.get(kind, 0) + 1
            ratios[(seen[kind] > 1) + (seen[kind] > LEARNS)].append(swapped / plain[-1])
        told = [f"{statistics.median(each):.2f} ({min(each):.2f}-{max(each):.2f})" for each in ratios]
        print(f"| {training.name} | {statistics.median(plain):.2f} | {' | '.join(told)} |", flush=True)


if __name__ == "__main__":
    main()
