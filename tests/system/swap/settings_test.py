#!/usr/bin/env python3
"""Budgets and settings: what is taken, what is refused, and with which words."""
import copy
import json
import os
import pickle
import socket
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import warnings

from scene import BIG, PROGRAM, UNAWARE, Case, Swap, data, net, train

import tierpilot
import torch  # after scene, which skips without it


class Budgets(Case):
    def test_one_that_is_too_small_says_what_is_needed(self):
        swap = Swap("1MiB", "swap", "memory=256MiB")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            train(swap, (24,) * 4)
        too_small = [warning for warning in said if "too small" in str(warning.message)]
        texts = [str(warning.message) for warning in too_small]
        self.assertEqual(len(texts), 1, texts)
        self.assertEqual(os.path.basename(too_small[0].filename), "scene.py", "the line of the program's own backward()")
        self.assertRegex(texts[0], r"budget of 1 MiB is too small: .* needs \d+ MiB")

    def test_a_step_without_memory_runs_again_with_everything_away(self):
        swap = Swap(BIG, "swap", "memory=256MiB")
        model = net()
        x, y = data(24)
        failures, seen = [3, 5], []

        def work():
            model.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            if len(seen) in failures:
                failures.remove(len(seen))
                raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried")
            loss.backward()
            return [p.grad.clone() for p in model.parameters()]

        def training():
            torch.manual_seed(2)
            for _ in range(8):
                seen.append(swap.step(work))
            return seen

        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            ours = list(training())
        self.assertEqual(len([w for w in said if "runs again" in str(w.message)]), 2)
        self.assertEqual(swap.statistics()["failures"], 2)
        failures, seen = [], []
        model = net()
        torch.manual_seed(2)
        swap = Swap(BIG, "none")
        self.same(ours, training())
        with self.assertRaisesRegex(RuntimeError, "something else"):
            swap.step(lambda: (_ for _ in ()).throw(RuntimeError("something else")))

    def test_its_figures_go_to_the_node_that_runs_the_task(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "job.sock")
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
                listener.bind(path)
                listener.listen()
                ended = subprocess.run(
                    [PROGRAM, "run", "--budget", BIG, "--policy", "swap-all", "--tiers", "memory=64MiB",
                     "--", sys.executable, "-c", UNAWARE],
                    env={**os.environ, "TIERPILOT_JOB_SOCKET": path}, stdout=subprocess.DEVNULL, timeout=300,
                )
                self.assertEqual(ended.returncode, 0)
                node, _ = listener.accept()
                with node:
                    lines = [json.loads(line) for line in node.recv(1 << 20).splitlines()]
        self.assertEqual(len(lines), 4)
        self.assertGreater(lines[-1]["measures"]["swap_bytes_in"], 4 << 18)

    def test_wrong_settings_say_what_is_wrong(self):
        for settings, words in (
            (("fast",), "a budget is a size"),
            ((0,), "above 0"),
            ((BIG, "magic"), "policy 'magic' is not known; there are swap"),
            ((BIG, "swap", "dir:/nonexistent=1GiB"), "/nonexistent.*No such file.*make that folder"),
            ((BIG, "swap", "node77=1GiB"), "no NUMA node 77"),
            ((BIG, "swap", "memory"), "NAME=SIZE"),
            ((BIG, "swap", "dir:/var/tmp=1GiB,dir:/var/tmp/.=1GiB"), "the same as 'dir:/var/tmp'"),
        ):
            with self.subTest(settings=settings), self.assertRaisesRegex(ValueError, words):
                Swap(*settings)

    def test_without_a_budget_it_is_that_of_the_task(self):
        with unittest.mock.patch.dict(os.environ, {}):
            os.environ.pop("TIERPILOT_SWAP_BUDGET", None)
            with self.assertRaisesRegex(ValueError, r'swap\(budget="4GiB"\).*TIERPILOT_SWAP_BUDGET'):
                tierpilot.swap()
            os.environ.update(TIERPILOT_SWAP_BUDGET="3000000000", TIERPILOT_SWAP_TIERS="memory=64MiB")
            given = tierpilot.swap()
            self.assertEqual(given.statistics()["budget_bytes"], 3_000_000_000)
            self.assertEqual([tier["name"] for tier in given.tiers()], ["memory"])
            self.assertEqual(given.tiers()[0]["capacity_bytes"], 64 << 20)
            said = tierpilot.swap("2GiB", tiers="memory=32MiB")
            self.assertEqual(said.statistics()["budget_bytes"], 2 << 30)
            self.assertEqual(said.tiers()[0]["capacity_bytes"], 32 << 20)

    def test_workers_of_torchrun_divide_the_budget_and_the_tiers(self):
        with tempfile.TemporaryDirectory() as folder:
            script, report = os.path.join(folder, "train.py"), os.path.join(folder, "report")
            with open(script, "w", encoding="utf-8") as file:
                file.write(UNAWARE)
            # The launcher of PyTorch 1.13 fails without redirects under Python 3.11, which lists no flag of 0.
            launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2",
                        "--redirects=1", "--tee=1", "--log_dir", folder]
            ended = subprocess.run(
                [PROGRAM, "run", "--budget", "2GiB", "--tiers", "memory=64MiB", "--report", report, "--",
                 sys.executable, *launcher, script],
                stdout=subprocess.DEVNULL, timeout=300,
            )
            self.assertEqual(ended.returncode, 0)
            with open(report, encoding="utf-8") as file:
                budgets = [json.loads(line)["budget_bytes"] for line in file]
        self.assertEqual(budgets, [1 << 30] * 2)

    def test_settings_that_change_at_each_call_are_not_all_kept(self):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            first = tierpilot.swap(1 << 30, "none", "memory=1MiB")
            often = tierpilot.swap((1 << 30) + 100, "none", "memory=1MiB")
            for extra in range(1, 12):
                tierpilot.swap((1 << 30) + extra, "none", "memory=1MiB")
                tierpilot.swap((1 << 30) + 100, "none", "memory=1MiB")  # again and again: it is the same one
            self.assertIsNot(tierpilot.swap(1 << 30, "none", "memory=1MiB"), first)
            self.assertIs(tierpilot.swap((1 << 30) + 100, "none", "memory=1MiB"), often)
        self.assertTrue(any("say the same budget in each step" in str(one.message) for one in said))

    def test_a_model_that_has_it_is_copied_and_not_saved(self):
        swap = Swap(BIG, "none", "memory=1MiB")
        self.assertIs(copy.deepcopy({"swap": swap})["swap"], swap)
        with self.assertRaisesRegex(TypeError, "keep it out of the model"):
            pickle.dumps(swap)
        with self.assertRaisesRegex(RuntimeError, "has not entered it"):
            swap.__exit__(None, None, None)
        with self.assertRaisesRegex(ValueError, "at least 1"):
            swap.step(lambda: None, tries=0)

    def test_what_cannot_swap_is_refused_before_it_starts(self):
        for command, environment, words in (
            ([sys.executable, "-E", "-c", "print('ran')"], {}, "'-E' Python leaves PYTHONPATH out"),
            ([sys.executable, "-W", "ignore", "-uIc", "print('ran')"], {}, "'-uIc' Python leaves PYTHONPATH out"),
            ([sys.executable, "-c", "print('ran')"], {"TIERPILOT_SWAP_DIR": "/nonexistent"}, "TIERPILOT_SWAP_DIR"),
        ):
            ended = subprocess.run(
                [PROGRAM, "run", "--budget", BIG, "--device", "cpu", "--", *command],
                env={**os.environ, **environment}, capture_output=True, text=True, timeout=60,
            )
            self.assertNotEqual(ended.returncode, 0)
            self.assertIn(words, ended.stderr)
            self.assertNotIn("ran", ended.stdout)

    def test_other_options_of_python_are_its_own(self):
        for options in (["-WError::SyntaxWarning"], ["-X", "utf8=1"], ["-Ximporttime"], ["-u"], ["-m", "this", "-E"], []):
            command = [sys.executable, *options]
            ended = subprocess.run(
                [PROGRAM, "run", "--budget", BIG, "--tiers", "memory=1MiB", "--", *command],
                input="print('ran')", capture_output=True, text=True, timeout=60,
            )
            self.assertEqual(ended.returncode, 0, (options, ended.stderr))

    def test_a_wrong_argument_is_named(self):
        for settings, error, words in (
            ({"budget": True}, TypeError, "budget True.*not a bool"),
            ({"budget": [1]}, TypeError, r"budget \[1\].*not a list"),
            ({"budget": b"4GiB"}, TypeError, "budget b'4GiB'.*not a bytes"),
            ({"budget": float("nan")}, ValueError, "budget nan.*whole number"),
            ({"budget": float("inf")}, ValueError, "budget inf.*whole number"),
            ({"budget": 1.5}, ValueError, "budget 1.5.*whole number"),
            ({"budget": -5}, ValueError, "budget -5.*above 0"),
            ({"budget": 0.0}, ValueError, "budget 0.0.*above 0"),
            ({"budget": "0"}, ValueError, "budget '0'.*above 0"),
            ({"budget": "4"}, ValueError, "budget '4'.*4 bytes holds no tensor: say a unit"),
            ({"budget": 1 << 63}, ValueError, "budget 9223372036854775808.*below 8 EiB"),
            ({"budget": (1 << 64) + (1 << 30)}, ValueError, "budget 18446744074783293440.*below 8 EiB"),
            ({"budget": "4GiB\0x"}, ValueError, r"budget '4GiB\\x00x'.*a budget is a size"),
            ({"tiers": ["memory=64MiB"]}, TypeError, r"tiers \['memory=64MiB'\].*as a str.*not as a list"),
            ({"tiers": 5}, TypeError, "tiers 5.*as a str"),
            ({"tiers": "memory=64MiB\0"}, ValueError, "tiers .*character 0"),
            ({"policy": None}, TypeError, "policy None.*as a str"),
            ({"policy": "swap\0"}, ValueError, "policy .*character 0"),
            ({"device": 0}, TypeError, "device 0.*as a str"),
            ({"device": "meta"}, ValueError, "device 'meta' is not known"),
            ({"plan_file": 5}, TypeError, "plan_file 5"),
            ({"states": "no"}, TypeError, "states 'no'.*True or False.*not as a str"),
            ({"recompute": "0"}, TypeError, "recompute '0'.*True or False"),
            ({"plan_file": "plans\0"}, ValueError, "plan_file .*character 0"),
        ):
            with self.subTest(**settings), self.assertRaisesRegex(error, words):
                tierpilot.swap(**{"budget": BIG, "tiers": "memory=64MiB", **settings})

    def test_what_says_the_same_is_taken(self):
        one = tierpilot.swap(3 << 30, tiers="memory=64MiB", device="cpu")
        self.assertEqual(one.statistics()["budget_bytes"], 3 << 30)
        for budget in (float(3 << 30), "3GiB", torch.tensor(3 << 30)):
            self.assertIs(tierpilot.swap(budget, tiers="memory=64MiB", device=torch.device("cpu")), one)

    def test_a_wrong_budget_of_a_task_is_named(self):
        for budget in ("much", "0", "4", "-1", "nan", "1.5.2", "99999999999999999999"):
            with unittest.mock.patch.dict(os.environ, TIERPILOT_SWAP_BUDGET=budget):
                with self.subTest(budget=budget), self.assertRaisesRegex(ValueError, "TIERPILOT_SWAP_BUDGET '.*a budget"):
                    tierpilot.swap()

    def test_the_same_settings_are_the_same_swap(self):
        self.assertIs(tierpilot.swap(BIG, "none"), tierpilot.swap(BIG, "none"))


if __name__ == "__main__":
    unittest.main()
