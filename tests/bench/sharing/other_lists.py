#!/usr/bin/env python3
"""Allocation at full load on lists made from openb's: what pods want, and what nodes have, is another.

other_lists.py TIERCTL PODS NODES [--seeds N]   prints a table, where `share` is least above `fgd` first
"""
import argparse
import csv
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

POLICIES = ("fgd", "first-fit", "packing", "best-fit", "share-published", "share")


def each(pods, wanted, change, random_):
    return [change(dict(pod)) if random_.random() < wanted and int(pod["num_gpu"]) > 0 else pod for pod in pods]


def with_shares(shares):
    def make(pods, random_):
        def change(pod):
            if int(pod["num_gpu"]) == 1:
                pod["gpu_milli"] = random_.choice(shares)
            return pod

        return each(pods, 1, change, random_)

    return make


def with_models(part, models):
    def make(pods, random_):
        def change(pod):
            pod["gpu_spec"] = random_.choice(models)
            return pod

        return each(pods, part, change, random_)

    return make


def several(part, units):
    def make(pods, random_):
        def change(pod):
            if int(pod["num_gpu"]) == 1:
                pod["num_gpu"], pod["gpu_milli"] = random_.choice(units), 1000
            return pod

        return each(pods, part, change, random_)

    return make


def of_cores_only(part):
    def make(pods, random_):
        def change(pod):
            pod["num_gpu"] = pod["gpu_milli"] = 0
            return pod

        return each(pods, part, change, random_)

    return make


def host(**factors):
    def make(rows, _):
        return [row | {name: int(int(row[name]) * factor) for name, factor in factors.items()} for row in rows]

    return make


def as_they_are(rows, _):
    return rows


def first(count):
    return lambda rows, _: rows[:count]


def some(count):
    return lambda rows, random_: random_.sample(rows, count)


def one_gpu(rows, _):
    return [row | {"gpu": 1} for row in rows]


def of_eight(count):
    return lambda rows, _: [row for row in rows if row["gpu"] == "8"][:count]


ANY_OF_FIVE = ["V100M16|V100M32", "T4", "P100", "G2", "G3", ""]
LISTS = (
    ("pods as they are, nodes as they are", as_they_are, as_they_are),
    ("all pods share", with_shares([100, 200, 300, 400, 500, 600, 700, 800, 900]), as_they_are),
    ("shares of little more than a half", with_shares([510, 550, 600, 650, 700]), as_they_are),
    ("thirds, halves and quarters, nodes of eight GPUs", with_shares([250, 334, 500, 667]), of_eight(60)),
    ("small shares", with_shares([10, 50, 100, 150]), as_they_are),
    ("a third of the pods want 2, 4 or 8 GPUs", several(0.3, [2, 4, 8]), as_they_are),
    ("a third want certain models", with_models(0.33, ANY_OF_FIVE[:-1]), as_they_are),
    ("all want a model or any", with_models(1, ANY_OF_FIVE), as_they_are),
    ("all want a model or any, nodes of one GPU", with_models(1, ANY_OF_FIVE), one_gpu),
    ("all want a model or any, 100 nodes", with_models(1, ANY_OF_FIVE), some(100)),
    ("half want a T4", with_models(0.5, ["T4"]), as_they_are),
    ("half want no GPU, 40 nodes", of_cores_only(0.5), first(40)),
    ("half want no GPU, four tenths of the cores", of_cores_only(0.5), host(cpu_milli=0.4)),
    ("four tenths of the cores", as_they_are, host(cpu_milli=0.4)),
    ("three tenths of the memory", as_they_are, host(memory_mib=0.3)),
    ("twice the cores wanted, 100 nodes", host(cpu_milli=2), some(100)),
    ("hardly any cores wanted", host(cpu_milli=0.01, memory_mib=0.01), as_they_are),
)


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def write(path, rows):
    with open(path, "w", newline="") as file:
        out = csv.DictWriter(file, rows[0].keys())
        out.writeheader()
        out.writerows(rows)
    return str(path)


def allocations(tierctl, pods, nodes, seeds):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        command = [tierctl, "policy", "evaluate", "--suite", "sharing", "--seeds", str(seeds), "-j"]
        command += ["--policies", ",".join(POLICIES)]
        command += ["--pods", write(folder / "pods.csv", pods), "--nodes", write(folder / "nodes.csv", nodes)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if done.returncode not in (0, 4):  # 4: some pods fit on no node, which is so of some lists
            sys.exit(f"{' '.join(command)} ended with {done.returncode}: {done.stdout.decode()}")
    runs = json.loads(done.stdout)["full_load"]["runs"]
    return {policy: statistics.mean(run["allocation"] for run in runs if run["policy"] == policy) for policy in POLICIES}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tierctl")
    parser.add_argument("pods")
    parser.add_argument("nodes")
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    pods, nodes = read(given.pods), read(given.nodes)
    rows = []
    for name, of_pods, of_nodes in LISTS:
        random_ = random.Random(5)
        figures = allocations(given.tierctl, of_pods(pods, random_), of_nodes(nodes, random_), given.seeds)
        rows.append((figures["share"] - figures["fgd"], name, figures))
        print(name, file=sys.stderr)
    print("| list | " + " | ".join(f"`{policy}`" for policy in POLICIES) + " | over `fgd`, points |")
    print("|" + "---|" * (len(POLICIES) + 2))
    for above, name, figures in sorted(rows, key=lambda row: row[0]):
        cells = " | ".join(f"{100 * figures[policy]:.1f} %" for policy in POLICIES)
        print(f"| {name} | {cells} | {100 * above:+.1f} |")


if __name__ == "__main__":
    main()
