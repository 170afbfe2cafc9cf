#!/usr/bin/env python3
"""Programs that know nothing of swapping."""
import functools
import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings

from scene import BIG, MODULES, PROGRAM, UNAWARE, Case, Swap, train


def run(script, *before, **environment):
    return subprocess.run(
        [*before, sys.executable, "-c", script, "--lr", "1"],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
    )


@functools.cache
def plainly():
    """As a task that has a budget and does not ask for swapping: nothing of it is loaded."""
    given = {"TIERPILOT_SWAP_BUDGET": BIG, "TIERPILOT_SWAP_TIERS": "memory=64MiB"}
    return run(UNAWARE, **given, TIERPILOT_SWAP_LIBRARY="/nonexistent")


class Programs(Case):
    SCRIPT = UNAWARE

    def run_it(self, *before, **environment):
        return run(self.SCRIPT, *before, **environment)

    def test_a_script_that_knows_nothing_of_it(self):
        plain = plainly()
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
        plain = plainly()
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
        plain = plainly()
        with tempfile.TemporaryDirectory() as folder:
            plans, report = os.path.join(folder, "plans"), os.path.join(folder, "report")

            def again():
                ended = self.run_it(
                    PROGRAM, "run", "--budget", BIG, "--tiers", "memory=64MiB", "--plan-file", plans,
                    "--report", report, "--"
                )
                self.assertEqual((ended.returncode, ended.stdout), (0, plain.stdout), ended.stderr)
                with open(report, encoding="utf-8") as file:
                    return json.loads(file.readlines()[-1])

            first = again()
            self.assertGreaterEqual(first["learning_steps"], 2)
            self.assertEqual(first["copies_out"], 0)  # all plainly fits, from the first step on
            second = again()
            self.assertEqual((second["restored_steps"], second["known_steps"]), (1, 1))
            self.assertEqual(second["learning_steps"], 0)
            # There is room for all: a known step moves nothing and waits for nothing.
            self.assertEqual((second["copies_out"], second["stalls"]), (0, 0))
            self.assertEqual(sorted(os.listdir(folder)), ["plans", "report"])

    def test_what_was_learned_otherwise_or_is_damaged_is_told_and_replaced(self):
        with tempfile.TemporaryDirectory() as folder:
            plans = os.path.join(folder, "plans")

            def restored(budget):
                with warnings.catch_warnings(record=True) as said:
                    warnings.simplefilter("always")
                    swap = Swap(budget, "swap", "memory=64MiB", plan_file=plans)
                    steps = swap.statistics()["restored_steps"]
                    train(swap, (24,) * 4, evaluate=False)
                    swap.keep()
                return steps, " ".join(str(warning.message) for warning in said)

            self.assertEqual(restored(BIG), (0, ""))
            steps, said = restored("7GiB")
            self.assertEqual(steps, 0)
            self.assertIn("another budget", said)
            with open(plans, "r+b") as file:
                file.seek(200)
                file.write(b"?")
            steps, said = restored("7GiB")
            self.assertEqual(steps, 0)
            self.assertIn("checksum", said)
            self.assertEqual(restored("7GiB"), (1, ""))
            self.assertEqual(os.listdir(folder), ["plans"])

    def test_a_task_has_a_budget_and_swaps_only_where_it_is_asked_to(self):
        given = {"TIERPILOT_SWAP_BUDGET": BIG, "TIERPILOT_SWAP_TIERS": "memory=64MiB"}
        plain = plainly()
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
        plain = plainly()
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
