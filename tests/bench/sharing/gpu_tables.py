#!/usr/bin/env python3
"""What tables of real GPUs tell beside each other: the figures of docs/results/sharing.md that `tierctl predictor evaluate` does not print.

    gpu_tables.py trainings ONE.csv OTHER.csv    of `collect --device cuda`, the same trainings on two machines
    gpu_tables.py pairs TURNS.csv MPS.csv        of `collect --pairs --device cuda`, the same pairs by time slices and under MPS
"""
import csv
import math
import statistics
import sys

BINS = (0, 100, 300, 600, 1001)  # thousandths of use by kernels


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def ratios(name, both):
    logs = [math.log(after / before) for before, after in both]
    print(f"{name}: {math.exp(statistics.mean(logs)):.2f} times in the mean, {statistics.pstdev(logs):.2f} (ln) about that, of {len(logs)}")


def by_driver_and_kernels(path):
    rows = [(float(row["utilisation_milli"]), float(row["driver_milli"])) for row in rows_of(path) if row["driver_milli"]]
    use = sorted(kernels for kernels, _ in rows)
    print(f"{path}: use by kernels, thousandths: " + " ".join(f"{use[round(part * (len(use) - 1))]:.0f}" for part in (0, 0.25, 0.5, 0.75, 1)))
    for least, most in zip(BINS, BINS[1:]):
        inside = [pair for pair in rows if least <= pair[0] < most]
        if inside:
            ratios(f"  driver to kernels, {least} to {most - 1}", inside)


def trainings(one, other):
    for path in (one, other):
        by_driver_and_kernels(path)
    first = {(row["architecture"], row["seed"]): row for row in rows_of(one)}
    both = [(first[key], row) for row in rows_of(other) if (key := (row["architecture"], row["seed"])) in first]
    use = [tuple(math.log1p(float(row["utilisation_milli"]) / 10) for row in pair) for pair in both]
    differences = [after - before for before, after in use]
    print(f"use, other to one: RMSLE {math.sqrt(statistics.mean(d * d for d in differences)):.3f}, "
          f"{statistics.pstdev(differences):.3f} about the mean difference")
    for name, column, chosen in (("kernels' time", "busy_s", both), ("the host's fixed work", "calibration_s", both),
                                 ("steps that wait for the host", "step_s", [p for p in both if 2.5 * float(p[0]["busy_s"]) < float(p[0]["step_s"])])):
        ratios(name, [tuple(float(row[column]) for row in pair) for pair in chosen])


def directions(row):
    for victim, neighbour in ("ab", "ba"):
        kept = float(row[f"together_{victim}"]) / float(row[f"alone_{victim}"])
        yield kept, float(row[f"milli_{victim}"]) * float(row[f"milli_{neighbour}"]) / 1e6


def pairs(turns, mps):
    under = rows_of(mps)
    seeds = {row["seed"] for row in under}
    for path, rows in ((turns, [row for row in rows_of(turns) if row["seed"] in seeds]), (mps, under)):
        kept = [direction for row in rows for direction in directions(row)]
        print(f"{path}: of {len(rows)} pairs {statistics.mean(k for k, _ in kept):.3f} is kept in the mean; off, "
              f"u_a u_b: {statistics.mean(abs(k - 1 / (1 + both)) for k, both in kept):.3f}, "
              f"nothing lost: {statistics.mean(abs(k - 1) for k, _ in kept):.3f}")


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("trainings", "pairs"):
        sys.exit(__doc__)
    {"trainings": trainings, "pairs": pairs}[sys.argv[1]](*sys.argv[2:])
