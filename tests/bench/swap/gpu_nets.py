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
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve()
POLICIES = ("plain", "save-on-cpu", "checkpoint", "swap-all", "vdnn", "capuchin", "swap", "swap+recompute")
NETS = ("alexnet", "vgg16", "resnet50", "inception_v3", "transformer")
SIZES = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def size_of(text):
    return int(float(text[:-3]) * SIZES[text[-3:]])


class Bench:
    def __init__(self, options, lock):
        self.options, self.lock = options, lock
        self.environment = {**os.environ, "PYTHONPATH": options.modules, "TIERPILOT_SWAP_LIBRARY": options.library}

    def run(self, net, policy, **more):
        settings = {"net": net, "policy": policy, "device": self.options.device, "cap": self.options.cap, "batch": None,
                    "tiers": self.options.tiers, "rounds": self.options.rounds, "leg": self.options.leg, "lock": self.lock, **more}
        done = subprocess.run([sys.executable, str(HERE.with_name("gpu_trainings.py")), json.dumps(settings)], env=self.environment,
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
    parser.add_argument("--leg", type=int, default=8, help="steps of one kind at most, before those of the other have their turn")
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
    main()
