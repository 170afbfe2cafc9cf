import time

from harness import host

LEASE_S = 10
PAUSE_S = 2 * LEASE_S + 1
# Of the task, ten in a second of the guest. The warden looks every half second; with the lease
# alone it would be 57 or more.
MOST_BEATS_AFTER = 20
PATIENCE_S = 120

BEATS = """out=/beats; [ -e $out ] || out={file}
while :; do echo beat $TIERPILOT_ATTEMPT; sleep 0.1; done >>$out"""
COORDINATOR = """
[coordinator]
state_dir = "{folder}/state"
[listen]
unix = "unix:{folder}/c.sock"
tls = "tls:127.0.0.1:{port}"
[tls]
ca = "{folder}/ca.pem"
certificate = "{folder}/coordinator.pem"
key = "{folder}/coordinator.key"
[lease]
duration_ms = {lease_ms}
[policy]
active = "least-loaded"
"""
NODE = """
[node]
name = "{name}"
coordinator = "{coordinator}"
data_listen = "{data}"
units = 1
memory = "64MiB"
work_dir = "{work}"
[pool]
fast_dir = "{fast}"
fast_budget = "16MiB"
slow_dir = "{slow}"
slow_budget = "16MiB"
[probe]
calibrate = false
passive = false
"""
TLS = """
[tls]
ca = "/etc/tierpilot/ca.pem"
certificate = "/etc/tierpilot/guest.pem"
key = "/etc/tierpilot/guest.key"
"""


class Host(host.Host):
    def __init__(self, build, folder):
        super().__init__(build, folder)
        self.draw_certificates(["coordinator", "guest"])
        port = host.free_port()
        self.socket = folder / "c.sock"
        self.start("coordinator/tierpilot-coordinator",
                   COORDINATOR.format(folder=folder, port=port, lease_ms=1000 * LEASE_S))
        config = NODE.format(name="guest", coordinator=f"tls:{host.GUEST_SEES_HOST_AT}:{port}",
                             data="tls:10.0.2.15:7000", work="/work", fast="/dev/shm/fast",
                             slow="/slow")
        self.files = {f"/etc/tierpilot/{name}": (folder / name).read_bytes()
                      for name in ("ca.pem", "guest.pem", "guest.key")}
        self.files["/etc/tierpilot/guest.toml"] = (config + TLS).encode()
        self.beats = folder / "beats"

    def up(self, name):
        answer = self.tierctl(self.socket, "node", "list")
        return answer and any(node["info"]["name"] == name and node["state"] == "up"
                              for node in answer["nodes"])

    def start_second_node(self):
        for name in ("work", "slow"):
            (self.folder / name).mkdir()
        self.start("daemon/tierpilotd", NODE.format(
            name="host", coordinator=f"unix:{self.socket}", data=f"unix:{self.folder}/data.sock",
            work=self.folder / "work", fast=self.fast_folder(), slow=self.folder / "slow"))
        host.eventually(lambda: self.up("host"), PATIENCE_S, f"a second node\n{self.logs()}")

    def conduct(self, live):
        host.eventually(lambda: self.up("guest"), PATIENCE_S, f"the guest's node\n{self.logs()}")
        submitted = self.tierctl(self.socket, "task", "submit", "--", "/bin/sh", "-c",
                                 BEATS.format(file=self.beats))
        assert submitted, self.logs()
        first = live.wait_for("beat", PATIENCE_S)
        self.start_second_node()
        live.monitor("set_link", name="card", up=False)
        live.monitor("stop")
        stopped = time.monotonic()
        host.eventually(self.beats.exists, PATIENCE_S, f"the next attempt\n{self.logs()}")
        time.sleep(max(0.0, stopped + PAUSE_S - time.monotonic()))
        before = len(live.heard)
        live.monitor("cont")
        live.wait_for("tasks 0", PATIENCE_S, before)
        # It tells of tasks between beats too.
        ended = next(i for i, line in enumerate(live.heard) if i >= before and line.startswith("tasks 0"))
        after = [line for line in live.heard[before:ended] if line.startswith("beat")]
        print(f"{len(after)} beats after the pause, of {first}")
        assert len(after) <= MOST_BEATS_AFTER, f"{len(after)} beats after the pause"
        assert self.beats.read_text().split("\n")[0] > first, "the same attempt on both nodes"
        live.monitor("set_link", name="card", up=True)
        host.eventually(lambda: self.up("guest"), PATIENCE_S, f"the guest again\n{self.logs()}")
        assert not [line for line in live.heard[ended:] if "beat" in line]
        live.say("done")


def check(out):
    log = out.text("daemon.log")
    assert "this machine was paused for up to" in log, log
