#!/usr/bin/env python3
"""The nets of the publication and a transformer within less memory of a GPU: the largest batch of each policy, and its speed beside
plain training of the same batch without a bound.

    gpu_nets.py MODULES LIBRARY [--cap 11GiB] [--device cuda:0] [--nets NAME,...] [--policies NAME,...] [--json FILE]

A training is a process of its own, whose allocator may have no more than the cap (the publication's card had 11 GiB); policies of
Tierpilot have nine tenths of it as their budget. With --device cpu nothing is bounded, and only speeds of one batch are printed.
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[3] / "tools/demo/swap"), str(HERE.parent)]
POLICIES = ("plain", "save-on-cpu", "checkpoint", "swap-all", "capuchin", "vdnn", "swap")
NETS = ("alexnet", "vgg16", "resnet50", "inception_v3", "transformer")
SIZES = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
WARM = 4  # steps that nothing is judged by: the first are measured closely, which takes time


def size_of(text):
    return int(float(text[:-3]) * SIZES[text[-3:]])


# In the process that trains


def model_and_data(torch, name, batch, device):
    torch.manual_seed(1)
    if name == "transformer":
        from nets import Transformer

        model, x = Transformer(layers=12, width=512), torch.randint(0, 1000, (batch, 256))
    else:
        import published_nets

        model, x = published_nets.NETS[name](), torch.randn(batch, 3, 32, 32)
        model, x = (part.to(memory_format=torch.channels_last) for part in (model, x))
    return model.to(device), x.to(device)


def around(torch, settings):
    """What stands around each forward pass, and how to ask for its statistics."""
    policy = settings["policy"]
    if policy == "plain":
        return contextlib.nullcontext, dict
    if policy == "save-on-cpu":
        return lambda: torch.autograd.graph.save_on_cpu(pin_memory=settings["device"] != "cpu"), dict
    import tierpilot

    swap = tierpilot.swap(settings["budget"], policy, settings["tiers"], device=settings["device"])
    return lambda: swap, swap.statistics


def train(settings):
    import torch

    gpu = settings["device"] != "cpu"
    if gpu and settings["cap"]:
        whole = torch.cuda.get_device_properties(settings["device"]).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, settings["cap"] / whole), settings["device"])
    model, x = model_and_data(torch, settings["net"], settings["batch"], settings["device"])
    optimiser = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    scope, statistics_of = around(torch, settings)
    seconds = []
    for _ in range(settings["steps"]):
        begin = time.perf_counter()
        with scope():
            loss = model(x).square().mean()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        loss.item()  # waits for the GPU
        seconds.append(time.perf_counter() - begin)
    said = statistics_of()
    peak = torch.cuda.max_memory_reserved(settings["device"]) if gpu else 0
    print(json.dumps({"seconds": seconds, "loss": loss.item(), "reserved_bytes": peak,
                      "stall_ms": said.get("stall_ns", 0) / 1e6 / settings["steps"],
                      "out_bytes": said.get("bytes_out", 0) / settings["steps"],
                      "over_budget_steps": said.get("over_budget_steps", 0)}))


# In the one that compares


class Bench:
    def __init__(self, options):
        self.options = options
        self.environment = {**os.environ, "PYTHONPATH": options.modules, "TIERPILOT_SWAP_LIBRARY": options.library}

    def run(self, net, policy, batch, steps, capped=True):
        """What it says; None: no memory."""
        cap = self.options.cap if capped else 0
        settings = {"net": net, "policy": policy, "batch": batch, "steps": steps, "device": self.options.device, "cap": cap,
                    "budget": (cap or 1 << 50) * 9 // 10, "tiers": self.options.tiers}
        done = subprocess.run([sys.executable, str(HERE), "--train", json.dumps(settings)], env=self.environment,
                              capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return json.loads(done.stdout.splitlines()[-1])
        if "out of memory" in done.stderr:
            return None
        sys.exit(f"{net} under {policy} at batch {batch} failed: {done.stderr.strip().splitlines()[-1]}")

    def largest(self, net, policy):
        """To 3 %; 0: not even one picture."""
        low, high = 0, 64
        while self.run(net, policy, high, 3) and high < 1 << 17:
            low, high = high, 2 * high
        while high - low > max(1, low // 32):
            middle = (low + high) // 2
            low, high = (middle, high) if self.run(net, policy, middle, 3) else (low, middle)
        return low

    def speed(self, net, policy, batch):
        """To plain training without a bound, in turn; None where it does not fit."""
        ratios, said = [], None
        for _ in range(self.options.rounds):
            plain = self.run(net, "plain", batch, WARM + 8, capped=False)
            said = self.run(net, policy, batch, WARM + 8)
            if not plain or not said:
                return None
            ratios.append(statistics.median(plain["seconds"][WARM:]) / statistics.median(said["seconds"][WARM:]))
        return {"speed": statistics.median(ratios), "least": min(ratios), "most": max(ratios), **said}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules")
    parser.add_argument("library")
    parser.add_argument("--cap", type=size_of, default=size_of("11GiB"))
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--tiers", help="as TIERPILOT_SWAP_TIERS; else what the library finds")
    parser.add_argument("--nets", default=",".join(NETS))
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--batch", type=int, help="of the comparison of speeds; else twice the largest of plain training")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", dest="file")
    options = parser.parse_args()
    bench, rows = Bench(options), []
    for net in options.nets.split(","):
        batch = options.batch
        for policy in options.policies.split(","):
            row = {"net": net, "policy": policy}
            if not options.batch:
                row["largest_batch"] = bench.largest(net, policy)
                if policy == "plain":
                    batch = 2 * row["largest_batch"]
            row.update(batch=batch, race=bench.speed(net, policy, batch) if batch else None)
            rows.append(row)
            race = row["race"] or {}
            print(f"{net:12s} {policy:11s} largest {row.get('largest_batch', '-'):>6} batch {batch}"
                  + (f" speed {race['speed']:.2f} ({race['least']:.2f}-{race['most']:.2f}) stall {race['stall_ms']:.0f} ms"
                     f" out {race['out_bytes'] / 1e6:.0f} MB reserved {race['reserved_bytes'] >> 20} MiB" if race else " does not fit"),
                  flush=True)
    if options.file:
        pathlib.Path(options.file).write_text(json.dumps({"schema": 1, "cap_bytes": options.cap, "rows": rows}, indent=1) + "\n",
                                              encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--train"]:
        train(json.loads(sys.argv[2]))
    else:
        main()
