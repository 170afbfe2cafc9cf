#!/usr/bin/env python3
"""A training that hangs while it is measured is ended, and the others go on: without any training."""
import os
import signal
import sys
import time
import unittest
from functools import partial

sys.path.insert(0, sys.argv.pop(1))
sys.dont_write_bytecode = True
from tierpilot.collect.child import in_child  # noqa: E402
from tierpilot.collect.gpus.turns import PARTS, Turns  # noqa: E402


def trains(hangs_in, window_s, turn):
    """Goes through all parts, as a training does."""
    for part in PARTS:
        if part == "window":
            turn.ask(part)
            while not turn.granted():
                time.sleep(0.01)
            time.sleep(window_s)
        elif part != "start":
            turn.wait(part, True)
        if part == hangs_in:
            signal.pause()
    return "measured"


class Limit(unittest.TestCase):
    LIMIT_S = 3

    def ended(self, ahead, works):
        ended = {}
        Turns(ahead, self.LIMIT_S).run(works, lambda number, value, error: ended.update({number: (value, error)}))
        with self.assertRaises(ChildProcessError, msg="a process is left"):
            os.waitpid(-1, os.WNOHANG)
        return ended

    def test_who_hangs_in_any_part_is_ended_and_the_others_are_measured(self):
        for part, ahead in [*((part, 3) for part in PARTS), ("window", 0)]:
            with self.subTest(part=part, ahead=ahead):
                ended = self.ended(ahead, [partial(trains, part if i == 1 else None, 0) for i in range(4)])
                value, error = ended.pop(1)
                self.assertIsNone(value)
                self.assertIn(f"{self.LIMIT_S} s", error)
                self.assertEqual(ended, {i: ("measured", None) for i in (0, 2, 3)})

    def test_several_that_hang_at_once_are_each_told(self):
        ended = self.ended(6, [partial(trains, "start", 0)] * 6)
        self.assertEqual(len(ended), 6)
        self.assertTrue(all(error for _, error in ended.values()), ended)

    def test_waiting_for_the_turns_of_others_does_not_count(self):
        # The last waits for longer than the limit.
        ended = self.ended(6, [partial(trains, None, self.LIMIT_S / 4)] * 6)
        self.assertEqual(ended, dict.fromkeys(range(6), ("measured", None)))


class Child(unittest.TestCase):
    def test_a_child_that_does_not_answer_is_ended(self):
        for work in (signal.pause, lambda: time.sleep(1e6)):
            with self.assertRaisesRegex(RuntimeError, "within 0.5 s"):
                in_child(work, 0.5)
            with self.assertRaises(ChildProcessError, msg="its process is left"):
                os.waitpid(-1, os.WNOHANG)
        self.assertEqual(in_child(lambda: "x" * 1_000_000, 100), "x" * 1_000_000)


if __name__ == "__main__":
    unittest.main()
