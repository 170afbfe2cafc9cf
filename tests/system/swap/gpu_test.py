#!/usr/bin/env python3
"""tierpilot.swap with tensors of a GPU, by a stand-in for the CUDA driver. PyTorch's own part of it is stood in for, too:
its tensors are a processor's, which PyTorch computes with at once."""
import ctypes
import itertools
import json
import os
import re
import subprocess
import sys
import threading
import unittest
import warnings

from scene import BIG, LIBRARY, MODULES, PROGRAM, Case, Swap, train, used

import torch  # after scene, which skips without it

from tierpilot.swapping import core, devices


def memory(name):
    with open("/proc/self/status", encoding="ascii") as status:
        return int(re.search(name + r":\s+(\d+) kB", status.read())[1]) << 10


class Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("pinned", "other", "across", "pinned_bytes", "contexts", "streams", "events")]


def pinned_bytes():
    count = ctypes.CDLL("libcuda.so.1").fake_cuda_count
    count.restype = Counts
    return count().pinned_bytes


class StandIn(devices.Cuda):
    takes = staticmethod(devices.Processor.takes)
    asked = 0

    def __init__(self):
        super().__init__(0)
        self._device = torch.device("cpu")

    def stream(self):
        return 0

    def memory(self):
        """What the process has, but for the host memory that is pinned for its copies."""
        StandIn.asked += 1
        pinned = pinned_bytes()
        held, peak = memory("RssAnon") - pinned, memory("VmHWM") - memory("RssFile") - memory("RssShmem") - pinned
        with open("/proc/self/clear_refs", "w", encoding="ascii") as clear:
            clear.write("5")
        return held, max(held, peak)


class Wandering(StandIn):
    """Whoever asks computes in another stream than who asked before."""

    def __init__(self):
        super().__init__()
        driver, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
        driver.cuInit(0)
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        driver.cuCtxPushCurrent_v2(context)
        made = [ctypes.c_void_p() for _ in range(2)]
        for stream in made:
            driver.cuStreamCreate(ctypes.byref(stream), 1)
        self._streams = itertools.cycle(stream.value for stream in made)
        self.used_elsewhere = 0

    def stream(self):
        return next(self._streams)

    def used_here(self, tensor):
        self.used_elsewhere += 1


