#!/usr/bin/env python3
"""What `tierctl model describe` and `tierctl predictor` say of files that are none, and of numbers that are none."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

LAB, TABLE = sys.argv.pop(1), sys.argv.pop(1)
WAITS_S = 100  # for what would hang


def lab(*words, **more):
    return subprocess.run([LAB, *words], capture_output=True, text=True, timeout=WAITS_S, **more)


def varint(value):
    low = value & 127
    return bytes([low]) if value < 128 else bytes([low | 128]) + varint(value >> 7)


def field(number, value):
    """Of a message of protobuf."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def node(kind, inputs, output, *attributes):
    parts = [field(1, name) for name in inputs] + [field(2, output), field(4, kind)]
    return b"".join(parts + [field(5, attribute) for attribute in attributes])


def body(name, value):
    """An attribute that is a graph."""
    return field(1, name) + field(6, value) + field(20, 5)


def tensor(name, kind, *sizes):
    dims = b"".join(field(1, field(1, size) if isinstance(size, int) else field(2, size)) for size in sizes)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, dims)))


def model(nodes, inputs, outputs):
    graph = b"".join(field(1, each) for each in nodes) + field(2, "g")
    graph += b"".join(field(11, each) for each in inputs) + b"".join(field(12, each) for each in outputs)
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


FLOAT, BOOL = 1, 9


