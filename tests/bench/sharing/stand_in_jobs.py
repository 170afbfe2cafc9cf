"""In place of gpu_share_jobs.py where no GPU is, to try gpu_shares.py: --job stand_in_jobs.py, with tests/fake_nvml found through
LD_LIBRARY_PATH, its folder in FAKE_NVML, and --mps-control tests/fake_mps/nvidia-cuda-mps-control. They rest where those compute."""
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import gpu_share_jobs as jobs


def become_client(memory_bytes):
    with open(os.path.join(os.environ["FAKE_NVML"], "clients"), "a", encoding="utf-8") as file:
        file.write(f"{os.environ['CUDA_VISIBLE_DEVICES']} {os.getpid()} {memory_bytes}\n")


def main(kind, path, stop):
    report = jobs.Report(path)
    limits = {name: value for name, value in os.environ.items() if name.startswith("CUDA_MPS") and "DIRECTORY" not in name}
    report.say(pid=os.getpid(), device={"name": "none", **limits})
    become_client(1 << 30)
    if kind == "greedy":
        report.say(refused="as MPS would", had_bytes=2 << 30)
        return 7
    jobs.whole_seconds(report, stop, {"products": lambda: time.sleep(0.001), "steps": lambda: time.sleep(0.002)})
    if kind == "crash" and jobs.ATTEMPT == 1:
        pathlib.Path(os.environ["CUDA_MPS_PIPE_DIRECTORY"], "status").write_text("FAULT\n", encoding="utf-8")
        report.say(crashed="as a bad index would")
        return 9
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