class Gpu(Case):
    def test_gradients_are_those_without_to_the_last_bit(self):
        plain = train(None)
        for policy in ("swap-all", "swap", "capuchin"):
            for tiers in ("memory=256MiB", "dir:/var/tmp=256MiB"):
                with self.subTest(policy=policy, tiers=tiers), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    swap = Swap("1MiB", policy, tiers, device=StandIn())
                    self.same(train(swap), plain)
                    said = swap.statistics()
                    self.assertEqual(said["device"], "cuda:0")
                    self.assertGreater(said["copies_out"], 20)
                    self.assertGreater(said["copies_in"], 20)
                    self.assertGreater(said["pinned_bytes"], 0 if tiers[0] == "m" else -1)
                    self.assertEqual(used(swap), 0)

    def test_what_comes_back_in_another_stream_is_told_the_allocator(self):
        device = Wandering()
        swap = Swap(BIG, "swap-all", "memory=256MiB", device=device)
        self.same(train(swap), train(None))
        self.assertGreater(device.used_elsewhere, 20)

    def test_it_keeps_to_a_budget_of_what_it_is_told(self):
        def step(x):
            y = x
            for _ in range(24):
                y = torch.sin(y)
            y.sum().backward()

        x = torch.randn(1 << 19, requires_grad=True)  # 24 times 2 MiB
        step(x)
        budget = StandIn().memory()[0] + (24 << 20)
        before = StandIn.asked
        swap = Swap(budget, device=StandIn(), tiers="memory=256MiB")
        for _ in range(12):
            with swap:
                step(x)
        said = swap.statistics()
        self.assertGreater(StandIn.asked, before)
        self.assertGreaterEqual(said["steps"], 11)
        self.assertLessEqual(said["over_budget_steps"], 2)
        self.assertLessEqual(said["last_peak_bytes"], budget)
        self.assertGreater(said["last_peak_bytes"], budget // 2)
        self.assertGreater(said["copies_out"], 11 * 8)

    def test_tensors_of_another_device_stay(self):
        plain = train(None)
        swap = Swap(BIG, "swap-all", "memory=64MiB", device="cuda:1")
        self.same(train(swap), plain)
        self.assertEqual(swap.statistics()["saves"], 0)
        self.assertEqual(swap.statistics()["device"], "cuda:1")

    def test_states_of_optimisers_leave_too(self):
        swap = Swap("1MiB", tiers="memory=256MiB", states=True, device=StandIn())
        plain, swapped = self.weights(None), self.weights(swap)
        self.assertGreater(swap.statistics()["state_saves"], 0)
        self.assertTrue(torch.equal(plain, swapped))

    def test_they_stay_there_unless_it_is_asked_for(self):
        swap = Swap("1MiB", tiers="memory=256MiB", device=StandIn())
        self.weights(swap)
        self.assertEqual(swap.statistics()["state_saves"], 0)

    def weights(self, swap):
        torch.manual_seed(3)
        layer = torch.nn.Linear(512, 512)
        optimiser = torch.optim.Adam(layer.parameters())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(4):
                optimiser.zero_grad()
                if swap:
                    with swap:
                        loss = layer(torch.ones(64, 512)).sum()
                else:
                    loss = layer(torch.ones(64, 512)).sum()
                loss.backward()
                optimiser.step()
        return layer.weight.detach().clone()

    def test_other_threads_run_while_it_waits_for_the_gpu(self):
        fake, library = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(None)
        fake.fake_cuda_launch.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p]
        kernel = ctypes.cast(library.usleep, ctypes.c_void_p)
        pool = core.Core(1 << 30, "none", "memory=64MiB", device="cuda:0")
        data = ctypes.create_string_buffer(1 << 20)
        turns, ended = 0, threading.Event()

        def beside():
            nonlocal turns
            while not ended.wait(0.001):
                turns += 1

        thread = threading.Thread(target=beside)
        thread.start()
        pool.memory(1 << 20, 1 << 20)
        fake.fake_cuda_launch(0, kernel, 300_000)
        before = turns
        number = pool.save(7, 1, 0, ctypes.addressof(data), 128 << 10)
        during = turns - before
        ended.set()
        thread.join()
        self.assertGreater(during, 5)
        pool.drop(number)

    def test_devices_that_are_none_are_named(self):
        for name, words in (("tpu", "'tpu' is not known"), ("cuda:9", "this process sees 2 CUDA devices"), ("xla:0", "cuda:N")):
            with self.subTest(name=name), self.assertRaises(ValueError) as raised:
                Swap(BIG, device=name)
            self.assertIn(words, str(raised.exception))

    def test_without_a_driver_it_says_so(self):
        code = f"import sys; sys.path.insert(0, {MODULES!r}); import tierpilot; tierpilot.swap('1GiB', device='cuda:0')"
        environment = {**os.environ, "LD_LIBRARY_PATH": "", "TIERPILOT_SWAP_LIBRARY": LIBRARY}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
        if "sees" in done.stderr or done.returncode == 0:
            self.skipTest("this machine has a CUDA driver")
        self.assertIn("the CUDA driver cannot be loaded", done.stderr)


class Program(unittest.TestCase):
    def run_tiers(self, device):
        return subprocess.run([PROGRAM, "tiers", "--device", device, "--tiers", "memory=64MiB", "-j"],
                              capture_output=True, text=True, check=False)

    def test_tiers_are_measured_from_the_device(self):
        done = self.run_tiers("cuda:0")
        self.assertEqual(done.returncode, 0, done.stderr)
        (tier,) = json.loads(done.stdout)["tiers"]
        self.assertEqual(tier["name"], "memory")
        # Each piece waits 200 us in the stand-in.
        self.assertGreater(tier["latency_us"], 200)

    def test_devices_that_are_none(self):
        for device, words in (("cuda:7", "sees 2 CUDA devices"), ("gpu0", "say cpu, cuda or cuda:N")):
            done = self.run_tiers(device)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr + done.stdout)


if __name__ == "__main__":
    unittest.main()
