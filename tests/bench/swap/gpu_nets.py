#!/usr/bin/env python3
"""The nets of the publication and a transformer within less memory of a GPU: the largest batch of each policy, and its speed beside
plain training of the same batch without a bound.

    gpu_nets.py MODULES LIBRARY [--cap 11GiB] [--device cuda:0] [--nets NAME,...] [--policies NAME,...] [--json FILE]

PyTorch's allocator may have no more than the cap (the publication's card had 11 GiB); policies of Tierpilot have nine tenths of it as
their budget. Largest batches are searched for beside each other, speeds are measured one after the other. With --device cpu nothing is
bounded: only the way is tried.
"""
import argparse
import concurrent.futures
import contextlib
import fcntl
import gc
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[3] / "tools/demo/swap"), str(HERE.parent)]
POLICIES = ("plain", "save-on-cpu", "checkpoint", "swap-all", "vdnn", "capuchin", "swap", "swap+recompute")
NETS = ("alexnet", "vgg16", "resnet50", "inception_v3", "transformer")
SIZES = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
TRIES = 3  # steps after which a batch is said to fit
WARM = 6  # steps of a policy that nothing is judged by: the first are measured closely, which takes time
LEG_S = 3  # seconds that steps of one kind take at most, before those of the other kind have their turn


def size_of(text):
    return int(float(text[:-3]) * SIZES[text[-3:]])


# In the process that trains


def checkpointed(torch, model):
    """sqrt(n) segments, each computed again from its input by PyTorch's own checkpoint; none begins with what changes its input."""
    from torch.utils.checkpoint import checkpoint

    body = getattr(model, "body", model)
    layers, parts = list(body), []
    size = math.ceil(len(layers) / max(1, round(math.sqrt(len(layers)))))
    for layer in layers:
        if not parts or len(parts[-1]) >= size and not isinstance(layer, torch.nn.ReLU):
            parts.append([])
        parts[-1].append(layer)
    parts = [torch.nn.Sequential(*part) for part in parts]

    def forward(x):
        for part in parts[:-1]:
            x = checkpoint(part, x, use_reentrant=False)
        return parts[-1](x)

    return forward if body is model else lambda x: model.head(forward(model.embed(x)).mean(1))


