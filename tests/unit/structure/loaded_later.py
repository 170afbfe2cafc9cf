#!/usr/bin/env python3
"""Who builds only a program that loads the library of networks while it runs has that, too."""
import pathlib
import sys

LIBRARY = "libtierpilot-networks.so"
PROGRAMS = ["coordinator/tierpilot-coordinator", "tools/lab/tierpilot-lab"]

lines = (pathlib.Path(sys.argv[1]) / "build.ninja").read_text(encoding="utf-8").splitlines()
built = {line.split(":", 1)[0].removeprefix("build "): line for line in lines if line.startswith("build ")}
wrong = [f"{program} is linked without a look at {LIBRARY}: give its executable() `link_depends: networks_lib`"
         for program in PROGRAMS if LIBRARY not in built[program]]
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
