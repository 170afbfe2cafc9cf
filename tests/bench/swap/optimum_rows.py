#!/usr/bin/python3
"""Prints plans beside the optimum, on nets that are small enough for it: worst row first.

    optimum_rows.py TIERTOOL DIRECTORY

DIRECTORY has what record_nets.py wrote there. Rows without any plan are left out, and counted.
"""
import json
import pathlib
import subprocess
import sys

import nets

POLICIES = ["optimum", "swap", "swap-quick", "h_DTR", "h_DTR_eq", "h_MSPS"]
RATIOS = [0.8, 0.7, 0.6]


def replay(tiertool, log):
    ratios = ",".join(str(ratio) for ratio in RATIOS)
    run = subprocess.run([tiertool, "swap", "replay", "-j", "--budget-ratio", ratios, "--policy", ",".join(POLICIES), str(log)],
                         capture_output=True, check=True)
    rows = json.loads(run.stdout)["results"]
    return [rows[i:i + len(POLICIES)] for i in range(0, len(rows), len(POLICIES))]


def main():
    tiertool, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    found, agreed, unknown = [], 0, []
    for name in nets.SMALL:
        for ratio, rows in zip(RATIOS, replay(tiertool, folder / f"{name}.log")):
            best, own = rows[0], rows[1]
            if not best["done"] and not own["done"] and "fits" in best["overhead_unavailable"]:
                agreed += 1
            elif not best["done"] or not own["done"]:
                unknown.append(f"{name} at {ratio:.0%}: optimum {shown(best)}, swap {shown(own)}")
            else:
                cells = [f"{name} ({best['operators']})", f"{ratio:.0%}", *map(shown, rows), best["origin"],
                         f"{own['overhead'] / best['overhead']:.3f}"]
                found.append((-own["overhead"] / best["overhead"], -own["overhead"], cells))
    print(f"| net (operators) | budget | {' | '.join(POLICIES)} | solver | swap over optimum |")
    print("|---" * (len(POLICIES) + 4) + "|")
    for row in sorted(found):
        print("| " + " | ".join(row[2]) + " |")
    print(f"\n{agreed} more rows in which nothing fits, by both.")
    for line in unknown:
        print(line)


def shown(row):
    return f"{row['overhead']:.3f}" if row["done"] else "fails"


main()
