"""This machine's own systemd, without udev and D-Bus: root's systemctl needs neither. Of what it
starts at boot a guest gets what the services under test rely on: emulated, the rest takes longer
than they do."""

import pathlib

from harness import debian

PROGRAMS = {"systemd", "systemd-executor", "systemd-journald", "systemd-sysusers", "systemd-tmpfiles",
            "systemctl", "systemd-run", "journalctl"}
STARTED = {
    "sockets.target": ["systemd-journald.socket", "systemd-journald-dev-log.socket"],
    "sysinit.target": ["systemd-journald.service", "systemd-sysusers.service",
                       "systemd-tmpfiles-setup.service", "sys-kernel-debug.mount",
                       "sys-kernel-tracing.mount"],
}
UNITS = pathlib.Path(__file__).resolve().parent.parent / "guest" / "systemd"


def add_to(made):
    files = debian.installed_files("systemd")
    programs = [path for path in files if path.name in PROGRAMS and path.parent.name in ("bin", "systemd")]
    units = [path for path in files if str(path.parent).endswith("/lib/systemd/system")]
    for path in programs + units:
        made.add_file(str(path), path)
    made.add_libraries([path for path in programs if not path.is_symlink()])
    for target, names in STARTED.items():
        for name in names:
            made.add_link(f"/etc/systemd/system/{target}.wants/{name}", f"/lib/systemd/system/{name}")
    for unit in UNITS.iterdir():
        made.add_bytes(f"/etc/systemd/system/{unit.name}", unit.read_bytes())
    made.add_link("/etc/systemd/system/default.target", "vm.target")
    made.add_bytes("/etc/machine-id", b"0123456789abcdef0123456789abcdef\n")
