#!/usr/bin/python3
"""What the library's heap brings beside a DataLoader that forks workers while a net trains within a budget: a child that is forked
has pages in common with its parent, which writes to them anew.

    worker_bench.py MODULES LIBRARY [--budget SIZE] [--epochs N] [--tiers LIST]

Each way in a process of its own, in turn. Medians of all steps but those of the first epoch, and the most faults of one.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

BATCH, BATCHES = 64, 12
WAYS = [(workers, heap) for workers in (0, 2) for heap in ("0", "1")]


def pictures(torch):
    class Pictures(torch.utils.data.Dataset):
        def __len__(self):
            return BATCH * BATCHES

        def __getitem__(self, number):
            return torch.randn(3, 32, 32, generator=torch.Generator().manual_seed(number)), number % 10

    return Pictures()


def net(torch):
    def block(width):
        return [torch.nn.Conv2d(width, width, 3, padding=1), torch.nn.BatchNorm2d(width), torch.nn.ReLU()]

    layers = [layer for _ in range(8) for layer in block(32)]
    return torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3, padding=1), *layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
                               torch.nn.Linear(32, 10))


def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def train(options, workers):
    import torch

    import tierpilot

    torch.set_num_threads(1)
    torch.manual_seed(1)
    model, data = net(torch), pictures(torch)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    swap = tierpilot.swap(options.budget, tiers=options.tiers)
    steps = []
    for _ in range(options.epochs):
        for x, y in torch.utils.data.DataLoader(data, BATCH, num_workers=workers):
            begin, before = time.perf_counter(), faults()
            with swap:
                loss = torch.nn.functional.cross_entropy(model(x), y)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            steps.append((time.perf_counter() - begin, faults() - before))
    seconds, counts = zip(*steps[BATCHES:])
    print(json.dumps({"ms": statistics.median(seconds) * 1e3, "faults": statistics.median(counts), "most": max(counts), "loss": loss.item()}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules")
    parser.add_argument("library")
    parser.add_argument("--budget", default="300MiB")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--tiers", default="dir:/var/tmp=4GiB")
    parser.add_argument("--train", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ["TIERPILOT_SWAP_LIBRARY"] = options.library
    sys.path.insert(0, options.modules)
    if options.train is not None:
        return train(options, options.train)
    print("| workers | heap | step ms | faults a step | most |\n|---|---|---|---|---|")
    losses = set()
    for workers, heap in WAYS:
        ran = subprocess.run([sys.executable, "-W", "ignore", __file__, *sys.argv[1:], "--train", str(workers)],
                             env={**os.environ, "TIERPILOT_SWAP_HEAP": heap}, stdout=subprocess.PIPE, text=True)
        if ran.returncode != 0:
            return ran.returncode
        said = json.loads(ran.stdout)
        losses.add(said["loss"])
        print(f"| {workers} | {'yes' if heap == '1' else 'no'} | {said['ms']:.0f} | {said['faults']:.0f} | {said['most']} |", flush=True)
    return 0 if len(losses) == 1 else f"losses differ: {losses}"


if __name__ == "__main__":
    sys.exit(main())