class Training:
    def __init__(self, torch, settings):
        self.torch, self.settings = torch, settings
        self.gpu = settings["device"] != "cpu"
        torch.manual_seed(1)
        if settings["net"] == "transformer":
            from nets import Transformer

            self.model = Transformer(layers=12, width=512).to(settings["device"])
        else:
            import published_nets

            made = published_nets.NETS[settings["net"]]()
            self.model = made.to(settings["device"], memory_format=torch.channels_last)
        self.optimiser = torch.optim.SGD(self.model.parameters(), lr=0.001, momentum=0.9)
        self.checkpointed = checkpointed(torch, self.model)
        self.tried = None

    def data(self, batch):
        torch, device = self.torch, self.settings["device"]
        if self.settings["net"] == "transformer":
            return torch.randint(0, 1000, (batch, 256), device=device)
        return torch.randn(batch, 3, 32, 32, device=device).to(memory_format=torch.channels_last)

    def bound(self, capped):
        if not self.gpu:
            return
        gc.collect()
        self.torch.cuda.empty_cache()
        whole = self.torch.cuda.get_device_properties(self.settings["device"]).total_memory
        share = self.settings["cap"] / whole if capped and self.settings["cap"] else 1.0
        self.torch.cuda.set_per_process_memory_fraction(min(1.0, share), self.settings["device"])

    def swap(self):
        """None: the policy is not Tierpilot's."""
        if self.settings["policy"] in ("plain", "save-on-cpu", "checkpoint"):
            return None
        from tierpilot.swapping import Swap  # a new one each time: tierpilot.swap() has one for all who ask for the same

        budget, (policy, *more) = (self.settings["cap"] or 1 << 50) * 9 // 10, self.settings["policy"].split("+")
        return Swap(budget, policy, self.settings["tiers"], device=self.settings["device"], recompute=more == ["recompute"])

    def step(self, x, policy, swap=None):
        """Its seconds, until the GPU is done."""
        begin = time.perf_counter()

        def passes():
            if policy == "save-on-cpu":
                around = self.torch.autograd.graph.save_on_cpu(pin_memory=self.gpu)
            else:
                around = contextlib.nullcontext()
            self.optimiser.zero_grad(set_to_none=True)
            with around:
                loss = (self.checkpointed if policy == "checkpoint" else self.model)(x).square().mean()
            loss.backward()
            return loss.detach()

        loss = swap.step(passes) if swap else passes()
        self.optimiser.step()
        loss.item()
        return time.perf_counter() - begin

    def fits(self, batch):
        """One Swap for all tries, as its memory is pinned by then; another one after a failure, which lowers its budget."""
        try:
            x = self.data(batch)
            self.tried = self.tried or self.swap()
            for _ in range(TRIES):
                self.step(x, self.settings["policy"], self.tried)
            return True
        except (RuntimeError, MemoryError) as error:
            if "out of memory" not in str(error) and "too large" not in str(error):
                raise
            if self.tried:
                self.tried._core.close()
            self.tried = None
            return False
        finally:
            x = None
            self.bound(True)

    def largest(self, low):
        """To a sixteenth; `low` is where to begin. 0: not even one."""
        self.bound(True)
        while low and not self.fits(low):
            low //= 2
        high = 2 * low
        while 0 < high < 1 << 18 and self.fits(high):
            low, high = high, 2 * high
        while high - low > max(1, low // 16):
            middle = (low + high) // 2
            low, high = (middle, high) if self.fits(middle) else (low, middle)
        return low

    def leg(self, x, policy, swap, warm):
        for _ in range(warm):
            self.step(x, policy, swap)
        begin, seconds = time.perf_counter(), []
        while len(seconds) < 2 or len(seconds) < 8 and time.perf_counter() - begin < LEG_S:
            seconds.append(self.step(x, policy, swap))
        return statistics.median(seconds)

    def race(self, batch):
        """To plain training without a bound, in turn; None: there is no memory."""
        policy, x, ratios = self.settings["policy"], self.data(batch), []
        swap = self.swap()
        try:
            for turn in range(self.settings["rounds"]):
                self.bound(False)
                plain_s = self.leg(x, "plain", None, 1)
                self.bound(True)
                if self.gpu:
                    self.torch.cuda.reset_peak_memory_stats()
                ratios.append(plain_s / self.leg(x, policy, swap, 1 if turn or not swap else WARM))
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            return None
        said = swap.statistics() if swap else {}
        steps = max(1, said.get("steps", 1))
        return {"plain_s": plain_s, "speed": statistics.median(ratios), "least": min(ratios), "most": max(ratios),
                "stall_ms": said.get("last_stall_ns", 0) / 1e6, "out_bytes": said.get("bytes_out", 0) / steps,
                "over_budget_steps": said.get("over_budget_steps", 0), "failures": said.get("failures", 0),
                "reserved_bytes": self.torch.cuda.max_memory_reserved() if self.gpu else 0}


def work(settings):
    import torch

    warnings.simplefilter("ignore")
    training = Training(torch, settings)
    if settings["batch"] is None:
        print(json.dumps(training.largest(settings["from"])))
        return
    with open(settings["lock"], "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        print(json.dumps(training.race(settings["batch"])))


# In the one that compares


class Bench:
    def __init__(self, options, lock):
        self.options, self.lock = options, lock
        self.environment = {**os.environ, "PYTHONPATH": options.modules, "TIERPILOT_SWAP_LIBRARY": options.library}

    def run(self, net, policy, **more):
        settings = {"net": net, "policy": policy, "device": self.options.device, "cap": self.options.cap, "batch": None,
                    "tiers": self.options.tiers, "rounds": self.options.rounds, "lock": self.lock, **more}
        done = subprocess.run([sys.executable, str(HERE), "--train", json.dumps(settings)], env=self.environment,
                              capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return json.loads(done.stdout.splitlines()[-1])
        why = done.stderr.strip().splitlines()[-1:] or [f"ended by signal {-done.returncode}"]
        print(f"{net} under {policy} failed: {why[0]}", file=sys.stderr, flush=True)
        return None

    def largest(self, net, policy, start):
        found = self.run(net, policy, **{"from": start})
        print(f"{net:12s} {policy:11s} largest {found}", flush=True)
        return found

    def largest_of_all(self, nets, policies):
        """By net and policy."""
        with concurrent.futures.ThreadPoolExecutor(self.options.parallel) as pool:
            plain = dict(zip(nets, pool.map(lambda net: self.largest(net, "plain", 32), nets)))
            each = [(net, policy) for policy in policies if policy != "plain" for net in nets]
            found = pool.map(lambda pair: self.largest(*pair, plain[pair[0]] or 32), each)
            return {**{(net, "plain"): plain[net] for net in nets}, **dict(zip(each, found))}

    def races(self, batches, policies):
        """Rows, as they are known: the next one gets ready meanwhile."""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            each = [(net, policy) for net in batches for policy in policies if policy != "plain"]
            yield from zip(each, pool.map(lambda pair: self.run(*pair, batch=batches[pair[0]]), each))


def shown(row):
    race = row["race"]
    text = f"{row['net']:12s} {row['policy']:11s} largest {row['largest_batch'] or '-':>6} batch {row['batch']}"
    if not race:
        return text + " does not fit"
    return (text + f" speed {race['speed']:.2f} ({race['least']:.2f}-{race['most']:.2f}) plain {race['plain_s'] * 1e3:.0f} ms"
            f" stall {race['stall_ms']:.0f} ms out {race['out_bytes'] / 1e6:.0f} MB reserved {race['reserved_bytes'] >> 20} MiB"
            f" failures {race['failures']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules")
    parser.add_argument("library")
    parser.add_argument("--cap", type=size_of, default=size_of("11GiB"))
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--tiers", help="as TIERPILOT_SWAP_TIERS; else what the library finds")
    parser.add_argument("--nets", default=",".join(NETS))
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--searched", help="policies whose largest batch is searched for; else all of --policies")
    parser.add_argument("--batch", type=int, help="of the comparison of speeds; else twice the largest of plain training")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parallel", type=int, default=3, help="searches at once: each may have the cap and the tiers' memory")
    parser.add_argument("--json", dest="file")
    options = parser.parse_args()
    nets, policies, rows = options.nets.split(","), options.policies.split(","), []
    with tempfile.NamedTemporaryFile() as lock:
        bench = Bench(options, lock.name)
        largest = {} if options.batch else bench.largest_of_all(nets, options.searched.split(",") if options.searched else policies)
        batches = {net: options.batch or 2 * (largest[net, "plain"] or 32) for net in nets}
        for (net, policy), race in bench.races(batches, policies):
            rows.append({"net": net, "policy": policy, "largest_batch": largest.get((net, policy)), "batch": batches[net], "race": race})
            print(shown(rows[-1]), flush=True)
            if options.file:
                said = {"schema": 2, "cap_bytes": options.cap, "plain_largest": {net: largest.get((net, "plain")) for net in nets},
                        "rows": rows}
                pathlib.Path(options.file).write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--train"]:
        work(json.loads(sys.argv[2]))
    else:
        main()
