"""tools/quickstart swap: a net that does not fit its budget, and what trains it all the same."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

from largest import Search
from picture import picture
from race import POLICIES, Race
from view import View, mib, table


class Deadline:
    def __init__(self, seconds):
        self._end = time.monotonic() + seconds

    def passed(self):
        return time.monotonic() > self._end

    def part(self, of):
        """Of what is left, so that those who come later have as much."""
        return Deadline((self._end - time.monotonic()) / of)


def size(text):
    number = float(text.removesuffix("MiB").removesuffix("GiB"))
    return int(number * 2 ** (30 if text.endswith("GiB") else 20))


def options():
    parser = argparse.ArgumentParser(
        prog="quickstart swap",
        description="Trains a residual net on a CPU within less memory than it takes: plainly, and with "
        "policies that let tensors leave.",
        allow_abbrev=False,  # tools/quickstart looks at whole names
    )
    parser.add_argument("--json", metavar="FILE", help="write everything shown to FILE")
    parser.add_argument("--svg", metavar="FILE", help="the last step's plan as a picture")
    parser.add_argument("--budget", metavar="SIZE", type=size, default=size("220MiB"),
                        help="private resident memory of the process, as 220MiB")
    parser.add_argument("--batch", metavar="N", type=int, default=64, help="pictures in a batch")
    parser.add_argument("--blocks", metavar="N", type=int, default=5, help="the net has 6 N + 2 layers")
    parser.add_argument("--iterations", metavar="N", type=int, default=12, help="steps of each training")
    parser.add_argument("--seconds", metavar="S", type=float, default=170,
                        help="no new search for the largest batch begins after this")
    parser.add_argument("--check-options", action="store_true", help=argparse.SUPPRESS)
    for hidden in ("--library", "--modules", "--program"):
        parser.add_argument(hidden, required=True, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if not 0 <= chosen.seconds < 1e9:
        parser.error("--seconds is a number of seconds")
    if min(chosen.batch, chosen.blocks, chosen.iterations - 4, chosen.budget) < 1:
        parser.error("at least one picture, one block, five steps and some budget are needed")
    return chosen


def measured_tiers(program):
    said = subprocess.run([program, "tiers", "-j"], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(said.stdout)["tiers"]


def say_tiers(view, tiers):
    own, others = tiers[0], tiers[1:]
    view.say(f"this process's memory is copied at {own['copy_gb_per_s']:.1f} GB/s; to swap to, as measured:")
    for tier in others:
        view.say(
            f"  {tier['name']}: out {tier['write_gb_per_s']:.2f} GB/s, in {tier['read_gb_per_s']:.2f} "
            f"GB/s, latency {tier['latency_us']:.0f} us"
        )


def policies_of(race, largest):
    rows = []
    for racer in race.racers:
        said = racer.statistics()
        rows.append(
            {
                "name": racer.name,
                "fits": racer.fits,
                "largest_batch": largest.get(racer.name),
                "samples_per_s": race.samples_per_second(racer),
                "relative_speed": race.relative_speed(racer),
                "device_peak_bytes": racer.child.peak_bytes,
                "host_bytes_by_tier": said.get("host_bytes_by_tier", {}),
                "stall_ms_per_iteration": race.stall_ms(racer),
                "gradients_equal": race.gradients_equal(racer),
                "failed": racer.child.failed,
            }
        )
    return rows


def search_largest(chosen, race, view):
    """Of every policy, from what its training took in the race."""
    deadline = Deadline(chosen.seconds)
    fixed = min(racer.child.first_bytes or chosen.budget for racer in race.racers)
    found = {}
    for at, racer in enumerate(race.racers):
        search = Search(chosen, view, deadline.part(len(race.racers) - at))
        if racer.fits:
            needs = racer.statistics().get("least_bytes") or racer.child.peak_bytes
            found[racer.name] = search.run(racer.name, chosen.batch, needs, fixed)
        else:  # somewhere below; the first try tells
            found[racer.name] = search.run(racer.name, 0, 0, fixed) or None
    return found


def shown(value, form, unit=""):
    return "-" if value is None else form.format(value) + unit


def say_results(view, chosen, policies, largest_of_plain):
    rows = []
    for row in policies:
        host = sum(row["host_bytes_by_tier"].values())
        more = row["largest_batch"] / largest_of_plain if row["largest_batch"] and largest_of_plain else None
        rows.append(
            [
                row["name"],
                "yes" if row["fits"] else "no",
                shown(row["samples_per_s"], "{:.1f}"),
                shown(row["relative_speed"], "{:.2f}"),
                mib(row["device_peak_bytes"]),
                mib(host),
                shown(row["stall_ms_per_iteration"], "{:,.0f}"),
                {True: "yes", False: "NO", None: "-"}[row["gradients_equal"]],
                shown(row["largest_batch"], "{}"),
                shown(more, "{:.2f}"),
            ]
        )
    headers = ["POLICY", "FITS", "SAMPLES/s", "SPEED", "DEVICE PEAK", "HOST PEAK", "STALL ms", "GRADIENTS EQUAL",
               "LARGEST BATCH", "TO PLAIN"]
    view.say(f"\nBatch {chosen.batch} within {mib(chosen.budget)}; speed to that without a budget")
    for line in table(headers, rows):
        view.say(line)
    if any(row["fits"] and row["largest_batch"] is None for row in policies):
        view.say("-: no time was left to look for the largest batch, see --seconds")


def demonstrate():
    chosen = options()
    if chosen.check_options:
        return
    view = View(chosen.budget)
    tiers = measured_tiers(chosen.program)
    say_tiers(view, tiers)
    view.say(f"a net of {6 * chosen.blocks + 2} layers, batch {chosen.batch}, "
             f"within {mib(chosen.budget)} of private resident memory: who takes more is killed")
    race = Race(chosen, view)
    race.run()
    swap = race.racers[POLICIES.index("swap")]
    step = swap.child.ask("tell") if swap.fits else None
    race.end()
    view.say("\nthe largest batch that trains within the budget")
    largest = search_largest(chosen, race, view)
    policies = policies_of(race, largest)
    say_results(view, chosen, policies, largest.get("plain"))
    if step and chosen.svg:
        pathlib.Path(chosen.svg).write_text(picture(step["step"], f"A step within {mib(chosen.budget)}"))
        view.say(f"\nthe plan as a picture: {chosen.svg}")
    if chosen.json:
        said = {
            "schema": 1,
            "budget_bytes": chosen.budget,
            "batch": chosen.batch,
            "tiers": tiers,
            "reference": {
                "samples_per_s": race.samples_per_second(race.reference),
                "device_peak_bytes": race.reference.child.peak_bytes,
            },
            "policies": policies,
            "learning": race.learning(),
        }
        pathlib.Path(chosen.json).write_text(json.dumps(said, indent=2) + "\n")
    wrong = [row["name"] for row in policies if row["gradients_equal"] is False]
    if wrong:
        sys.exit(f"error: gradients differ from those of plain training under {', '.join(wrong)}")


def main():
    try:
        demonstrate()
    except KeyboardInterrupt:
        sys.stdout.flush()
        print("stopped", file=sys.stderr, flush=True)
        # Trainings end as nobody tells them more. Python's own end would meet the thread that watches one: it crashed.
        os._exit(130)


if __name__ == "__main__":
    main()
