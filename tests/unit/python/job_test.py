#!/usr/bin/env python3
"""The Python module tierpilot against a node that this test plays."""
import json
import os
import socket
import sys
import tempfile
import threading
import time
import types
import unittest
import unittest.mock

sys.path.insert(0, sys.argv.pop(1))
import tierpilot  # noqa: E402


_NOW = b'{"v":1,"type":"checkpoint_now","reason":"drain"}\n'


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

    def test_a_report_has_no_more_measures_than_a_node_takes(self):
        self.job.measure(lambda: {f"other_{i}": i for i in range(6)})
        self.assertTrue(self.job.report(iteration=1, **{f"own_{i}": i for i in range(30)}))
        measures = self.lines()[0]["measures"]
        self.assertEqual(len(measures), 32)
        self.assertEqual(sum(name.startswith("own_") for name in measures), 30)
        with self.assertRaisesRegex(ValueError, "33 measures, and 32 are the most"):
            self.job.report(iteration=2, **{f"own_{i}": i for i in range(33)})

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
        patch = unittest.mock.patch("tierpilot.job_channel._MOST_A_SECOND", 10**9)
        patch.start()
        self.addCleanup(patch.stop)
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

    def test_no_more_is_told_in_a_second_than_a_node_reads(self):
        began = time.monotonic()
        sent = [self.job.report(i, iterations=2000) for i in range(1, 2001)]
        passed = time.monotonic() - began
        told = [line["iteration"] for line in self.lines()]
        self.assertEqual(told, [i for i, was_sent in enumerate(sent, 1) if was_sent])
        self.assertTrue(all(sent[:40]))
        self.assertLessEqual(len(told), 42 + 100 * passed)
        self.assertEqual(told[-1], 2000)
        self.assertEqual(self.job.dropped, 2000 - len(told))
        time.sleep(0.05)
        self.assertTrue(self.job.report(2001))

    def test_of_many_ranks_each_is_heard_and_whoever_goes_on_beyond_the_last_is_not_heard_less(self):
        many = tierpilot.Job(self.path, {"LOCAL_WORLD_SIZE": "300"})
        self.addCleanup(many.close)
        self.assertTrue(many.report(1))
        sent = [self.job.report(i, iterations=5) for i in range(5, 500)]
        self.assertLess(sum(sent), 100)
        time.sleep(0.05)
        self.assertTrue(self.job.report(1, iterations=5))

    def test_a_node_that_is_gone_is_no_error(self):
        self.node.close()
        for i in range(3):
            self.job.report(iteration=i)
        self.assertFalse(self.job.connected)
        self.assertIsNone(self.job.should_stop())

    def test_wrong_numbers_are_the_callers_error(self):
        for iteration in (-1, 1 << 64):
            with self.assertRaises(ValueError):
                self.job.report(iteration=iteration)
            with self.assertRaises(ValueError):  # the node would say nothing of such a checkpoint
                self.job.checkpoint("state.pt", iteration=iteration)


