#!/usr/bin/env python3
"""Two trainings are measured, a predictor is trained and tested on such tables, and a card of a
module is given to it, by tierpilot-lab as it is installed with tierctl."""
import csv
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import warnings

try:
    import torch
except ImportError:
    print("skipped: PyTorch is not installed (python3-torch)")
    sys.exit(77)

LAB, MODULES, TABLE = sys.argv.pop(1), sys.argv.pop(1), sys.argv.pop(1)
sys.path.insert(0, MODULES)
import tierpilot  # noqa: E402
from tierpilot.collect.architectures import ARCHITECTURES  # noqa: E402
from tierpilot.collect.measure import draw  # noqa: E402
from tierpilot.collect.table import COLUMNS  # noqa: E402


SMALL = "factorisation,bag_of_words"  # architectures of which an iteration takes a millisecond or two
# The first gradient of all does not come.
HANGS = """
import os, signal, sys
def hang():
    import torch
    backward = torch.Tensor.backward
    def hanging(*given, **named):
        try:
            os.mkdir(os.environ["HANGS"])
        except FileExistsError:
            return backward(*given, **named)
        signal.pause()
    torch.Tensor.backward = hanging
if "tierpilot.collect" in sys.orig_argv:  # not who only looks whether there is a PyTorch
    hang()
"""


def lab(*words, **more):
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **more}
    return subprocess.run([LAB, *words], capture_output=True, text=True, env=environment)


def collected(out, *words, **more):
    given = ("--out", out, "--seconds", "0.05", "--python", sys.executable, *words)
    return lab("predictor", "collect", *given, **more)


