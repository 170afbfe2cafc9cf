"""Builds a guest's image, boots it, and brings back what it says."""

import contextlib
import dataclasses
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback

from harness import cache, debian, image, kernel, live, systemd

QEMU = "qemu-system-x86_64"
# The kernel patches itself by way of breakpoints. QEMU 7.2 with a thread for each CPU may translate
# code while another CPU writes to it, and the guest then dies of a breakpoint that is gone: in one
# boot of some hundreds, more often where processors are short. One thread for all cannot.
STALE_CODE = "Oops: int3"
USERS = b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
HERE = pathlib.Path(__file__).resolve().parent.parent
REPOSITORY = HERE.parent.parent


@dataclasses.dataclass
class Outcome:
    status: int | None  # of the script; None when the guest never said it
    files: dict[str, bytes]  # by path below /out
    console: str
    log: pathlib.Path
    seconds: float
    load_1min: float  # of the host, at the end
    ended: str  # how QEMU ended
    broken: str | None  # what the case's Host saw go wrong
    machine: object

    @property
    def problem(self):
        if self.broken:
            return self.broken
        if self.status is None:
            return f"the guest ended without a status: {self.ended}"
        return f"the guest's script ended with {self.status}" if self.status else None

    def text(self, name):
        return self.files[name].decode()

    def json(self, name):
        return json.loads(self.files[name])

    def save(self, folder):
        for name, data in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def problem_of(check, outcome):
    """None, or what an assertion in the case's check() said."""
    try:
        check(outcome)
    except Exception as error:  # pylint: disable=broad-except
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{where.filename}:{where.lineno}: {where.line}: {error or type(error).__name__}"
    return None


