"""python3 -m tierpilot SCRIPT [ARGUMENT]...: runs it as python3 would, and reports its loss.

Also python3 -m tierpilot -m MODULE [ARGUMENT]... Of training with PyTorch, scikit-learn or
scipy.optimize, which needs no change.
"""

import os
import runpy
import sys

from tierpilot import hooks


def main():
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if arguments else 2
    hooks.install()
    if arguments[0] == "-m":
        if len(arguments) < 2:
            print("python3 -m tierpilot: -m needs a module's name", file=sys.stderr)
            return 2
        sys.argv = arguments[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return 0
    if not os.path.exists(arguments[0]):
        print(f"python3 -m tierpilot: '{arguments[0]}' does not exist", file=sys.stderr)
        return 2
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    runpy.run_path(os.path.abspath(arguments[0]), run_name="__main__")  # as __file__ is
    return 0


if __name__ == "__main__":
    sys.exit(main())