class Saving(unittest.TestCase):
    """Rank 0, and a node that answers from a thread."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        path = os.path.join(self.folder.name, "job.sock")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(self.listener.close)
        self.listener.bind(path)
        self.listener.listen()
        self.job = tierpilot.Job(path, {"RANK": "0", "TIERPILOT_CHECKPOINT": "/pool/state",
                                        "TIERPILOT_CHECKPOINT_ITERATION": "40"})
        self.addCleanup(self.job.close)
        self.node, _ = self.listener.accept()
        self.addCleanup(self.node.close)

    def answer(self, before=b"", **message):
        """To the next checkpoint; gives what was asked once the thread is joined."""
        heard = []

        def serve():
            lines = map(json.loads, self.node.makefile())
            heard.append(next(line for line in lines if line["type"] == "checkpoint"))
            self.node.sendall(before + json.dumps({"v": 1, **message}).encode() + b"\n")

        thread = threading.Thread(target=serve)
        thread.start()
        self.addCleanup(thread.join)
        return thread, heard

    def test_it_finds_what_an_earlier_try_saved(self):
        self.assertEqual((self.job.restored, self.job.restored_iteration), ("/pool/state", 40))

    def test_a_checkpoint_waits_until_the_node_has_it(self):
        thread, heard = self.answer(type="checkpoint_saved", iteration=7, bytes=3, ms=1)
        self.assertTrue(self.job.checkpoint("state.pt", iteration=7))
        thread.join()
        self.assertEqual(heard[0], {"v": 1, "type": "checkpoint", "path": "state.pt",
                                    "iteration": 7, "saving_ms": 0})

    def test_a_path_that_is_no_text_is_a_line_that_the_node_understands(self):
        for path in ("\udcff.pt", b"\xff.pt"):
            thread, heard = self.answer(type="checkpoint_failed", iteration=7, what="no such file")
            self.assertFalse(self.job.checkpoint(path, iteration=7, timeout=10))
            thread.join()
            self.assertEqual(heard[0]["path"], "\ufffd.pt")
            self.assertEqual(self.job.checkpoint_error, "no such file")

    def test_a_checkpoint_that_fails_says_why(self):
        self.answer(type="checkpoint_failed", iteration=7, what="no space")
        self.assertFalse(self.job.checkpoint("state.pt", iteration=7))
        self.assertEqual(self.job.checkpoint_error, "no space")

    def test_a_node_that_does_not_answer_is_waited_for_no_longer_than_asked(self):
        self.assertFalse(self.job.checkpoint("state.pt", iteration=7, timeout=0.05))
        self.assertIn("did not answer", self.job.checkpoint_error)

    def test_a_node_that_goes_ends_the_wait(self):
        self.node.close()
        self.assertFalse(self.job.checkpoint("state.pt", iteration=7))

    def test_it_is_told_when(self):
        self.assertFalse(self.job.should_checkpoint())
        self.node.sendall(b'{"v":1,"type":"checkpoint_now","reason":"drain"}\n')
        self.assertTrue(self.job.should_checkpoint())
        self.answer(type="checkpoint_saved", iteration=7, bytes=3, ms=1)
        self.assertTrue(self.job.checkpoint("state.pt", iteration=7))
        self.assertFalse(self.job.should_checkpoint())
        self.node.sendall(b'{"v":1,"type":"checkpoint_every","seconds":1e-6}\n')
        self.assertTrue(self.job.should_checkpoint())

    def refuse(self, iteration):
        thread, _ = self.answer(type="checkpoint_failed", iteration=iteration, what="no room yet")
        self.assertFalse(self.job.checkpoint("state.pt", iteration=iteration))
        thread.join()

    def clock(self):
        """The job's, which moves by `ahead_s` when the test says so."""
        clock = types.SimpleNamespace(ahead_s=0, monotonic=lambda: time.monotonic() + clock.ahead_s)
        patch = unittest.mock.patch("tierpilot.job_channel.time", clock)
        patch.start()
        self.addCleanup(patch.stop)
        return clock

    def test_one_that_is_not_kept_is_tried_again_after_pauses_that_double(self):
        clock = self.clock()
        self.node.sendall(_NOW)
        for iteration, pause_s in enumerate((1, 2, 4)):
            self.assertTrue(self.job.should_checkpoint())
            self.refuse(iteration)
            clock.ahead_s += 0.9 * pause_s
            self.assertFalse(self.job.should_checkpoint())
            clock.ahead_s += 0.2 * pause_s
        self.assertTrue(self.job.should_checkpoint())
        self.answer(type="checkpoint_saved", iteration=7, bytes=3, ms=1)
        self.assertTrue(self.job.checkpoint("state.pt", iteration=7))
        clock.ahead_s += 50
        self.assertFalse(self.job.should_checkpoint())

    def test_no_pause_is_longer_than_the_interval(self):
        clock = self.clock()
        self.node.sendall(b'{"v":1,"type":"checkpoint_every","seconds":3}\n')
        self.assertFalse(self.job.should_checkpoint())
        for iteration in range(5):
            clock.ahead_s += 3
            self.assertTrue(self.job.should_checkpoint())
            self.refuse(iteration)

    def test_who_asks_does_not_wait_for_a_pause(self):
        clock = self.clock()
        for iteration in range(5):
            clock.ahead_s += 60
            self.assertTrue(self.job.should_checkpoint())
            self.refuse(iteration)
        self.assertFalse(self.job.should_checkpoint())
        self.node.sendall(_NOW)
        self.assertTrue(self.job.should_checkpoint())

    def test_what_is_asked_for_during_a_checkpoint_wants_another(self):
        self.node.sendall(_NOW)
        self.assertTrue(self.job.should_checkpoint())
        self.answer(before=_NOW, type="checkpoint_saved", iteration=7, bytes=3, ms=1)
        self.assertTrue(self.job.checkpoint("state.pt", iteration=7))
        self.assertTrue(self.job.should_checkpoint())

    def test_time_since_one_that_failed_is_not_that_of_saving(self):
        self.node.sendall(_NOW)
        self.assertTrue(self.job.should_checkpoint())
        self.refuse(6)
        time.sleep(0.05)
        thread, heard = self.answer(type="checkpoint_saved", iteration=7, bytes=3, ms=1)
        self.assertTrue(self.job.checkpoint("state.pt", iteration=7))
        thread.join()
        self.assertEqual(heard[0]["saving_ms"], 0)

    def test_it_hears_what_is_safe(self):
        self.node.sendall(b'{"v":1,"type":"checkpoint_safe","iteration":7,"copies":2}\n')
        self.job.should_checkpoint()
        self.assertEqual(self.job.checkpoint_safe, 7)


class Alone(unittest.TestCase):
    def test_without_a_node_everything_does_nothing(self):
        job = tierpilot.Job(None, {})
        self.assertFalse(job.connected)
        self.assertFalse(job.report(iteration=1, loss=0.1))
        self.assertFalse(job.should_checkpoint())
        self.assertFalse(job.checkpoint("state.pt", iteration=1))
        self.assertIsNone(job.restored)
        self.assertIsNone(job.should_stop())

    def test_numbers_of_others_may_be_anything(self):
        for said in ("", "auto", "3.0"):
            environment = dict.fromkeys(("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "TIERPILOT_ATTEMPT"), said)
            job = tierpilot.Job(None, environment)
            self.assertEqual((job.rank, job.world_size, job.attempt), (0, 1, 0))
            self.assertFalse(job.report(iteration=1))

    def test_a_socket_that_is_not_there_is_as_no_node(self):
        self.assertFalse(tierpilot.Job("/nonexistent/job.sock", {}).connected)

    def test_there_is_one_job_for_the_process(self):
        self.assertIs(tierpilot.job(), tierpilot.job())


if __name__ == "__main__":
    unittest.main()
