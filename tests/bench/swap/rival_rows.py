#!/usr/bin/python3
"""Prints how every policy replays the steps that are supplied with the project, worst row first.

    rival_rows.py TIERTOOL DATA_DIRECTORY

Rows are ordered by the overhead of `swap` over the best of the others. Skips, with the reason, where the data is absent.
"""
import json
import pathlib
import subprocess
import sys

POLICIES = ["swap", "swap-quick", "swap-online", "h_DTR", "h_DTR_eq", "h_MSPS", "h_LRU", "checkpoint", "capuchin",
            "belady", "swap-all", "vdnn", "vdnn-all", "q-published"]
OWN = 2  # swap and swap-quick; the others are rivals
STEPS = [("resnet18", "step", "s4_resnet18_step.json", []),
         ("gpt_350M", "operators", "s4_operators.csv", ["--net", "gpt_350M/1"]),
         ("gpt_1_3B", "operators", "s4_operators.csv", ["--net", "gpt_1_3B/1"]),
         ("wide_resnet_500M", "operators", "s4_operators.csv", ["--net", "resnet_500M/16"])]
FEASIBLE_STEP = 5  # per cent of the peak


def replay(tiertool, data, step, policies, ratio, bandwidth):
    _, log_format, file, options = step
    run = subprocess.run([tiertool, "swap", "replay", "-j", "--format", log_format, *options, "--budget-ratio", str(ratio),
                          "--bandwidth", str(bandwidth), "--policy", ",".join(policies), str(data / file)],
                         capture_output=True, check=True)
    return {row["policy"]: row for row in json.loads(run.stdout)["results"]}


def shown(row):
    return f"{row['overhead']:.3f}" if row["done"] else "fails"


def overheads(tiertool, data, bandwidth):
    print(f"| net | budget | bound | {' | '.join(POLICIES)} | swap over best |")
    print("|---" * (len(POLICIES) + 4) + "|")
    rows = []
    for step in STEPS:
        for ratio in (0.5, 0.3):
            results = replay(tiertool, data, step, ["bound", *POLICIES], ratio, bandwidth)
            done = [results[policy]["overhead"] for policy in POLICIES[OWN:] if results[policy]["done"]]
            own = results["swap"]
            gain = own["overhead"] / min(done) if own["done"] and done else 0 if own["done"] else float("inf")
            rows.append((-gain, -(own["overhead"] or 0) if own["done"] else 0,
                         [step[0], f"{ratio:.0%}", shown(results["bound"]), *(shown(results[policy]) for policy in POLICIES),
                          f"{gain:.3f}" if 0 < gain < float("inf") else ""]))
    for row in sorted(rows):
        print("| " + " | ".join(row[2]) + " |")


# By halving: a policy may fail above a budget with which it gets through.
def feasible(tiertool, data, step, policy):
    low, high = 0, 100 // FEASIBLE_STEP + 1
    while high - low > 1:
        middle = (low + high) // 2
        done = replay(tiertool, data, step, [policy], middle * FEASIBLE_STEP / 100, 12)[policy]["done"]
        low, high = (low, middle) if done else (middle, high)
    return high * FEASIBLE_STEP


def smallest(tiertool, data):
    print(f"| policy | {' | '.join(step[0] for step in STEPS)} |")
    print("|---" * (len(STEPS) + 1) + "|")
    rows = []
    for policy in POLICIES:
        least = [feasible(tiertool, data, step, policy) for step in STEPS]
        rows.append((-sum(least), policy, least))
    for _, policy, least in sorted(rows):
        print(f"| {policy} | " + " | ".join(f"{share} %" if share <= 100 else "never" for share in least) + " |")


def main():
    tiertool, data = sys.argv[1], pathlib.Path(sys.argv[2])
    for step in STEPS:
        if not (data / step[2]).exists():
            print(f"skipped: {data / step[2]} is not there")
            return
    for bandwidth in (0, 12):
        print(f"\nBandwidth of the link: {bandwidth} GB/s\n")
        overheads(tiertool, data, bandwidth)
    print("\nSmallest budget over a link of 12 GB/s\n")
    smallest(tiertool, data)


if __name__ == "__main__":
    main()
