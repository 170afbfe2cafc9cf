#!/usr/bin/python3
"""Prints the tables of docs/results/swap.md from the logs that record_nets.py wrote, worst row first.

    print_results.py TIERTOOL DIRECTORY
"""
import json
import pathlib
import subprocess
import sys

RIVALS = ["h_DTR", "h_DTR_eq", "h_DTR_local", "h_LRU", "h_size", "h_MSPS"]


def replay(tiertool, log, policies, *options):
    run = subprocess.run([tiertool, "swap", "replay", "-j", "--budget-ratio", "0.5,0.3", "--policy",
                          ",".join(policies), *options, str(log)], capture_output=True, check=True)
    budgets = {}
    for row in json.loads(run.stdout)["results"]:
        budgets.setdefault(row["budget_bytes"], {})[row["policy"]] = row
    return zip(("50 %", "30 %"), budgets.values())


def shown(row):
    return f"{row['overhead']:.3f}" if row["done"] else "fails"


def recompute(tiertool, logs):
    print("| net | budget | swap | swap-quick | swap-online | best score | which | swap over best |")
    print("|---|---|---|---|---|---|---|---|")
    rows = []
    for log in logs:
        for budget, results in replay(tiertool, log, ["swap", "swap-quick", "swap-online"] + RIVALS):
            done = [results[r] for r in RIVALS if results[r]["done"]]
            best = min(done, key=lambda row: row["overhead"]) if done else None
            own = results["swap"]
            gain = own["overhead"] / best["overhead"] if own["done"] and best else 0 if own["done"] else 9
            rows.append((-gain, [log.stem, budget, *map(shown, (own, results["swap-quick"], results["swap-online"])),
                                 shown(best) if best else "all fail", best["policy"] if best else "",
                                 f"{gain:.3f}" if 0 < gain < 9 else ""]))
    for _, row in sorted(rows):
        print("| " + " | ".join(row) + " |")


def swapping(tiertool, logs):
    print("| net | budget | overhead | recomputed | stalled | MB out |")
    print("|---|---|---|---|---|---|")
    rows = []
    for log in logs:
        for budget, results in replay(tiertool, log, ["swap"], "--bandwidth", "12"):
            row = results["swap"]
            share = lambda key: f"{row[key] / row['base_time_ns']:.3f}"
            rows.append((-(row["overhead"] or 9), [log.stem, budget, shown(row), share("recomputed_ns"),
                                                   share("stall_ns"), f"{row['bytes_out'] / 1e6:.1f}"]))
    for _, row in sorted(rows):
        print("| " + " | ".join(row) + " |")


def main():
    logs = sorted(pathlib.Path(sys.argv[2]).glob("*.log"))
    recompute(sys.argv[1], logs)
    print()
    swapping(sys.argv[1], logs)


if __name__ == "__main__":
    main()
