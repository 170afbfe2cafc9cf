#!/usr/bin/env python3
"""The Python module tierpilot against a node that this test plays."""
import json
import os
import socket
import sys
import tempfile
import unittest

sys.path.insert(0, sys.argv.pop(1))
import tierpilot  # noqa: E402


class WithANode(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "job.sock")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(self.listener.close)
        self.listener.bind(self.path)
        self.listener.listen()
        self.job = tierpilot.Job(self.path, {"RANK": "2", "WORLD_SIZE": "4"})
        self.addCleanup(self.job.close)
        self.node, _ = self.listener.accept()
        self.addCleanup(self.node.close)

    def lines(self):
        return [json.loads(line) for line in self.node.recv(1 << 20).splitlines()]

    def test_reports_are_lines_as_documented(self):
        self.assertTrue(
            self.job.report(iteration=3, iterations=10, samples=64, loss=0.5, accuracy=0.75)
        )
        self.assertEqual(
            self.lines(),
            [
                {
                    "v": 1,
                    "type": "progress",
                    "iteration": 3,
                    "iterations": 10,
                    "samples": 64,
                    "loss": 0.5,
                    "measures": {"accuracy": 0.75},
                }
            ],
        )

    def test_a_loss_that_is_no_number_is_null(self):
        self.job.report(iteration=1, loss=float("nan"), gain=float("inf"))
        message = self.lines()[0]
        self.assertIsNone(message["loss"])
        self.assertIsNone(message["measures"]["gain"])

    def test_it_knows_its_place(self):
        self.assertEqual((self.job.rank, self.job.world_size), (2, 4))

    def test_it_hears_that_it_is_to_stop(self):
        self.assertIsNone(self.job.should_stop())
        self.node.sendall(b'{"v":1,"type":"stop","reason":"node drains"}\n')
        self.assertEqual(self.job.should_stop(), "node drains")

    def test_what_the_node_says_wrongly_is_left_out(self):
        self.node.sendall(b'nonsense\n[1]\n{"type":"later"}\n{"type":"error","what":"bad line"}\n')
        self.assertIsNone(self.job.should_stop())
        self.assertEqual(self.job.errors, ["bad line"])

    def test_a_node_that_does_not_read_never_makes_it_wait_nor_tears_a_line(self):
        sent = 0
        while self.job.report(iteration=sent, note=1.0):
            sent += 1
            self.assertLess(sent, 1_000_000)
        self.assertGreater(self.job.dropped, 0)
        self.node.setblocking(False)
        got = b""
        for _ in range(10_000):
            try:
                got += self.node.recv(1 << 16)
            except BlockingIOError:
                if self.job.report(iteration=10**9):
                    break
        got += self.node.recv(1 << 16)
        numbers = [json.loads(line)["iteration"] for line in got.splitlines()]
        self.assertEqual(numbers[:sent], list(range(sent)))
        self.assertEqual(numbers[-1], 10**9)

    def test_a_node_that_is_gone_is_no_error(self):
        self.node.close()
        for i in range(3):
            self.job.report(iteration=i)
        self.assertFalse(self.job.connected)
        self.assertIsNone(self.job.should_stop())

    def test_wrong_numbers_are_the_callers_error(self):
        with self.assertRaises(ValueError):
            self.job.report(iteration=-1)


class Alone(unittest.TestCase):
    def test_without_a_node_everything_does_nothing(self):
        job = tierpilot.Job(None, {})
        self.assertFalse(job.connected)
        self.assertFalse(job.report(iteration=1, loss=0.1))
        self.assertIsNone(job.should_stop())

    def test_a_socket_that_is_not_there_is_as_no_node(self):
        self.assertFalse(tierpilot.Job("/nonexistent/job.sock", {}).connected)

    def test_there_is_one_job_for_the_process(self):
        self.assertIs(tierpilot.job(), tierpilot.job())


if __name__ == "__main__":
    unittest.main()