class Guest:
    def __init__(self, machine, build, name):
        if not shutil.which(QEMU):
            raise cache.Unavailable(f"{QEMU} is not installed")
        self.machine = machine
        self.build = build
        variant = "" if machine.far_ns is None else f"-{machine.far_ns}ns"
        self.log = build / "tests" / "vm" / f"{name}{variant}.log"
        with cache.preparing():
            self.kernel = kernel.Kernel(machine.kernel)

    def run(self, script, make_host=None):
        """`make_host(build, folder)` is what the case does on this machine meanwhile, see run."""
        outcome = self._run_once(script, make_host)
        if outcome.status is None and STALE_CODE in outcome.console:
            print(f"{self.log.stem}: the emulator ran kernel code as it was before it was patched "
                  f"({STALE_CODE}); once more, in one thread", file=sys.stderr)
            self.machine.one_thread = True
            outcome = self._run_once(script, make_host)
        return outcome

    def _run_once(self, script, make_host):
        with tempfile.TemporaryDirectory(prefix="tierpilot-vm-") as folder:
            results = pathlib.Path(folder) / "results"
            started = time.monotonic()
            ended, broken = self._run_beside_host(script.read_bytes(), pathlib.Path(folder), make_host)
            files = unpack(results)
            status = files.pop("status", None)
            return Outcome(status=int(status) if status else None, files=files,
                           console=self.log.read_text(errors="replace"), log=self.log,
                           seconds=time.monotonic() - started, load_1min=os.getloadavg()[0],
                           ended=ended, broken=broken, machine=self.machine)

    def interactive(self):
        with tempfile.TemporaryDirectory(prefix="tierpilot-vm-") as folder:
            shell = b"#!/bin/sh\nexec setsid cttyhack sh -l\n"
            command = self._command(shell, pathlib.Path(folder), None)
            return subprocess.run(command, check=False).returncode

    def _run_beside_host(self, script, folder, make_host):
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with open(self.log, "wb") as console:
            if not make_host:
                return self._boot(self._command(script, folder, None), console, None, folder)
            with contextlib.closing(make_host(self.build, folder)) as host:
                command = self._command(script, folder, host)
                for _ in range(host.boots):
                    ended, broken = self._boot(command, console, host, folder)
                    if broken:
                        break
                return ended, broken

    def _boot(self, command, console, host, folder):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=console,
                                   stderr=subprocess.STDOUT)
        try:
            broken = host and problem_of(host.conduct, live.Live(process, folder))
            if broken:
                return "it was killed", broken
            process.wait(self.machine.timeout_s)
            return f"QEMU's exit status is {process.returncode}", None
        except subprocess.TimeoutExpired:
            return f"not done after {self.machine.timeout_s} s", None
        finally:
            process.kill()
            process.wait()

    def _command(self, script, folder, host):
        initrd = folder / "initrd"
        with cache.preparing():
            vmlinux, made = self.kernel.vmlinux(), self._image(script)
        for path, data in (host.files if host else {}).items():
            made.add_bytes(path, data)
        made.write(initrd)
        first = "/lib/systemd/systemd" if self.machine.init == "systemd" else "/vm/init"
        # No KVM, also where it is: nested, it hangs on some machines, and it knows no plugins.
        return [QEMU, *self.machine.accelerator(), "-nodefaults", "-no-user-config",
                "-display", "none", "-no-reboot",
                "-serial", "stdio", "-serial", f"file:{folder / 'results'}",
                *(live.Live.qemu_arguments(folder) if host else []),
                "-kernel", vmlinux, "-initrd", initrd,
                "-append", f"{self.machine.kernel_command_line()} rdinit={first}",
                *self.machine.qemu_arguments(), *self._disk(folder, host), *self._delay()]

    def _disk(self, folder, host):
        if host and host.disk:
            return ["-drive", f"file=nbd+unix:///?socket={host.disk},format=raw,if=virtio"]
        if not self.machine.disk_mib:
            return []
        with open(folder / "disk", "wb") as disk:
            disk.truncate(self.machine.disk_mib << 20)
        return ["-drive", f"file={folder / 'disk'},format=raw,if=virtio,cache=unsafe"]

    def _delay(self):
        if self.machine.far_ns is None:
            return []
        plugin = self._built("tests/vm/plugin/fartier.so")
        start = self.machine.delayed_from()
        machine = self.machine
        options = f"start={start:#x},ns={machine.far_ns},every={machine.access_ns},kernel={int(machine.far_kernel)}"
        return ["-plugin", f"{plugin},{options}"]

    def _built(self, path):
        program = self.build / path
        if not program.exists():
            raise SystemExit(f"{program} is not built; ninja -C {self.build} {path}")
        return program

    def _image(self, script):
        made = image.Image()
        programs = [self._built(path) for path in self.machine.programs]
        for program in programs:
            made.add_file(f"/usr/bin/{program.name}", program.resolve())
        made.add_libraries(programs)
        for path, source in self.machine.files.items():
            in_build = source.startswith("build:")
            made.add_file(path, self._built(source[6:]) if in_build else REPOSITORY / source)
        for package in self.machine.packages:
            made.add_tree(debian.unpacked(package))
        if self.machine.init == "systemd":
            systemd.add_to(made)
        self._add_guest_files(made, script)
        return made

    def _add_guest_files(self, made, script):
        made.add_file("/usr/bin/busybox", debian.unpacked("busybox-static") / "bin/busybox")
        # The others are linked in the guest; systemd needs mount before that.
        for name in ("sh", "mount"):
            made.add_link(f"/usr/bin/{name}", "busybox")
        made.add_bytes("/etc/passwd", USERS)
        made.add_bytes("/etc/group", b"root:x:0:\nnogroup:x:65534:\n")
        for path in (HERE / "guest").glob("[!.]*"):
            if path.is_file():
                made.add_bytes(f"/vm/{path.name}", path.read_bytes(), 0o755)
        made.add_bytes("/vm/script", script, 0o755)
        modules = self.machine.modules + (["virtio_blk"] if self.machine.disk_mib else [])
        modules += ["virtio_net"] if self.machine.network else []
        for number, (name, data) in enumerate(self.kernel.module_files(modules)):
            made.add_bytes(f"/vm/modules/{number:02}-{name}.ko", data)


def unpack(path):
    """The files of the archive that the guest sent; none when it is missing or cut off."""
    try:
        with tarfile.open(fileobj=io.BytesIO(path.read_bytes())) as archive:
            return {member.name.removeprefix("./"): archive.extractfile(member).read()
                    for member in archive if member.isfile()}
    except (OSError, tarfile.TarError):
        return {}
