"""What is shown while it runs: a table that is written over on a terminal, lines elsewhere."""

import sys


def mib(count):
    return f"{count / 2**20:,.0f} MiB"


class View:
    _WIDTH = 24

    def __init__(self, budget):
        self._budget = budget
        self._live = sys.stdout.isatty()
        self._rows = {}
        self._drawn = 0

    def say(self, text=""):
        self._drawn = 0
        print(text, flush=True)

    def turn(self, number, racer):
        self._rows[racer.name] = self._row(number, racer)
        if not self._live:
            return self.say(self._rows[racer.name])
        if self._drawn:
            sys.stdout.write(f"\x1b[{self._drawn}A")
        for row in self._rows.values():
            sys.stdout.write(row + "\x1b[K\n")
        self._drawn = len(self._rows)
        sys.stdout.flush()

    def _row(self, number, racer):
        head = f"{racer.name:<10} step {number + 1:<3}"
        if not racer.fits:
            return f"{head} fails at {mib(racer.child.peak_bytes)}: out of memory"
        peak = racer.child.peak_bytes
        share = min(peak / self._budget, 1.0) if racer.name != "no budget" else 1.0
        bar = ("#" * round(share * self._WIDTH)).ljust(self._WIDTH, ".")
        said = racer.statistics()
        host = ", ".join(f"{name} {mib(used)}" for name, used in said.get("host_bytes_by_tier", {}).items())
        stall = f"  stalled {racer.last_stall_ms():,.0f} ms" if said else ""
        return (
            f"{head} {racer.steps[-1]['seconds']:6.2f} s  device [{bar}] {mib(peak)}"
            f"{'  host ' + host if host else ''}{stall}"
        )

    def tried(self, policy, batch, good):
        self.say(f"{policy:<10} batch {batch:<5} {'fits' if good else 'does not fit'}")


def table(headers, rows):
    """Lines of columns, the first one to the left, the others to the right."""
    columns = list(zip(headers, *rows))
    widths = [max(len(cell) for cell in column) for column in columns]
    for row in [headers, *rows]:
        cells = [row[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(row[1:], widths[1:])]
        yield "  ".join(cells).rstrip()
