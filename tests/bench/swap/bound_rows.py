#!/usr/bin/python3
"""Prints how near plans come to what no plan can be better than, worst row first: overhead of `swap` less that of `bound`.

    bound_rows.py TIERTOOL GB_PER_S LOG [LOG ...]

Logs are those of Dynamic Tensor Rematerialization. Below the table is why rows fail in which nobody can get through.
"""
import json
import pathlib
import subprocess
import sys

RIVALS = ["checkpoint", "capuchin", "swap-all", "h_DTR", "h_DTR_eq", "h_MSPS"]
POLICIES = ["bound", "swap", "swap-quick", *RIVALS]


def replay(tiertool, log, ratio, bandwidth):
    run = subprocess.run([tiertool, "swap", "replay", "-j", "--format", "dtr", "--budget-ratio", str(ratio), "--bandwidth", bandwidth,
                          "--policy", ",".join(POLICIES), str(log)], capture_output=True, check=True)
    return {row["policy"]: row for row in json.loads(run.stdout)["results"]}


def shown(row):
    return f"{row['overhead']:.3f}" if row["done"] else "fails"


def main():
    tiertool, bandwidth = sys.argv[1:3]
    print(f"| net | budget | {' | '.join(POLICIES)} | swap over best rival |")
    print("|---" * (len(POLICIES) + 3) + "|")
    rows, reasons = [], []
    for log in map(pathlib.Path, sys.argv[3:]):
        for ratio in (0.5, 0.3):
            results = replay(tiertool, log, ratio, bandwidth)
            own, bound = results["swap"], results["bound"]
            done = [results[rival]["overhead"] for rival in RIVALS if results[rival]["done"]]
            gain = f"{own['overhead'] / min(done):.3f}" if own["done"] and done else ""
            gap = own["overhead"] - bound["overhead"] if own["done"] and bound["done"] else float("inf")
            rows.append((-gap, log.stem, [log.stem, f"{ratio:.0%}", *(shown(results[policy]) for policy in POLICIES), gain]))
            if not bound["done"]:
                reasons.append(f"{log.stem} {ratio:.0%}: {bound['overhead_unavailable']}")
    for _, _, row in sorted(rows):
        print("| " + " | ".join(row) + " |")
    print(*reasons, sep="\n")


if __name__ == "__main__":
    main()
