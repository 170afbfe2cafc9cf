#!/usr/bin/env python3
"""The Python module tierpilot where threads and handlers of signals come in each other's midst."""
import collections
import os
import signal
import sys
import threading
import time
import unittest
import unittest.mock

from job_node import LONG_S, WithANode


class Interrupted(WithANode):
    def on_signal(self, handler):
        before = signal.signal(signal.SIGUSR1, lambda *_: handler())
        self.addCleanup(signal.signal, signal.SIGUSR1, before)

    def interrupt_once(self, condition):
        """The main thread, when the node has come so far."""
        def work():
            self.node.wait_for(condition)
            while not all(save.sent for save in self.job._lines._saves):
                time.sleep(0.001)  # it has been sent, but that is not noted yet
            signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
        return self.beside(work)

    def test_nothing_waits_for_another_threads_checkpoint(self):
        patch = unittest.mock.patch("tierpilot.job_channel._MOST_A_SECOND", 10**9)
        patch.start()
        self.addCleanup(patch.stop)
        self.node.answering = False
        saving = self.beside(lambda: self.save(timeout=20, iteration=2))
        self.node.wait_for(lambda: self.node.saves)
        self.node.say(type="share", milli=300)
        for i in range(100):
            self.assertTrue(self.job.report(iteration=i))
            self.assertIsNone(self.job.should_stop())
            self.assertIsNone(self.job.cores())
            self.assertFalse(self.job.should_checkpoint())
            self.assertEqual(self.job.share(), 300)
        self.assertTrue(saving.is_alive())
        self.node.wait_for(lambda: len(self.node.of_type("progress")) == 100)
        self.assertTrue(saving.is_alive())
        self.node.answer()
        self.job.should_stop()  # may be the one that reads the answer
        saving.join()
        self.assertEqual(self.wrong, [])

    def test_a_handler_reports_while_a_checkpoint_is_waited_for(self):
        self.node.answering = False
        done = []

        def handler():
            done.append(self.job.report(iteration=9))
            self.node.say(type="stop", reason="drain")
            done.append(self.job.should_stop())
            self.node.answer()
            done.append(self.job.should_stop())  # reads the answer of what it has interrupted

        self.on_signal(handler)
        self.interrupt_once(lambda: self.node.saves)
        self.save(iteration=2)
        self.assertEqual(done, [True, "drain", "drain"])
        self.assertEqual(self.wrong, [])

    def test_a_handlers_checkpoint_waits_for_the_one_that_it_interrupts(self):
        self.node.answering = False
        order = []

        def handler():
            order.append("handler")
            self.beside(answer)
            self.save(iteration=2)
            order.append("saved")

        def answer():
            for _ in range(2):
                self.node.wait_for(lambda: self.node.saves)
                answered.append(time.monotonic())
                self.node.answer()

        answered = []
        self.on_signal(handler)
        self.interrupt_once(lambda: self.node.saves)
        self.save(iteration=1)
        order.append("first")
        self.assertEqual(self.job.checkpoint_error, "no 1")
        self.assertEqual(order, ["handler", "saved", "first"])
        self.assertEqual(self.wrong, [])
        asked = self.node.of_type("checkpoint")
        self.assertEqual([line["iteration"] for line in asked], [1, 2])
        self.assertGreater(asked[1]["at"] - answered[0], 0.1, "the node would refuse it")

    def test_nothing_waits_for_a_handler_that_saves_in_the_midst_of_a_call(self):
        self.node.answering = False
        with self.job._lines._alone():  # as a call that a handler has interrupted
            saved = []
            others = self.beside(lambda: saved.append(self.job.report(iteration=1)))
            self.beside(lambda: (others.join(), self.node.wait_for(lambda: self.node.saves), self.node.answer()))
            self.save(iteration=2)
        self.assertEqual(saved, [True])
        self.assertEqual(self.wrong, [])

    def test_threads_checkpoints_take_turns(self):
        threads = [self.beside(self.save) for _ in range(5)]
        for thread in threads:
            thread.join()
        self.assertEqual(self.wrong, [])
        self.assertEqual(len(self.node.of_type("checkpoint")), 5)

    def test_who_gives_up_waiting_for_its_turn_asks_for_nothing(self):
        self.node.answering = False
        saving = self.beside(lambda: self.save(iteration=2))
        self.node.wait_for(lambda: self.node.saves)
        self.assertFalse(self.job.checkpoint("state.pt", 4, timeout=0.2))
        self.assertIn("did not answer", self.job.checkpoint_error)
        self.node.answer()
        saving.join()
        self.assertEqual([line["iteration"] for line in self.node.of_type("checkpoint")], [2])
        self.assertEqual(self.wrong, [])

    def test_an_answer_for_an_odd_iteration_is_left_out(self):
        self.node.wait_for(lambda: self.node.open)
        self.node.say(type="checkpoint_saved", iteration=[7])
        self.node.say(type="checkpoint_saved", iteration={})
        self.save(iteration=2)
        self.assertEqual(self.wrong, [])

    def test_a_handler_that_raises_ends_the_wait_and_what_comes_later_works(self):
        self.node.answering = False
        self.on_signal(lambda: sys.exit(3))
        self.interrupt_once(lambda: self.node.saves)
        with self.assertRaises(SystemExit):
            self.save(iteration=2)
        self.assertTrue(self.job.report(iteration=3))
        with self.node.news:
            self.node.answering = True
        self.save(iteration=4)
        self.assertEqual(self.wrong, [])

    def test_signals_and_threads_in_any_order(self):
        calls = collections.Counter()
        ended = threading.Event()

        def handler():
            if calls["deep"] == 2:  # a handler in a handler is enough
                return
            calls["deep"] += 1
            calls["handler"] += 1
            self.job.report(iteration=1)
            self.job.should_stop()
            if calls["handler"] % 20 == 0:
                self.save()
            calls["deep"] -= 1

        def work():
            while not ended.is_set():
                calls["thread"] += self.job.report(iteration=2)
                self.job.should_checkpoint()

        def kick():
            while not ended.is_set():
                signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
                time.sleep(0.001)

        self.on_signal(handler)
        others = [self.beside(work), self.beside(kick)]
        until = time.monotonic() + LONG_S
        try:
            while (calls["handler"] < 300 or calls["main"] < 300) and time.monotonic() < until:
                calls["main"] += self.job.report(iteration=3)
                self.job.should_stop()
                if calls["main"] % 100 == 0:
                    self.save()
        finally:
            ended.set()
            for thread in others:
                thread.join()
        self.assertGreaterEqual(calls["handler"], 300)
        self.assertGreaterEqual(calls["main"], 300)
        self.assertGreater(calls["thread"], 0)
        self.assertEqual((self.wrong, self.node.torn), ([], []))
        self.assertLessEqual(self.node.most_open, 4, "the daemon has no more")

    def test_a_fork_has_a_connection_of_its_own(self):
        held, go_on = threading.Event(), threading.Event()

        def hold():  # as a thread that was just reading when the fork came
            with self.job._lines._lock:
                held.set()
                go_on.wait()

        holding = self.beside(hold)
        held.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(LONG_S)
            sent = self.job.report(iteration=7)
            os._exit(0 if sent and self.job.checkpoint("state.pt", 8, LONG_S) else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        go_on.set()
        holding.join()
        self.assertTrue(self.job.report(iteration=9))
        self.node.wait_for(lambda: len(self.node.of_type("progress")) == 2)
        self.assertEqual(self.node.accepted, 2)
        self.assertEqual(self.node.torn, [])


if __name__ == "__main__":
    unittest.main()
