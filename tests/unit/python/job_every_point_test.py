#!/usr/bin/env python3
"""The Python module tierpilot, where a signal's handler comes at each of its instructions once."""
import itertools
import os
import sys
import unittest
import unittest.mock

from job_node import Trickle, WithANode

_WATCHED = ("job_channel.py", "node_lines.py", "contextlib.py")


class AtEveryPoint(WithANode):
    """What a handler does is done between two instructions of the module, each in its turn."""

    def setUp(self):
        super().setUp()
        # As there are many.
        for what, value in (("node_lines._GAP_S", 0), ("job_channel._MOST_A_SECOND", 10**9)):
            patch = unittest.mock.patch(f"tierpilot.{what}", value)
            patch.start()
            self.addCleanup(patch.stop)

    def interrupt(self, call, handler, kind):
        """Runs the call as often as it has points, and the handler at another one each time."""
        points = 0
        for points in itertools.count():
            if not self.at(points, call, handler, kind):
                break
        return points

    def at(self, point, call, handler, kind):
        left = point

        def trace(frame, event, _):
            nonlocal left
            if os.path.basename(frame.f_code.co_filename) not in _WATCHED:
                return None
            frame.f_trace_opcodes = kind == "opcode"
            if event == kind:
                left -= 1
                if left == -1:
                    handler()
            return trace

        sys.settrace(trace)
        try:
            call()
        finally:
            sys.settrace(None)
        return left < 0

    def handle(self):
        """What a handler of SIGTERM does."""
        self.job.report(iteration=1)
        self.job.should_stop()
        self.save()

    def all_is_well(self):
        self.save(iteration=10**6)
        self.assertEqual((self.wrong, self.node.torn), ([], []))
        self.assertLessEqual(self.node.most_open, 4, "the daemon has no more")

    def test_within_a_report(self):
        points = self.interrupt(lambda: self.job.report(iteration=2), self.handle, "opcode")
        self.assertGreater(points, 100)
        self.assertEqual(len(self.node.of_type("checkpoint")), points)
        self.all_is_well()

    def test_within_a_look_at_what_was_said(self):
        def look():
            self.node.say(type="share", milli=300)
            self.assertIsNone(self.job.should_stop())
            self.assertFalse(self.job.should_checkpoint())

        self.node.wait_for(lambda: self.node.open)
        points = self.interrupt(look, self.handle, "line")
        self.assertGreater(points, 20)
        self.assertEqual(len(self.node.of_type("checkpoint")), points)
        self.assertEqual(self.job.share(), 300)
        self.all_is_well()

    def test_a_handler_hears_what_was_said_before(self):
        heard = []

        def look():
            self.job._stop = None
            for end in self.node.open:
                end.sendall(b'{"v":1,"type":"stop","reason":"drain"}\n')
            self.job.should_stop()

        self.node.wait_for(lambda: self.node.open)
        points = self.interrupt(look, lambda: heard.append(self.job.should_stop()), "opcode")
        self.assertGreater(points, 100)
        self.assertEqual(heard, ["drain"] * points)

    def test_within_a_checkpoint(self):
        points = self.interrupt(self.save, self.handle, "opcode")
        self.assertGreater(points, 200)
        self.all_is_well()

    def test_lines_that_are_sent_in_parts_stay_whole(self):
        self.job._lines._socket = Trickle(self.job._lines._socket)
        for call in (self.save, lambda: self.job.report(iteration=2)):
            self.interrupt(call, self.handle, "line")
        self.all_is_well()

    def test_handlers_that_raise(self):
        def handle():
            raise KeyboardInterrupt

        def call(work):
            try:
                work()
            except KeyboardInterrupt:
                pass

        for work in (lambda: self.job.report(iteration=2), self.job.should_stop, self.save):
            self.assertGreater(self.interrupt(lambda: call(work), handle, "line"), 20)
        self.all_is_well()


if __name__ == "__main__":
    unittest.main()
