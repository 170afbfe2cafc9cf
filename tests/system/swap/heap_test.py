#!/usr/bin/env python3
"""Where PyTorch's tensors lie on the processor: in the library's heap, whoever made them, and what becomes of them there."""
import os
import subprocess
import sys
import threading
import unittest

from scene import LIBRARY, MODULES, Case, Swap

import torch  # after scene, which skips without it

MIB = 1 << 20
LONG = "TIERPILOT_TEST_LONG" in os.environ


def mapping(address):
    """The flags of the mapping that an address lies in; none of the C library's heap."""
    inside = False
    with open("/proc/self/smaps") as smaps:
        for line in smaps:
            head = line.split()[0]
            if "-" in head and not head.endswith(":"):
                begin, end = (int(at, 16) for at in head.split("-"))
                inside = begin <= address < end and line.split()[-1] != "[heap]"
            elif inside and head == "VmFlags:":
                return line.split()[1:]
    return []


def in_heap(tensor):
    return "hg" in mapping(tensor.data_ptr())


def resident():
    with open("/proc/self/statm") as statm:
        pages = statm.read().split()
    return (int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGESIZE")


def made(mib, value=1.0):
    return torch.full((mib * MIB // 4,), value)


BEFORE = made(3, 2.0)  # before there is a heap
SWAP = Swap("8GiB", "none", "memory=64MiB")


class Heap(Case):
    def test_large_tensors_lie_there_and_small_ones_do_not(self):
        self.assertTrue(in_heap(made(1)))
        self.assertTrue(in_heap(torch.nn.Linear(512, 512).weight))
        self.assertFalse(in_heap(torch.ones(100)))

    def test_what_was_made_before_ends_where_it_lies(self):
        global BEFORE
        self.assertFalse(in_heap(BEFORE))
        self.assertEqual(BEFORE.sum().item(), 2.0 * BEFORE.numel())
        BEFORE = None

    def test_storages_grow_and_are_shared(self):
        tensor = made(2, 3.0)
        tensor.resize_(4 * MIB // 4 * 4)
        self.assertEqual(tensor[: 2 * MIB // 4].sum().item(), 3.0 * (2 * MIB // 4))
        array = made(2, 5.0).numpy()  # its tensor ended
        self.assertEqual(float(array.sum()), 5.0 * array.size)
        shared = made(2, 7.0).share_memory_()
        self.assertFalse(in_heap(shared))
        self.assertEqual(shared.sum().item(), 7.0 * shared.numel())

    def test_neighbours_keep_what_was_written(self):
        kept = {}
        for turn in range(200):
            kept[turn % 17] = (turn, made(turn % 5 + 1, float(turn)))
            for value, tensor in kept.values():
                self.assertTrue(bool((tensor[:: 1 << 14] == value).all()))

    def test_threads_make_and_end_them(self):
        wrong = []

        def work(number):
            for turn in range(50):
                tensor = made(turn % 3 + 1, number * 100.0 + turn)
                if not bool((tensor == number * 100.0 + turn).all()):
                    wrong.append((number, turn))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_a_child_that_was_forked_has_its_own(self):
        tensor = made(8, 4.0)
        stop = threading.Event()

        def churn():  # so that forks meet a heap at work
            while not stop.is_set():
                made(1)

        thread = threading.Thread(target=churn)
        thread.start()
        try:
            for _ in range(20 if LONG else 6):
                child = os.fork()
                if child == 0:
                    good = tensor.sum().item() == 4.0 * tensor.numel() and in_heap(made(1))
                    tensor.fill_(9.0)
                    del tensor
                    good = good and made(8, 6.0)[-1].item() == 6.0
                    os._exit(0 if good else 1)
                self.assertEqual(os.waitpid(child, 0)[1], 0)
        finally:
            stop.set()
            thread.join()
        self.assertEqual(tensor.sum().item(), 4.0 * tensor.numel())

    def test_workers_that_are_forked_beside_a_training_change_nothing(self):
        def losses(workers):
            torch.manual_seed(5)
            model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(6)])
            optimiser = torch.optim.SGD(model.parameters(), 1e-4, momentum=0.9)
            swap, found = Swap("1MiB", "swap-all", "memory=256MiB", states=True), []
            for _ in range(2):
                for x in torch.utils.data.DataLoader(torch.arange(512 * 512.0).view(512, 512).cos(), 256, num_workers=workers):
                    with swap:
                        loss = model(x).square().sum()
                    optimiser.zero_grad()
                    loss.backward()
                    optimiser.step()
                    found.append(loss.item())
            return found

        self.assertEqual(losses(2), losses(0))

    def test_what_ended_is_the_kernels_again_when_steps_are_looked_at(self):
        x = torch.ones(MIB // 4, requires_grad=True)
        with SWAP:
            x.exp().sum().backward()
        before = resident()
        held = [made(4) for _ in range(16)]
        self.assertGreater(resident(), before + 60 * MIB)
        del held
        swap = Swap("512MiB", "swap", "memory=64MiB")  # of which a quarter is held: its first steps are looked at closely
        with swap:
            x.exp().sum().backward()
        self.assertLess(resident(), before + 24 * MIB)

    def run_alone(self, program, **said):
        folder = os.path.dirname(os.path.abspath(__file__))
        alone = f"import sys; sys.argv = ['-', {MODULES!r}, {LIBRARY!r}, '']; sys.path.insert(0, {folder!r})\n"
        ran = subprocess.run(
            [sys.executable, "-c", alone + program],
            env={**os.environ, **said},
            capture_output=True,
            text=True,
            timeout=120,
        )
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout.strip()

    WHERE = "import heap_test as h; print(h.in_heap(h.made(1)))"

    def test_it_can_be_left_out(self):
        self.assertEqual(self.run_alone(self.WHERE, TIERPILOT_SWAP_HEAP="0"), "False")
        self.assertEqual(self.run_alone(self.WHERE, TIERPILOT_SWAP_HEAP="1"), "True")

    def test_where_addresses_are_limited_memory_is_the_c_librarys(self):
        if "asan" in os.environ.get("LD_PRELOAD", ""):
            self.skipTest("the sanitizer takes all addresses")
        limited = (
            "import resource, torch, numpy\n"
            "held = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
            "resource.setrlimit(resource.RLIMIT_AS, (held + (1 << 30), -1))\n"
        )
        self.assertEqual(self.run_alone(limited + self.WHERE), "False")


if __name__ == "__main__":
    unittest.main()