class Predictor(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def written(self, name, content):
        with open(self.path(name), "wb" if isinstance(content, bytes) else "w") as file:
            file.write(content)
        return self.path(name)

    def rows(self, count):
        with open(TABLE) as table:
            return table.read().splitlines()[: 1 + count]

    def refused(self, *words, code=None):
        done = lab(*words)
        self.assertNotEqual(done.returncode, 0, (words, done.stdout))
        if code is not None:
            self.assertEqual(done.returncode, code, (words, done.stderr))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def card(self):
        relu = model([node("Relu", ["x"], "y")], [tensor("x", FLOAT, 4, 64)], [tensor("y", FLOAT, 4, 64)])
        said = lab("-j", "model", "describe", self.written("relu.onnx", relu))
        self.assertEqual(said.returncode, 0, said.stderr)
        return said.stdout

    def reads(self, file):
        """All commands, each with that file where it reads one."""
        card = self.written("card.json", self.card())
        out = ("--out", self.path("p.json"))
        return (
            ("model", "describe", file),
            ("predictor", "predict", file),
            ("predictor", "predict", card, "--predictor", file),
            ("predictor", "train", "--data", file, *out),
            ("predictor", "train", "--data", TABLE, "--pairs", file, *out),
            ("predictor", "evaluate", "--data", file),
            ("predictor", "evaluate", "--data", TABLE, "--train", file),
        )

    def test_a_pipe_that_nobody_writes_to_is_refused(self):
        pipe = self.path("pipe")
        os.mkfifo(pipe)
        for words in self.reads(pipe):
            self.assertIn(pipe, self.refused(*words), words)

    def test_a_file_without_end_is_refused(self):
        for words in self.reads("/dev/zero"):
            self.assertIn("/dev/zero", self.refused(*words), words)

    def test_an_empty_file_is_refused(self):
        for words in self.reads(self.written("empty", "")):
            self.assertIn(self.path("empty"), self.refused(*words), words)

    def test_a_pipe_that_somebody_writes_to_is_a_file(self):
        said = lab("-j", "predictor", "predict", "/dev/stdin", input=self.card())
        self.assertIn(said.returncode, (0, 4), said.stderr)
        self.assertIn("milli", json.loads(said.stdout))
        table = "\n".join(self.rows(30)) + "\n"
        trained = lab("predictor", "train", "--data", "/dev/stdin", "--out", self.path("p.json"), input=table)
        self.assertEqual(trained.returncode, 0, trained.stderr)

    def test_a_model_may_come_through_a_pipe(self):
        of_file = self.card()
        with open(self.path("relu.onnx"), "rb") as file:
            cat = subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE)
        said = lab("-j", "model", "describe", "/dev/stdin", stdin=cat.stdout)
        cat.stdout.close()
        cat.wait(WAITS_S)
        self.assertEqual((said.returncode, said.stdout), (0, of_file), said.stderr)

    def test_no_number_is_refused(self):
        card = self.written("card.json", self.card())
        for number in ("nan", "-nan", "inf", "1e999"):
            for words in (
                ("policy", "evaluate", "--suite", "sharing", "--in-time", "--load", number),
                ("predictor", "predict", card, "--speed", number),
                ("predictor", "predict", card, "--cores", number),
                ("predictor", "collect", "--out", self.path("t.csv"), "--seconds", number),
                ("predictor", "collect", "--out", self.path("t.csv"), "--time-limit", number),
                ("quality", "predict", card, "--at", number),
            ):
                self.assertIn(words[-2], self.refused(*words, code=2))
        self.assertFalse(os.path.exists(self.path("t.csv")))

    def test_a_row_that_is_wrong_is_named_and_nothing_is_trained(self):
        header, *rows = self.rows(3)
        names = header.split(",")
        for name, value in (("memory_bytes", "-5"), ("flops", "1e300"), ("iteration_s", "nan")):
            cells = rows[1].split(",")
            cells[names.index(name)] = value
            table = self.written("t.csv", "\n".join([header, rows[0], ",".join(cells), rows[2], ""]))
            said = self.refused("predictor", "train", "--data", table, "--out", self.path("p.json"))
            self.assertIn(f"{table}:3: its '{name}' is '{value}'", said)
        short = self.written("t.csv", "\n".join([header, rows[0], rows[1][:40], ""]))
        self.assertIn(f"{short}:3: ", self.refused("predictor", "train", "--data", short, "--out", self.path("p.json")))
        self.assertFalse(os.path.exists(self.path("p.json")))

    def test_a_card_is_named_once(self):
        card = json.loads(self.card())
        del card["flops"]
        path = self.written("card.json", json.dumps(card))
        self.assertEqual(self.refused("predictor", "predict", path), f"error: '{path}': it has no 'flops'\n")

    def test_the_batch_of_a_file_is_its_own(self):
        self.assertEqual(json.loads(self.card())["batch"], 4)
        self.assertIn("batch of 4", self.refused("model", "describe", self.path("relu.onnx"), "--batch", "4096"))

    def test_training_writes_over_no_table_and_no_other_file(self):
        with open(TABLE) as file:
            rows = file.readlines()
        table = self.written("t.csv", "".join(rows[:40]))
        other = self.written("other.json", '{"dear": 1}')
        self.assertIn("is one of the tables", self.refused("predictor", "train", "--data", table, "--out", table))
        self.assertIn("no predictor", self.refused("predictor", "train", "--data", table, "--out", other))
        for path, text in ((table, "".join(rows[:40])), (other, '{"dear": 1}')):
            with open(path) as file:
                self.assertEqual(file.read(), text)
        out = self.path("p.json")
        for _ in range(2):  # a predictor it replaces
            self.assertIn(lab("predictor", "train", "--data", table, "--out", out).returncode, (0, 4))

    def test_what_is_trained_on_few_architectures_says_so(self):
        with open(TABLE) as file:
            rows = file.readlines()
        table = self.written("one.csv", "".join(rows[:2]))
        said = lab("predictor", "train", "--data", table, "--out", self.path("p.json"))
        self.assertEqual(said.returncode, 4, said.stderr)
        self.assertIn("1 architectures", said.stderr)

    def evaluated(self, prefix):
        """Rows of one architecture, by what is installed."""
        header, *rows = self.rows(10_000)
        own = [prefix + row for row in rows if row.startswith("gru,")]
        said = lab("-j", "predictor", "evaluate", "--data", self.written("gru.csv", "\n".join([header, *own, ""])))
        self.assertEqual(said.returncode, 0, said.stderr)
        return json.loads(said.stdout)

    def test_one_architecture_is_tested_by_what_is_installed(self):
        value = self.evaluated("other_")
        self.assertEqual(value["installed"], {"tested_rows": 23, "known_rows": 0, "unlike_rows": 0})
        for study in value["studies"]:
            self.assertEqual([score["split"] for score in study["scores"]], ["installed"])
            self.assertEqual([placed["split"] for placed in study["placed"]], ["installed"])
        use, _, time = value["studies"]
        for study in (use, time):
            self.assertLess(study["scores"][0]["error"], study["goal"])

    def test_an_architecture_that_is_known_is_tested_by_the_other_tables(self):
        value = self.evaluated("")
        self.assertEqual(value["installed"], {"tested_rows": 0, "known_rows": 23, "unlike_rows": 0})
        for study in value["studies"]:
            self.assertEqual({score["split"] for score in study["scores"]}, {"installed tables"})

    def test_options_that_would_change_nothing_are_refused(self):
        card = self.written("card.json", self.card())
        for words in (("--host-speed", "2"), ("--gpu", "cores=5", "--cores", "2"), ("--gpu", "")):
            said = lab("predictor", "predict", card, *words)
            self.assertEqual(said.returncode, 2, words)

    def test_sizes_that_nobody_knows_are_warned_of(self):
        nodes = [node("MatMul", ["x", "w"], "z"), node("Relu", ["z"], "y")]
        inputs = [tensor("x", FLOAT, 4, 784), tensor("w", FLOAT, 5, 10)]  # do not fit
        said = lab("model", "describe", self.written("m.onnx", model(nodes, inputs, [tensor("y", FLOAT)])), "-j")
        self.assertEqual(said.returncode, 4, said.stdout)
        self.assertIn("are not known", said.stdout)

    def test_it_is_said_why_a_card_is_uncertain(self):
        branch = field(1, node("Relu", ["x"], "r")) + field(2, "b") + field(12, tensor("r", FLOAT, 1, 64))
        nodes = [node("If", ["c"], "z", body("then_branch", branch), body("else_branch", branch))]
        inputs = [tensor("x", FLOAT, "N", 64), tensor("c", BOOL, 1)]
        file = self.written("if.onnx", model(nodes, inputs, [tensor("z", FLOAT)]))
        said = lab("model", "describe", file)
        self.assertEqual(said.returncode, 4, said.stderr)
        for word in ("Why", "x[0] = 1", "counted once"):
            self.assertIn(word, said.stdout)
        self.assertIn('"If":1', said.stderr)
        self.assertNotIn("nobody knows", said.stdout + said.stderr)


if __name__ == "__main__":
    unittest.main()
