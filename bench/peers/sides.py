"""The two sides of a comparison: how one process of each is started, and what it answers."""

import json
import os
import pathlib
import subprocess
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DEBIAN_PYTHON = "/usr/bin/python3"
LAYOUTS = ("nchw", "channels_last")


class Failure(Exception):
    """One line for the user."""


def ask(what, command):
    """The JSON of a short command's last line."""
    try:
        answer = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise Failure(f"{what}: {error}")
    if answer.returncode != 0:
        words = (answer.stderr.strip().splitlines() or [f"exit code {answer.returncode}"])[-1]
        raise Failure(f"{what}: {command[0]}: {words}")
    return json.loads(answer.stdout.strip().splitlines()[-1])


def run(command, environment):
    """Runs the command; returns the JSON of its last line and its peak resident set in bytes."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        errors = []
        reader = threading.Thread(target=lambda: errors.append(child.stderr.read()), daemon=True)
        reader.start()
        output = child.stdout.read()
        reader.join()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    except KeyboardInterrupt:
        child.kill()
        child.wait()
        raise
    if child.returncode != 0:
        end = f"signal {-child.returncode}" if child.returncode < 0 else f"exit code {child.returncode}"
        raise Failure(f"{end}: {(errors[0].strip().splitlines() or [' '.join(command)])[-1]}")
    return json.loads(output.strip().splitlines()[-1]), usage.ru_maxrss * 1024


class Side:
    """Measures one network in one way; `name` and `precision` tell it from the others. `workers` processes share every batch."""

    def __init__(self, name, precision, workers):
        self.name, self.precision, self.workers = f"{name} {precision}", precision, workers

    def measure(self, case, threads, seconds):
        """One process: {best_ms, median_ms, steps, rss_bytes, wall_s}."""
        begin = time.monotonic()
        command, environment = self.command(threads)
        command += ["--model", case.model, "--input", case.input, "--classes", str(case.classes), "--batch", str(case.batch),
                    "--threads", str(threads), "--precision", self.precision, "--seconds", str(seconds)]
        if self.workers > 1:
            command += ["--workers", str(self.workers)]
        answer, rss = run(command, environment)
        return {**self.times(answer), "steps": answer["steps"], "rss_bytes": rss,
                "wall_s": round(time.monotonic() - begin, 2)}


class Convoy(Side):
    def __init__(self, program, precision, workers, name="Convoy"):
        super().__init__(name, precision, workers)
        self.program = program

    def command(self, _threads):
        return [self.program, "bench", "step", "--json"], None

    def times(self, answer):
        return {"best_ms": answer["step_ms_best"], "median_ms": answer["step_ms"], "kernels": answer["family"]}


class PyTorch(Side):
    def __init__(self, python, layout, precision, preload, workers):
        super().__init__(f"{'DDP' if workers > 1 else 'PyTorch'} {layout}", precision, workers)
        self.python, self.layout, self.preload = python, layout, preload

    def command(self, threads):
        environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
        environment |= {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
        if self.preload:
            environment["LD_PRELOAD"] = self.preload
        script = "pytorch_ddp.py" if self.workers > 1 else "pytorch_step.py"
        return [self.python, str(HERE / script), "--layout", self.layout], environment

    def times(self, answer):
        return {"best_ms": answer["best_ms"], "median_ms": answer["median_ms"]}


class Sides:
    """All sides that can take part, ready to run. `about` says what they are: versions, CPU. With several workers `alone` is one
    worker of ours with the whole batch."""

    def __init__(self, program, python, precisions, workers=1):
        if not os.access(program, os.X_OK):
            raise Failure(f"{program} is not there; build it with: cmake --preset release && cmake --build build")
        cpu = ask("convoy doctor", [program, "doctor", "--json"])
        peer = ask("--python", [find_torch(python), "-c", QUESTION])
        hidden = "bf16" in precisions and cpu["amx_announced"] and not cpu["amx_palette"]
        self._folder = tempfile.TemporaryDirectory(prefix="convoy-peers-") if hidden else None
        repair = build_repair(self._folder.name) if hidden else None
        self.ours = {precision: Convoy(program, precision, workers) for precision in precisions}
        self.alone = {precision: Convoy(program, precision, 1, "Convoy, one worker") for precision in precisions if workers > 1}
        peers = ("f32", "bf16") if "bf16" in precisions else ("f32",)
        self.peers = [PyTorch(peer["python"], layout, precision, repair if precision == "bf16" else None, workers)
                      for precision in peers for layout in LAYOUTS]
        self.about = {"cpu": cpu, "convoy": version_of(program), "torch": peer["torch"], "torch_build": peer["build"],
                      "python": peer["version"], "kernel": os.uname().release, "cpuid_repaired_for_torch_bf16": hidden}


QUESTION = """
import json, sys, torch
print(json.dumps({"torch": torch.__version__, "build": torch.__config__.show(), "python": sys.executable,
                  "version": sys.version.split()[0]}))
"""


def find_torch(python):
    """The interpreter; Debian's gets its torch if that is missing."""
    if python == DEBIAN_PYTHON:
        script = f'root={ROOT}; . "$root/scripts/setup"; install_packages python3-torch libopenblas0-pthread'
        if subprocess.run(["bash", "-c", script]).returncode != 0:
            raise Failure("python3-torch and libopenblas0-pthread could not be installed")
    return python


def version_of(program):
    """What the program calls itself, and the commit of the working tree that this script is in."""
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.strip()
    try:
        commit = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True)
        return {"version": version, "commit": commit.stdout.strip()}
    except OSError:
        return {"version": version, "commit": ""}


def build_repair(folder):
    """Compiles cpuid_repair.c, without which PyTorch's AMX dies on a CPU that hides its palette."""
    library = f"{folder}/cpuid_repair.so"
    command = ["cc", "-O2", "-shared", "-fPIC", "-o", library, str(HERE / "cpuid_repair.c")]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise Failure(f"PyTorch's bf16 needs cpuid_repair.c on this CPU, and there is no C compiler: {error}")
    if done.returncode != 0:
        raise Failure(f"cpuid_repair.c does not compile: {(done.stderr.strip().splitlines() or command)[0]}")
    return library
