#!/usr/bin/env python3
"""The bench of the published nets, short: AlexNet within its budget, where plain training does not fit and swapping does, with the same
losses and gradients as without a budget.

Arguments: the bench, the Python module's folder, libtierpilot-swap, tierpilot-swap.
"""
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

BENCH, MODULES, LIBRARY, PROGRAM = sys.argv[1:5]
del sys.argv[1:5]
if not importlib.util.find_spec("torch"):  # to import it takes a second
    print(f"skipped: no PyTorch for {sys.executable}")
    sys.exit(77)


def run(*options):
    return subprocess.run([sys.executable, BENCH, MODULES, LIBRARY, PROGRAM, *options], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=500)


class RealNets(unittest.TestCase):
    def test_swapping_trains_what_plain_training_has_no_room_for(self):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "nets.json"
            ended = run("--nets=alexnet", "--parts=double", "--policies=plain,swap", "--plain=80", "--turns=4",
                        f"--json={report}")
            self.assertEqual(ended.returncode, 0, ended.stderr)
            said = json.loads(report.read_text())
        own, *others = said["tiers"][0]
        self.assertTrue(others, "nowhere to swap to")
        for tier in others:  # both are told, and are not those of memory
            self.assertNotEqual(tier["read_gb_per_s"], own["copy_gb_per_s"])
            self.assertGreater(tier["latency_us"], 0)
        net = said["nets"]["alexnet"]
        self.assertEqual(net["double"]["batch"], 160)
        rows = net["double"]["rows"]
        self.assertFalse(rows["plain"]["fits"], rows)
        self.assertTrue(rows["swap"]["fits"], rows)
        self.assertTrue(rows["swap"]["equal"], rows)
        self.assertLessEqual(rows["swap"]["peak_bytes"], net["budget_bytes"])
        self.assertEqual(rows["swap"]["steps"], 4)
        self.assertGreater(rows["swap"]["out_mib"], 1)
        for word in ("| alexnet | 160 | plain | took more than the budget", "| alexnet | 160 | swap |"):
            self.assertIn(word, ended.stdout)

    def test_what_it_does_not_know_is_told(self):
        ended = run("--nets=lenet")
        self.assertEqual(ended.returncode, 2)
        self.assertIn("lenet", ended.stderr)


if __name__ == "__main__":
    unittest.main()
