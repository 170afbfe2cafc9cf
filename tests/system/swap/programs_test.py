#!/usr/bin/env python3
"""Budgets, settings, and programs that know nothing of swapping."""
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

from scene import BIG, MODULES, PROGRAM, Case, Swap, data, net, train

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
                     "--", sys.executable, "-c", Programs.SCRIPT],
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
                file.write(Programs.SCRIPT)
            # The launcher of PyTorch 1.13 fails without redirects under Python 3.11, which lists no flag of 0.
            launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=3",
                        "--redirects=1", "--tee=1", "--log_dir", folder]
            ended = subprocess.run(
                [PROGRAM, "run", "--budget", "3GiB", "--tiers", "memory=96MiB", "--report", report, "--",
                 sys.executable, *launcher, script],
                stdout=subprocess.DEVNULL, timeout=300,
            )
            self.assertEqual(ended.returncode, 0)
            with open(report, encoding="utf-8") as file:
                budgets = [json.loads(line)["budget_bytes"] for line in file]
        self.assertEqual(budgets, [1 << 30] * 3)

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


class Programs(Case):
    SCRIPT = """
import sys, torch
torch.manual_seed(3)
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(6)])
for _ in range(4):
    loss = model(torch.ones(256, 512)).square().sum()
    model.zero_grad()
    loss.backward()
print(model[0].weight.grad.sum().item(), sys.argv[1:])
"""

    def run_it(self, *before, **environment):
        return subprocess.run(
            [*before, sys.executable, "-c", self.SCRIPT, "--lr", "1"],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
        )

    def test_a_script_that_knows_nothing_of_it(self):
        plain = self.run_it()
        with tempfile.NamedTemporaryFile() as report:
            swapped = self.run_it(
                PROGRAM, "run", "--budget", BIG, "--policy", "swap-all", "--tiers", "memory=64MiB",
                "--report", report.name, "--"
            )
            self.assertEqual(swapped.returncode, 0, swapped.stderr)
            self.assertEqual(swapped.stdout, plain.stdout)
            said = json.loads(report.read())
        self.assertGreater(said["copies_in"], 4)

    def test_a_script_that_asks_first_whether_pytorch_is_there(self):
        self.SCRIPT = "import importlib.util\nassert importlib.util.find_spec('torch')\n" * 2 + self.SCRIPT
        with tempfile.NamedTemporaryFile() as report:
            swapped = self.run_it(
                PROGRAM, "run", "--budget", BIG, "--policy", "swap-all", "--tiers", "memory=64MiB",
                "--report", report.name, "--"
            )
            self.assertEqual(swapped.returncode, 0, swapped.stderr)
            said = json.loads(report.read())
        self.assertGreater(said["copies_in"], 4)

    def test_a_report_that_cannot_be_written_is_a_warning(self):
        with tempfile.TemporaryDirectory() as folder:
            goes = os.path.join(folder, "none")
            os.mkdir(goes)
            self.SCRIPT += f"import os; os.rmdir({goes!r})"
            swapped = self.run_it(
                PROGRAM, "run", "--budget", BIG, "--tiers", "memory=64MiB", "--report", os.path.join(goes, "report"), "--"
            )
        self.assertEqual(swapped.returncode, 0)
        self.assertRegex(swapped.stderr, "report cannot be written: .*No such file.*none/report")
        self.assertNotIn("Traceback", swapped.stderr)

    def test_a_script_whose_threads_are_the_first_to_train(self):
        self.SCRIPT = """
import threading, torch
torch.set_num_threads(1)
torch.manual_seed(0)
models = [torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Tanh(), torch.nn.Linear(256, 256)) for _ in range(3)]
begin, trained = threading.Barrier(3), []
def train(model):
    optimiser = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    begin.wait()
    for step in range(8):
        optimiser.zero_grad()
        model(torch.full((256, 256), step / 10)).square().mean().backward()
        optimiser.step()
    trained.append(model)
threads = [threading.Thread(target=train, args=(model,)) for model in models]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(trained), [p.sum().item() for model in models for p in model.parameters()])
"""
        plain = self.run_it()
        swapped = self.run_it(
            PROGRAM, "run", "--budget", "1MiB", "--policy", "swap-all", "--states", "--tiers", "memory=256MiB", "--"
        )
        self.assertEqual(swapped.returncode, 0, swapped.stderr)
        self.assertEqual(swapped.stdout, plain.stdout, swapped.stderr)

    def test_a_script_whose_layers_are_computed_again(self):
        plain = self.run_it()
        with tempfile.NamedTemporaryFile() as report:
            again = self.run_it(
                PROGRAM, "run", "--budget", BIG, "--policy", "checkpoint", "--recompute", "--tiers", "memory=64MiB",
                "--report", report.name, "--"
            )
            self.assertEqual(again.returncode, 0, again.stderr)
            self.assertEqual(again.stdout, plain.stdout)
            said = json.loads(report.read())
        self.assertEqual((said["segments"], said["recomputed_segments"]), (12, 9))
        self.assertEqual(said["copies_out"], 0)

    def test_the_next_run_starts_with_what_was_learned(self):
        plain = self.run_it()
        with tempfile.TemporaryDirectory() as folder:
            plans, report = os.path.join(folder, "plans"), os.path.join(folder, "report")

            def run(budget=BIG):
                ended = self.run_it(
                    PROGRAM, "run", "--budget", budget, "--tiers", "memory=64MiB", "--plan-file", plans,
                    "--report", report, "--"
                )
                self.assertEqual((ended.returncode, ended.stdout), (0, plain.stdout), ended.stderr)
                with open(report, encoding="utf-8") as file:
                    return json.loads(file.readlines()[-1]), ended.stderr

            first, _ = run()
            self.assertGreaterEqual(first["learning_steps"], 2)
            self.assertEqual(first["copies_out"], 0)  # all plainly fits, from the first step on
            second, _ = run()
            self.assertEqual((second["restored_steps"], second["known_steps"]), (1, 1))
            self.assertEqual(second["learning_steps"], 0)
            # There is room for all: a known step moves nothing and waits for nothing.
            self.assertEqual((second["copies_out"], second["stalls"]), (0, 0))

            other, said = run("7GiB")
            self.assertEqual(other["restored_steps"], 0)
            self.assertIn("another budget", said)
            with open(plans, "r+b") as file:
                file.seek(200)
                file.write(b"?")
            damaged, said = run("7GiB")
            self.assertEqual(damaged["restored_steps"], 0)
            self.assertIn("checksum", said)
            again, said = run("7GiB")  # it was replaced
            self.assertEqual((again["restored_steps"], said), (1, ""))
            self.assertEqual(sorted(os.listdir(folder)), ["plans", "report"])

    def test_a_task_has_a_budget_and_swaps_only_where_it_is_asked_to(self):
        given = {"TIERPILOT_SWAP_BUDGET": BIG, "TIERPILOT_SWAP_TIERS": "memory=64MiB"}
        plain = self.run_it(**given, TIERPILOT_SWAP_LIBRARY="/nonexistent")
        self.assertEqual((plain.returncode, plain.stderr), (0, ""))
        with tempfile.NamedTemporaryFile() as report:
            swapped = self.run_it(PROGRAM, "run", "--policy", "swap-all", "--report", report.name, "--", **given)
            self.assertEqual((swapped.returncode, swapped.stdout), (0, plain.stdout), swapped.stderr)
            said = json.loads(report.read())
        self.assertGreater(said["copies_in"], 4)
        self.assertEqual(list(said["host_bytes_by_tier"]), ["memory"])
        neither = self.run_it(PROGRAM, "run", "--")
        self.assertEqual((neither.returncode, neither.stdout), (2, ""))
        self.assertRegex(neither.stderr, r"--budget.*TIERPILOT_SWAP_BUDGET")

    def test_it_swaps_in_the_main_thread_where_another_one_imports_pytorch(self):
        other = """
import threading
thread = threading.Thread(target=lambda: __import__("torch"))
thread.start()
thread.join()
"""
        plain = self.run_it()
        with tempfile.NamedTemporaryFile() as report:
            swapped = subprocess.run(
                [PROGRAM, "run", "--budget", BIG, "--policy", "swap-all", "--tiers", "memory=64MiB", "--report", report.name,
                 "--", sys.executable, "-c", other + self.SCRIPT, "--lr", "1"],
                capture_output=True, text=True, timeout=300,
            )
            self.assertEqual((swapped.returncode, swapped.stdout, swapped.stderr), (0, plain.stdout, ""))
            said = json.loads(report.read())
        self.assertGreater(said["copies_in"], 4)

    def test_wrong_arguments_start_nothing(self):
        for budget in ("much", "0", "4", "-1", "0GiB", "9999TiB"):
            for before in ({"TIERPILOT_SWAP_BUDGET": budget}, {}):
                said = () if before else ("--budget", budget)
                ended = self.run_it(PROGRAM, "run", *said, "--", **before)
                self.assertEqual((ended.returncode, ended.stdout), (2, ""), budget)
                self.assertIn("--budget", ended.stderr)

    def test_a_plan_file_that_is_none_is_told_before_the_start_and_stays(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("notes")
            file.flush()
            ended = self.run_it(PROGRAM, "run", "--budget", BIG, "--plan-file", file.name, "--")
            self.assertEqual((ended.returncode, ended.stdout), (2, ""))
            self.assertIn("no plan file", ended.stderr)
            with open(file.name) as again:
                self.assertEqual(again.read(), "notes")

    def test_files_that_cannot_be_written_are_told_before_the_start(self):
        with tempfile.TemporaryDirectory() as folder:
            fifo, file, loop = (os.path.join(folder, name) for name in ("fifo", "file", "loop"))
            os.mkfifo(fifo)
            with open(file, "w", encoding="utf-8"):
                pass
            os.symlink("none/there", loop)
            for option, path in [
                ("--report", folder), ("--plan-file", folder), ("--plan-file", fifo),
                *((option, os.path.join(under, "it")) for option in ("--report", "--plan-file")
                  for under in (os.path.join(folder, "none"), file)),
                ("--report", loop), ("--plan-file", loop),
            ]:
                ended = self.run_it(PROGRAM, "run", "--budget", BIG, option, path, "--")
                self.assertEqual((ended.returncode, ended.stdout), (2, ""), path)
                self.assertIn(option, ended.stderr)
                self.assertIn(path, ended.stderr)
            self.assertEqual(sorted(os.listdir(folder)), ["fifo", "file", "loop"])

    def test_a_directory_that_is_memory_is_warned_of(self):
        if not os.path.isdir("/dev/shm"):
            self.skipTest("no /dev/shm")
        for tiers, code, words in (("dir:/dev/shm=16MiB", 4, "which is memory"), ("memory=16MiB", 0, "^$")):
            ended = subprocess.run([PROGRAM, "tiers", "--tiers", tiers], capture_output=True, text=True, timeout=300)
            self.assertEqual(ended.returncode, code)
            self.assertRegex(ended.stderr, words)

    def test_the_module_needs_no_torch_for_jobs(self):
        code = "import sys; sys.modules['torch'] = None; import tierpilot; tierpilot.job()"
        subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": MODULES}, check=True)


if __name__ == "__main__":
    unittest.main()