def begun(out, configurations, *words, **more):
    """It measures small trainings, as many as that."""
    words = [*words, "--architectures", SMALL, "--configurations", str(configurations), "--seconds", "0.05"]
    return subprocess.Popen(
        [LAB, "predictor", "collect", "--out", out, "--python", sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        start_new_session=True,
        **more,
    )


def rows_of(path):
    try:
        with open(path) as file:
            return list(csv.DictReader(file))
    except FileNotFoundError:
        return []


class Collect(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def test_measures_what_it_is_asked_for(self):
        out = self.path("t.csv")
        done = collected(out, "--configurations", "2", "--architectures", "bag_of_words,gru")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(out) as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["architecture"] for row in rows], ["bag_of_words", "gru"])
        for row in rows:
            self.assertTrue(0 < float(row["utilisation_milli"]) <= 1000)
            self.assertGreater(float(row["iteration_s"]), 0)
            self.assertGreater(float(row["busy_s"]), 0)
            self.assertGreater(float(row["calibration_s"]), 0)
            self.assertGreaterEqual(int(row["measured_iterations"]), 5)
            self.assertGreater(int(row["iterations"]), 0)
            # It keeps at least its parameters, and a gradient of each.
            self.assertGreater(int(row["memory_bytes"]), int(row["parameter_bytes"]))
        self.assertEqual(int(rows[0]["Recurrent.count"] or 0), 0)
        self.assertEqual(int(rows[1]["Recurrent.count"]), 1)
        with open(self.path("t.json")) as file:
            machine = json.load(file)["machine"]
        self.assertEqual(machine["torch"], torch.__version__)
        self.train_and_test_on(out)

    def train_and_test_on(self, out):
        predictor = self.path("p.json")
        trained = lab("-j", "predictor", "train", "--data", out, "--out", predictor)
        self.assertEqual(trained.returncode, 4, trained.stderr)
        self.assertIn("2 architectures", trained.stdout)
        self.assertEqual(json.loads(trained.stdout)["configurations"], 2)
        with open(predictor, "rb") as file:
            first = file.read()
        lab("predictor", "train", "--data", out, "--out", predictor)
        with open(predictor, "rb") as file:
            self.assertEqual(file.read(), first)
        tested = lab("-j", "predictor", "evaluate", "--data", out)
        self.assertEqual(tested.returncode, 0, tested.stderr)
        studies = json.loads(tested.stdout)["studies"]
        self.assertEqual(len(studies), 3)
        names = {score["predictor"] for score in studies[0]["scores"]}
        wanted = ["default", "constant", "linear", "nearest-neighbour", "boosted-trees", "flops-only"]
        self.assertEqual(names, {*wanted, "mlp-published"})
        # What is tested is never what was trained on.
        known = lab("-j", "predictor", "evaluate", "--data", out, "--train", out)
        self.assertEqual(json.loads(known.stdout)["studies"], [])

    def test_pairs_are_measured_alone_and_beside_each_other(self):
        out = self.path("pairs.csv")
        done = collected(out, "--pairs", "--configurations", "1", "--architectures", SMALL)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(out) as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 1)
        self.assertEqual(rows[0]["card"], "one core")
        for job in "ab":
            self.assertIn(rows[0][f"model_{job}"], SMALL.split(","))
            kept = float(rows[0][f"together_{job}"]) / float(rows[0][f"alone_{job}"])
            self.assertTrue(0.1 < kept < 3, kept)
            self.assertTrue(0 < float(rows[0][f"milli_{job}"]) <= 1000)
            self.assertGreater(float(rows[0][f"traffic_bytes_s_{job}"]), 0)
        with open(self.path("pairs.json")) as file:
            self.assertEqual(json.load(file)["kind"], "measured pairs of trainings")
        too_few = lab("predictor", "train", "--data", TABLE, "--pairs", out, "--out", self.path("p.json"))
        self.assertNotEqual(too_few.returncode, 0)
        self.assertIn("10 or more", too_few.stderr)
        no_pairs = lab("predictor", "train", "--data", TABLE, "--pairs", TABLE, "--out", self.path("p.json"))
        self.assertIn("--pairs", no_pairs.stderr)

    def expect_that_the_one_that_hangs_is_left_out(self, what, *words):
        out, folder = self.path("t.csv"), self.path("boot")
        os.mkdir(folder)
        with open(os.path.join(folder, "sitecustomize.py"), "w") as file:
            file.write(HANGS)
        words = (*words, "--configurations", "2", "--architectures", SMALL, "--time-limit", "10")
        done = collected(out, *words, PYTHONPATH=folder, HANGS=self.path("hangs"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(os.path.exists(self.path("hangs")))
        self.assertEqual(done.stderr.count("left out"), 1, done.stderr)
        self.assertRegex(done.stderr, f"left out: {what}: .*did not answer within 10.05 s")
        self.assertIn("1 left out", done.stdout)
        with open(out) as file:
            self.assertEqual(len(list(csv.DictReader(file))), 1)

    def test_a_training_that_hangs_is_left_out(self):
        self.expect_that_the_one_that_hangs_is_left_out("factorisation, seed 100000")

    def test_a_pair_of_which_one_hangs_is_left_out(self):
        self.expect_that_the_one_that_hangs_is_left_out(r"\w+ beside \w+", "--pairs")

    def test_a_predictor_learns_the_pairs_that_are_kept(self):
        small, out = self.path("t.csv"), self.path("p.json")
        with open(TABLE) as table, open(small, "w") as file:
            file.writelines(table.readlines()[:31])
        pairs = os.path.join(os.path.dirname(TABLE), "pairs.csv")
        trained = lab("-j", "predictor", "train", "--data", small, "--pairs", pairs, "--out", out)
        self.assertEqual(trained.returncode, 0, trained.stderr)
        self.assertTrue(0.9 < json.loads(trained.stdout)["kept_beside_another"] < 1)
        with open(out) as file:
            self.assertEqual(len(json.load(file)["pairs"]["weights"]), 6)
        tested = lab("-j", "predictor", "evaluate", "--data", pairs)
        self.assertEqual(tested.returncode, 0, tested.stderr)
        studies = json.loads(tested.stdout)["studies"]
        self.assertEqual({study["target"] for study in studies}, {"kept on one core", "kept on two cores"})
        self.assertEqual({score["split"] for study in studies for score in study["scores"]}, {"model"})

    def wait_for(self, condition, running):
        until = time.monotonic() + 100
        while not condition():
            self.assertIsNone(running.poll(), "it ended")
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)

    def test_a_table_that_is_there_is_replaced_only_when_told(self):
        out = self.path("t.csv")
        words = ("--configurations", "1", "--architectures", SMALL)
        with open(out, "w") as file:
            file.write("dear\n")
        refused = collected(out, *words)
        self.assertEqual(refused.returncode, 1)
        self.assertEqual(refused.stderr.count("\n"), 1, refused.stderr)
        self.assertIn("--overwrite", refused.stderr)
        with open(out) as file:
            self.assertEqual(file.read(), "dear\n")
        self.assertEqual(os.listdir(self.folder.name), ["t.csv"])
        done = collected(out, *words, "--overwrite")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(rows_of(out)), 1)
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["t.csv", "t.json"])

    def test_what_stands_where_the_machine_is_described_is_not_replaced(self):
        words = ("--configurations", "1", "--architectures", "mlp")
        with open(self.path("t.json"), "w") as file:
            file.write("dear\n")
        refused = collected(self.path("t.csv"), *words)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("t.json", refused.stderr)
        refused = collected(self.path("u.json"), *words)
        self.assertEqual(refused.returncode, 1)
        self.assertIn(".csv", refused.stderr)
        with open(self.path("t.json")) as file:
            self.assertEqual(file.read(), "dear\n")
        self.assertEqual(os.listdir(self.folder.name), ["t.json"])

    def test_of_two_at_once_the_second_is_refused_and_what_the_first_measured_until_ctrl_c_is_kept(self):
        running = begun(self.path("t.csv"), 1000)
        self.wait_for(lambda: rows_of(self.path("t.csv.part")), running)
        os.killpg(running.pid, signal.SIGSTOP)  # the two are held to one core
        second = collected(self.path("t.csv"), "--configurations", "1", "--architectures", "mlp")
        os.killpg(running.pid, signal.SIGCONT)
        self.assertEqual(second.returncode, 1, second.stdout)
        self.assertRegex(second.stderr, "another .* writes")
        self.expect_kept_at_ctrl_c(running)

    def test_pairs_that_were_measured_until_ctrl_c_are_kept(self):
        running = begun(self.path("t.csv"), 1000, "--pairs")
        self.wait_for(lambda: rows_of(self.path("t.csv.part")), running)
        self.expect_kept_at_ctrl_c(running)

    def expect_kept_at_ctrl_c(self, running):
        os.killpg(running.pid, signal.SIGINT)
        _, said = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 130, said)
        self.assertEqual(said.count("\n"), 1, said)
        measured = len(rows_of(self.path("t.csv")))
        self.assertGreaterEqual(measured, 1)
        self.assertIn(f"stopped: {measured} of 1000", said)
        with open(self.path("t.json")) as file:
            self.assertEqual(json.load(file)["machine"]["torch"], torch.__version__)
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["t.csv", "t.json"])
        self.expect_all_ended(running.pid)

    def expect_all_ended(self, group):
        """Soon: what was forked at that moment is ended by the kernel, behind its parent."""
        until = time.monotonic() + 20
        try:
            while time.monotonic() < until:
                os.killpg(group, 0)
                time.sleep(0.05)
            self.fail("a training is left")
        except ProcessLookupError:
            pass

    def test_ctrl_c_before_anything_is_measured_leaves_nothing(self):
        running = begun(self.path("t.csv"), 1000)
        self.wait_for(lambda: os.path.exists(self.path("t.csv.part")), running)
        os.killpg(running.pid, signal.SIGINT)
        _, said = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 130, said)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertFalse(os.path.exists(self.path("t.csv.part")))
        self.assertEqual(os.path.exists(self.path("t.csv")), "stopped: 0 " not in said, said)

    def test_a_table_that_cannot_be_written_is_told(self):
        for out in ("/dev/full", "/dev/null", self.folder.name, self.path("no/such.csv")):
            refused = collected(out, "--configurations", "1", "--architectures", "mlp")
            self.assertEqual(refused.returncode, 1, refused.stdout)
            self.assertEqual(refused.stderr.count("\n"), 1, refused.stderr)
            self.assertIn(out, refused.stderr)
        # As a full disk: the heading fits.
        limit = 4500

        def few_bytes():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        running = begun(self.path("t.csv"), 1000, preexec_fn=few_bytes)
        _, said = running.communicate(timeout=300)
        self.assertEqual(running.returncode, 1, said)
        # Trainings that write files themselves are left out.
        told = [line for line in said.splitlines() if line.startswith("error:")]
        self.assertEqual(told, said.splitlines()[-1:], said)
        self.assertRegex(told[0], r"t.csv' cannot be written: .*; \d+ rows are in '.*t.csv.part'")
        self.assertFalse(os.path.exists(self.path("t.csv")))

    def test_a_python_without_pytorch_is_named(self):
        for python in ("/bin/false", "/no/such/python3"):
            refused = lab("predictor", "collect", "--out", self.path("t.csv"), "--python", python)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn(python, refused.stderr)
            self.assertIn("PyTorch", refused.stderr)

    def test_the_same_seed_draws_the_same(self):
        for name in ("lenet", "encoder", "recommender", "translator"):
            self.assertEqual(draw(name, 3), draw(name, 3), name)

    def test_architectures_are_of_different_operators(self):
        graphs = set()
        for name in ARCHITECTURES:
            operators = draw(name, 1)[1]["operators"]
            graphs.add(tuple((kind, use["count"]) for kind, use in operators.items()))
            self.assertNotIn("Unknown", operators, name)
        # A card tells two recurrent layers apart by their operations only.
        self.assertGreaterEqual(len(graphs), len(ARCHITECTURES) - 1)
        self.assertGreaterEqual(len(graphs), 12)

    def test_the_table_that_is_kept_has_these_columns(self):
        with open(TABLE) as file:
            rows = csv.DictReader(file)
            self.assertEqual(rows.fieldnames, COLUMNS)
            rows = list(rows)
        self.assertGreaterEqual(len(rows), 500)
        self.assertEqual({row["architecture"] for row in rows}, set(ARCHITECTURES))
        for row in rows[::100]:
            card = draw(row["architecture"], int(row["seed"]))[1]
            self.assertEqual(card["launches"], int(row["launches"]))

    def test_a_card_of_a_module_is_predicted(self):
        model = torch.nn.Sequential(torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
        job = {"optimizer": "Adam", "samples_per_s": 100, "threads": 1}
        card = tierpilot.describe(model, torch.randn(64, 784), iterations=1000, job=job)
        with open(self.path("card.json"), "w") as file:
            json.dump(card, file)
        done = lab("-j", "predictor", "predict", self.path("card.json"))
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertFalse(said["unlike"], said["why"])
        self.assertLess(said["milli"], 200)  # it waits 0.64 s for each batch
        self.assertGreater(said["run_s"], 640)
        self.assertLess(said["run_s"], 700)
        self.assertGreater(said["memory_upper_bytes"], 3 * card["parameter_bytes"])
        del card["flops"]
        with open(self.path("card.json"), "w") as file:
            json.dump(card, file)
        refused = lab("predictor", "predict", self.path("card.json"))
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("flops", refused.stderr)

    def test_nets_that_pytorch_exports_have_sizes_that_are_known(self):
        nets = {
            "lstm": (torch.nn.LSTM(10, 20, batch_first=True), (3, 5, 10)),
            "gru": (torch.nn.GRU(10, 20, 2, bidirectional=True, batch_first=True), (3, 5, 10)),
            "encoder": (torch.nn.TransformerEncoderLayer(32, 4, batch_first=True), (3, 5, 32)),
        }
        for name, (net, size) in nets.items():
            for open_sizes in ({}, {"x": {0: "N"}}):
                file = self.path("net.onnx")
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    torch.onnx.export(net.eval(), torch.randn(size), file, input_names=["x"], dynamic_axes=open_sizes)
                said = lab("-j", "model", "describe", file, "--batch", "3")
                self.assertEqual(said.returncode, 0, said.stderr)
                card = json.loads(said.stdout)
                self.assertEqual((card["unknown_shapes"], card["unknown_operators"]), (0, {}), name)
                self.assertEqual(card["batch"], 3, name)
                self.assertFalse(card["uncertain"], name)
                guessed = json.loads(lab("-j", "model", "describe", file).stdout)
                self.assertEqual(guessed["uncertain"], bool(open_sizes), name)

    def test_says_what_is_wrong(self):
        unknown = collected(self.path("t.csv"), "--architectures", "cathedral")
        self.assertEqual(unknown.returncode, 2)
        self.assertIn("cathedral", unknown.stderr)
        cpu = collected(self.path("t.csv"), "--cpu", "60000")
        self.assertNotEqual(cpu.returncode, 0)
        self.assertIn("60000", cpu.stderr)
        no_table = lab("predictor", "train", "--data", LAB, "--out", self.path("p.json"))
        self.assertNotEqual(no_table.returncode, 0)


if __name__ == "__main__":
    unittest.main()
