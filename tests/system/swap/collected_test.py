#!/usr/bin/env python3
"""Graphs that the garbage collector ends, wherever in a save or in a backward pass it runs."""
import dis
import gc
import os
import sys
import time
import unittest

from scene import BIG, Case, Swap, used

import tierpilot.swapping
import torch  # after scene, which skips without it

FOLDER = os.path.dirname(tierpilot.swapping.__file__)


# Where Python may collect: what makes an object, and, of newer ones, where signals' handlers run too.
ALLOCATES = ("BUILD_", "CALL", "FORMAT_", "GET_ITER", "JUMP_BACKWARD", "LOAD_METHOD", "MAKE_", "PRECALL", "RESUME")


class Collecting:
    """Collects garbage before the n-th bytecode of tierpilot.swapping that may, and at no other time."""

    def __init__(self, at):
        self.at = at
        self.passed = 0

    def __enter__(self):
        sys.settrace(self._enter)
        return self

    def __exit__(self, *error):
        sys.settrace(None)

    def _enter(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(FOLDER):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def _step(self, frame, event, argument):
        if event == "opcode" and dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith(ALLOCATES):
            self.passed += 1
            if self.passed == self.at:
                gc.collect()
        return self._step


class Holder:
    pass


class Collected(Case):
    def setUp(self):
        gc.collect()
        gc.freeze()  # what there is by now takes no time
        gc.disable()
        self.addCleanup(gc.unfreeze)
        self.addCleanup(gc.enable)

    def left_behind(self, swap):
        gc.collect()
        for _ in range(1000):  # copies that are under way end
            used_bytes = used(swap)
            if not swap._by_number:
                break
            time.sleep(0.001)
        return swap._by_number, swap._live, used_bytes

    def at_each_moment(self, begin, save, expected, wait_s=0):
        """Ends what `begin` made, a cycle, at each moment of the save of what `save` makes and of its backward pass."""
        swap = Swap(BIG, "swap-all", "memory=256MiB")
        at, passed = 0, 0
        while at <= passed:
            at += 1
            with swap:
                holder = Holder()
                holder.itself, holder.graph = holder, begin()
                del holder
                time.sleep(wait_s)
                with Collecting(at) as collecting:
                    loss = save()
            with collecting:
                got = torch.autograd.grad(loss, self.weights)[0]
            passed = collecting.passed
            del loss
            self.assertTrue(torch.equal(got, expected), f"moment {at}")
            self.assertEqual(self.left_behind(swap), ({}, {}, 0), f"moment {at}")
        self.assertGreater(passed, 50)  # fewer where the hooks are in C++

    def test_a_graph_of_a_tensor_that_is_saved_again(self):
        x, self.weights = torch.randn(64, 512), torch.randn(512, 8, requires_grad=True)

        def work():
            return (x @ self.weights).tanh().sum()

        expected = torch.autograd.grad(work(), self.weights)[0]
        for wait_s in (0, 0.001):  # its copy under way, or over
            with self.subTest(wait_s=wait_s):
                self.at_each_moment(work, work, expected, wait_s)

    def test_a_graph_of_another_view_of_what_is_saved_again(self):
        x, self.weights = torch.randn(64, 512), torch.randn(512, 8, requires_grad=True)
        made = (x * 1).requires_grad_()

        def work():
            return (made.exp() @ self.weights).sum()

        expected = torch.autograd.grad(work(), self.weights)[0]
        self.at_each_moment(lambda: (made[:32] @ self.weights).sum(), work, expected)

    def test_at_any_pace_of_the_collector(self):
        swap = Swap(BIG, "swap-all", "memory=256MiB")
        x, weights = torch.randn(64, 512), torch.randn(512, 8, requires_grad=True)
        expected = torch.autograd.grad((x @ weights).tanh().sum(), weights)[0]
        before = gc.get_threshold()
        gc.enable()
        try:
            for threshold in range(2, 30):
                gc.collect()
                gc.set_threshold(threshold)
                for _ in range(20):
                    with swap:
                        holder = Holder()
                        holder.itself, holder.graph = holder, (x @ weights).tanh()
                        del holder
                        y = (x @ weights).tanh()
                    self.assertTrue(torch.equal(torch.autograd.grad(y.sum(), weights)[0], expected))
        finally:
            gc.set_threshold(*before)


if __name__ == "__main__":
    unittest.main()
