#!/usr/bin/env python3
"""tiertool swap record: the log of a step of a program that knows nothing of it, and its replay."""
import functools
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

TIERTOOL = sys.argv[1]
del sys.argv[1]
if not importlib.util.find_spec("torch"):  # to import it takes a second
    print(f"skipped: no PyTorch for {sys.executable}")
    sys.exit(77)

# LAYERS layers that keep their output for the backward pass, each of BATCH * WIDTH floats.
LAYERS, BATCH, WIDTH = 12, 4096, 32
PROGRAM = f"""
import torch
torch.manual_seed(0)
torch.set_num_threads(1)
layers = [layer for _ in range({LAYERS}) for layer in (torch.nn.Linear({WIDTH}, {WIDTH}), torch.nn.Tanh())]
model = torch.nn.Sequential(*layers)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
losses = []
for step in range(5):
    x = torch.randn({BATCH}, {WIDTH})
    loss = (model(x) - x.flip(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses)
"""


def run(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)


KEPT = tempfile.TemporaryDirectory()


def record(log, program, *options):
    return run(TIERTOOL, "-j", "swap", "record", "--log", log, *options, "--", sys.executable, "-c", program)


def lines_of(log):
    with open(log, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@functools.cache
def recorded():
    """PROGRAM's log, and what was said as it was made."""
    log = os.path.join(KEPT.name, "step.dtr")
    return log, record(log, PROGRAM)


class Record(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.log = os.path.join(folder.name, "step.dtr")

    def record(self, program, *options):
        return record(self.log, program, *options)

    def lines(self):
        return lines_of(self.log)

    def test_the_program_computes_what_it_computes_alone(self):
        alone = run(sys.executable, "-c", PROGRAM).stdout
        _, watched = recorded()
        self.assertEqual(watched.returncode, 0, watched.stderr)
        self.assertTrue(watched.stderr.startswith(alone), watched.stderr)
        self.assertEqual(json.loads(watched.stdout)["exit_code"], 0)
        beside = run(TIERTOOL, "swap", "record", "--log", self.log, "--", sys.executable, "-c", PROGRAM)
        self.assertTrue(beside.stdout.startswith(alone), beside.stdout)

    def test_what_a_step_does_not_use_goes_on_as_it_would(self):
        program = PROGRAM.replace(
            "losses = []",
            "losses = []\n"
            "unused = torch.nn.Parameter(torch.ones(4))\n"
            "unused.grad = torch.ones(4)\n"
            "optimizer.add_param_group({'params': [unused], 'weight_decay': 0.1})",
        ).replace("optimizer.zero_grad()", "optimizer.zero_grad(set_to_none=False)") + "print(unused.tolist())\n"
        watched = self.record(program)
        self.assertEqual(watched.returncode, 0, watched.stderr)
        self.assertTrue(watched.stderr.startswith(run(sys.executable, "-c", program).stdout), watched.stderr)

    def test_a_forward_and_a_backward_pass_are_in_it_with_their_bytes(self):
        log, ended = recorded()
        self.assertEqual(ended.returncode, 0, ended.stderr)
        told = json.loads(ended.stdout)
        lines = lines_of(log)
        calls = [line for line in lines if line["INSTRUCTION"] == "CALL"]
        middle = lines.index({"INSTRUCTION": "ANNOTATE", "ANNOTATION": "BACKWARD"})
        forward = [line["NAME"] for line in lines[:middle] if line["INSTRUCTION"] == "CALL"]
        backward = [line["NAME"] for line in lines[middle:] if line["INSTRUCTION"] == "CALL"]
        self.assertEqual(sum("addmm" in name for name in forward), LAYERS)
        self.assertEqual(sum("tanh_backward" in name for name in backward), LAYERS)
        self.assertFalse(any("tanh_backward" in name for name in forward))
        self.assertGreaterEqual(told["operators"], len(calls))
        # At the end of the forward pass: the output of each tanh and the input; an output of a Linear goes.
        kept = (LAYERS + 1) * BATCH * WIDTH * 4
        self.assertGreater(told["peak_bytes"], kept)
        self.assertLess(told["peak_bytes"], kept * 1.5)
        names = set()
        for line in lines:
            for name in [line["NAME"]] if line["INSTRUCTION"] == "CONSTANT" else line.get("RESULT", []):
                self.assertNotIn(name, names)
                names.add(name)
            self.assertLessEqual(set(line.get("ARGS", [])), names)

    def test_it_replays_under_a_budget(self):
        log, _ = recorded()
        replayed = run(TIERTOOL, "-j", "swap", "replay", log, "--budget-ratio", "1,0.6", "--policy", "swap,h_DTR",
                       "--thrash-limit", "1000")  # an operator that a busy machine held up is dear to run again
        self.assertEqual(replayed.returncode, 0, replayed.stderr)
        rows = json.loads(replayed.stdout)["results"]
        self.assertEqual(len(rows), 4)
        for row in rows:
            self.assertTrue(row["done"], row)
            self.assertLessEqual(row["peak_bytes"], row["budget_bytes"])
            self.assertGreaterEqual(row["overhead"], 1)

    def test_a_backward_pass_within_another_is_no_step_of_its_own(self):
        program = PROGRAM.replace(
            "model = torch.nn.Sequential(*layers)",
            "from torch.utils.checkpoint import checkpoint\n"
            "class Again(torch.nn.Sequential):\n"
            "    def forward(self, x):\n"
            "        x.requires_grad_()\n"
            "        for at in range(0, len(self), 8):\n"
            "            x = checkpoint(torch.nn.Sequential(*list(self)[at:at + 8]), x)\n"
            "        return x\n"
            "model = Again(*layers)",
        )
        ended = self.record(program)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        lines = self.lines()
        middle = lines.index({"INSTRUCTION": "ANNOTATE", "ANNOTATION": "BACKWARD"})
        backward = [line["NAME"] for line in lines[middle:] if line["INSTRUCTION"] == "CALL"]
        self.assertEqual(sum("tanh_backward" in name for name in backward), LAYERS)
        self.assertEqual(sum(line.get("ANNOTATION") == "BACKWARD" for line in lines), 1)

    def test_a_program_that_trains_nothing_is_told_apart(self):
        with open(self.log, "w", encoding="utf-8") as file:
            file.write("of an earlier run\n")
        ended = self.record("print(1)")
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("no step was recorded", ended.stderr)
        self.assertFalse(os.path.exists(self.log))
        with open(self.log + ".earlier", encoding="utf-8") as file:
            self.assertEqual(file.read(), "of an earlier run\n")
        self.assertIn(".earlier", ended.stderr)
        ended = self.record(PROGRAM, "--step", "6")
        self.assertIn("at least 6 steps", ended.stderr)

    def test_a_folder_that_is_not_there_is_told_before_the_program_runs(self):
        self.log = "/no/such/folder/step.dtr"
        ended = self.record("print('it ran')")
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("/no/such/folder", ended.stderr)
        self.assertNotIn("it ran", ended.stdout + ended.stderr)

    def test_an_older_log_is_there_until_the_program_has_ended_whose_status_is_told(self):
        with open(self.log, "w", encoding="utf-8") as file:
            file.write("of an earlier run\n")
        looks = f"print(open({self.log!r}).read(), flush=True)\n"
        ended = self.record(looks + PROGRAM + looks + "raise SystemExit(7)")
        self.assertEqual(ended.returncode, 7, ended.stderr)
        self.assertEqual(ended.stderr.count("of an earlier run"), 2)
        self.assertIn("INSTRUCTION", self.lines()[0])
        self.assertEqual(os.listdir(os.path.dirname(self.log)), ["step.dtr"])

    def test_what_cannot_be_started_replaces_nothing(self):
        with open(self.log, "w", encoding="utf-8") as file:
            file.write("of an earlier run\n")
        missing = run(TIERTOOL, "swap", "record", "--log", self.log, "--", "/no/such/program")
        self.assertIn("/no/such/program", missing.stderr)
        with open(self.log, encoding="utf-8") as file:
            self.assertEqual(file.read(), "of an earlier run\n")

    def test_what_is_no_plain_file_is_refused_and_stays(self):
        folder = os.path.dirname(self.log)
        fifo, empty, link = (os.path.join(folder, name) for name in ("fifo", "empty", "link"))
        os.mkfifo(fifo)
        os.mkdir(empty)
        os.symlink("fifo", link)
        for self.log in (fifo, empty, link):
            ended = self.record("print('it ran')")
            self.assertNotEqual(ended.returncode, 0)
            self.assertIn("no plain file", ended.stderr)
            self.assertNotIn("it ran", ended.stdout + ended.stderr)
        self.assertEqual(sorted(os.listdir(folder)), ["empty", "fifo", "link"])

    def test_a_link_is_followed(self):
        folder = os.path.dirname(self.log)
        os.mkdir(os.path.join(folder, "kept"))
        os.symlink("kept/real.dtr", self.log)
        for _ in range(2):  # to what is to be, and to what is there
            ended = self.record(PROGRAM)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertTrue(os.path.islink(self.log))
            self.assertIn("INSTRUCTION", self.lines()[0])
        self.assertEqual(os.listdir(os.path.join(folder, "kept")), ["real.dtr"])

    def test_a_signal_that_ends_it_ends_the_program_whose_step_is_kept(self):
        waits = "print('ready', flush=True)\nimport time\ntime.sleep(60)\n"
        for sent, program in ((signal.SIGTERM, PROGRAM), (signal.SIGHUP, "")):
            words = TIERTOOL, "swap", "record", "--log", self.log, "--", sys.executable, "-c", program + waits
            recording = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while recording.stdout.readline() not in ("ready\n", ""):
                pass
            recording.send_signal(sent)
            _, said = recording.communicate(timeout=30)  # both ends of the pipes are closed
            self.assertEqual(recording.returncode, 128 + sent, said)
            self.assertEqual(os.listdir(os.path.dirname(self.log)), ["step.dtr"] if program else ["step.dtr.earlier"])

    def test_a_program_that_swaps_is_refused_as_nothing_would_be_recorded(self):
        refused = run(TIERTOOL, "swap", "record", "--log", self.log, "--", "/usr/bin/tierpilot-swap", "run", "--", "python3")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("record the program that it would run", refused.stderr)

    def test_where_no_step_was_recorded_its_end_is_the_programs_too(self):
        self.assertEqual(self.record("raise SystemExit(9)").returncode, 9)
        self.assertEqual(self.record("pass").returncode, 3)
        missing = run(TIERTOOL, "swap", "record", "--log", self.log, "--", "/no/such/program")
        self.assertNotEqual(missing.returncode, 0)
        self.assertIn("/no/such/program", missing.stderr)


if __name__ == "__main__":
    unittest.main()
