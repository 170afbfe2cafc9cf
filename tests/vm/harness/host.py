"""What a case may do on this machine while its guest runs: programs of the build, and certificates
with which they and the guest let each other in."""

import json
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

from harness import cache

# Of this machine, for a guest with a network.
GUEST_SEES_HOST_AT = "10.0.2.2"


class Host:
    """Of a case: files for the guest's image, how often it is booted, and what happens then."""

    files: dict[str, bytes] = {}
    boots = 1
    disk = None  # socket of a disk server, see harness.disk

    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self._processes = []
        self._fast = []

    def conduct(self, live):
        raise NotImplementedError

    def close(self):
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for path in self._fast:
            shutil.rmtree(path, ignore_errors=True)

    def start(self, program, config):
        """A daemon or coordinator with that text as its configuration."""
        name = pathlib.Path(program).name
        number = len(self._processes)
        file = self.folder / f"{name}-{number}.toml"
        file.write_text(config)
        with open(self.folder / f"{name}-{number}.log", "wb") as log:
            self._processes.append(subprocess.Popen(
                [self.build / program, "--config", file], stdout=log, stderr=subprocess.STDOUT))

    def logs(self):
        return "\n".join(f"--- {path.name}:\n{path.read_text(errors='replace')[-3000:]}"
                         for path in sorted(self.folder.glob("*.log")))

    def fast_folder(self):
        path = tempfile.mkdtemp(prefix="tierpilot-vm-", dir="/dev/shm")
        self._fast.append(path)
        return path

    def tierctl(self, socket_path, *arguments):
        """What it says as JSON; None when it failed."""
        done = subprocess.run([self.build / "tools/tierctl/tierctl", "--connect",
                               f"unix:{socket_path}", "-j", *arguments],
                              capture_output=True, check=False, timeout=60)
        if done.returncode:
            print(f"tierctl {' '.join(arguments)}: {done.stderr.decode().strip()}")
            return None
        return json.loads(done.stdout)

    def draw_certificates(self, names):
        """ca.pem, NAME.pem and NAME.key in the folder, for the addresses of host and guest."""
        def openssl(*arguments):
            try:
                subprocess.run(["openssl", *arguments], cwd=self.folder, check=True,
                               capture_output=True)
            except FileNotFoundError as error:
                raise cache.Unavailable("openssl is not installed") from error
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "1",
                "-subj", "/CN=ca")
        (self.folder / "names").write_text(
            f"subjectAltName=IP:127.0.0.1,IP:{GUEST_SEES_HOST_AT},IP:10.0.2.15\n")
        for name in names:
            openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr",
                    "-subj", f"/CN={name}")
            openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                    "-CAcreateserial", "-days", "1", "-extfile", "names", "-out", f"{name}.pem")


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def eventually(ready, patience_s, what):
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        found = ready()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"not in {patience_s} s: {what}")
