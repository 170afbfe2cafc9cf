#!/usr/bin/python3
"""What it brings that states of optimisers may leave memory, and what it costs: nets trained plainly, with swapping in which
they stay, and with swapping as it is, each in a process of its own, in turn, as machines are busy. Prints a table, costliest first.

    states_bench.py MODULES LIBRARY [--rounds N] [--tiers LIST] [NET...]

Peak is the private memory of the process after twenty steps, as seen from outside; a step's time is the median of its
process. Rows have the median over rounds, with the least and the most.
"""
import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

WARM, STEPS = 20, 8
WAYS = ["plain", "states stay", "swap"]


def perceptron(torch):
    model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(8)])
    return model, torch.optim.Adam(model.parameters(), 1e-4), lambda: torch.randn(64, 2048)


def embedding(torch):
    model = torch.nn.Sequential(torch.nn.Embedding(300_000, 128), torch.nn.Flatten(), torch.nn.Linear(32 * 128, 64))
    return model, torch.optim.Adam(model.parameters(), 1e-3), lambda: torch.randint(300_000, (128, 32))


def convolutions(torch):
    def block(width):
        return [torch.nn.Conv2d(width, width, 3, padding=1), torch.nn.BatchNorm2d(width), torch.nn.ReLU()]

    layers = [layer for _ in range(8) for layer in block(32)]
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3, padding=1), *layers, torch.nn.AdaptiveAvgPool2d(1),
                                torch.nn.Flatten(), torch.nn.Linear(32, 10))
    return model, torch.optim.Adam(model.parameters(), 1e-3), lambda: torch.randn(64, 3, 32, 32)


# With the share of the plain peak that is allowed.
NETS = {"perceptron": (perceptron, 0.75), "embedding": (embedding, 0.7), "convolutions": (convolutions, 0.7)}


def train(net, way, budget, tiers):
    """Says each step's seconds, and at the end what swapping counted, a JSON value a line."""
    import torch

    from tierpilot.swapping import Swap

    torch.set_num_threads(1)
    torch.manual_seed(1)
    model, optimiser, batch = NETS[net][0](torch)
    swap = Swap(budget, tiers=tiers, states=False if way == "states stay" else None) if way != "plain" else None
    for _ in range(WARM + STEPS):
        begin = time.perf_counter()
        with swap or contextlib.nullcontext():
            loss = model(batch()).square().sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        print(time.perf_counter() - begin, flush=True)
    print(json.dumps(loss.item()))


def resident(pid):
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/statm", encoding="ascii") as file:
        _, all_pages, shared, *_ = file.read().split()
        return (int(all_pages) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
    return 0


def measure(options, net, way, budget):
    """(seconds of a step, peak bytes, loss)"""
    command = [sys.executable, __file__, options.modules, options.library, "--train", net, way, str(budget), options.tiers]
    peak = 0
    with tempfile.TemporaryFile("w+") as said, subprocess.Popen(command, stdout=said) as child:
        while child.poll() is None:
            if os.pread(said.fileno(), 4096, 0).count(b"\n") >= WARM:
                peak = max(peak, resident(child.pid))
            time.sleep(0.002)
        said.seek(0)
        lines = said.read().split()
        if child.returncode != 0 or len(lines) != WARM + STEPS + 1:
            sys.exit(f"{net} with {way} failed: {lines}")
    return statistics.median(map(float, lines[WARM:-1])), peak, lines[-1]


def spread(values, digits=0):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def rows_of(options, net):
    _, most, _ = measure(options, net, "plain", 0)
    budget = int(NETS[net][1] * most)
    seen = {way: [] for way in WAYS}
    for _ in range(options.rounds):
        for way in WAYS:
            seen[way].append(measure(options, net, way, budget))
    if len({loss for rounds in seen.values() for _, _, loss in rounds}) != 1:
        sys.exit(f"{net}: losses differ")
    for way, rounds in seen.items():
        ratios = [ours[0] / plain[0] for ours, plain in zip(rounds, seen["plain"])]
        peaks = [peak / (1 << 20) for _, peak, _ in rounds]
        yield statistics.median(ratios), (
            f"| {net} | {way} | {budget >> 20 if way != 'plain' else '-'} | {spread(peaks)} "
            f"| {spread([seconds * 1e3 for seconds, _, _ in rounds])} | {spread(ratios, 2)} |"
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("modules")
    parser.add_argument("library")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tiers", default="dir:/var/tmp=4GiB")
    parser.add_argument("--train", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("nets", nargs="*", default=list(NETS))
    options = parser.parse_args()
    os.environ["TIERPILOT_SWAP_LIBRARY"] = options.library
    sys.path.insert(0, options.modules)
    if options.train:
        net, way, budget, tiers = options.train
        return train(net, way, int(budget), tiers)
    print("| net | way | budget MiB | peak MiB | step ms | step to plain's |\n|---|---|---|---|---|---|")
    for _, row in sorted((row for net in options.nets for row in rows_of(options, net)), reverse=True):
        print(row, flush=True)


if __name__ == "__main__":
    main()
