"""Facts about the machine that explain its answers. Each is a line of text or absent."""

import ctypes
import glob
import os
import shutil
import site
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _said_by(*command):
    program = shutil.which(command[0])
    if program is None:
        return None
    try:
        done = subprocess.run([program, *command[1:]], text=True, capture_output=True, timeout=30,
                              stdin=subprocess.DEVNULL, check=False)
    except subprocess.TimeoutExpired:
        return "no answer in 30 s"
    return "; ".join((done.stdout or done.stderr).split("\n")).strip("; ") or None


def _file_line(path, containing):
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    return next((line.strip() for line in lines if containing in line), None)


def cupti_version(path):
    """Asked in a process of its own, since some versions crash where they cannot start."""
    ask = ("import ctypes,sys; v=ctypes.c_uint32(); "
           "r=ctypes.CDLL(sys.argv[1]).cuptiGetVersion(ctypes.byref(v)); print(r, v.value)")
    try:
        done = subprocess.run(["python3", "-c", ask, str(path)], text=True, capture_output=True,
                              timeout=30, check=False)
    except subprocess.TimeoutExpired:
        return "no answer in 30 s"
    if done.returncode != 0:
        return f"cuptiGetVersion ended with {done.returncode}"
    result, version = done.stdout.split()
    return f"API {version}" if result == "0" else f"cuptiGetVersion answers {result}"


def cuptis():
    """Every libcupti of the toolkits, the system, Python's packages and `tools/dev cupti-matrix`:
    path and version."""
    places = ["/usr/local/cuda*/extras/CUPTI/lib64", "/usr/local/cuda*/lib64", "/usr/local/lib",
              "/usr/lib/x86_64-linux-gnu"]
    places += [f"{folder}/nvidia/{part}/lib" for folder in site.getsitepackages()
               for part in ("cuda_cupti", "cu1*")]
    places.append(f"{ROOT}/build/cupti/*/nvidia/*/lib")
    found = {
        Path(path).resolve()
        for place in places
        for path in glob.glob(f"{place}/libcupti.so*")
    }
    return {str(path): cupti_version(path) for path in sorted(found)}


def driver_errors():
    """What the kernel has logged of the driver ("NVRM: Xid"); nothing where it may not be read."""
    log = _said_by("dmesg") or ""
    return [line for line in log.split("; ") if "NVRM" in line]


def fitting(versions, driver_major):
    """Of cuptis(), the paths of those that start and are no newer than the driver's CUDA, the
    newest first. Before CUDA 13 versions count from 1."""
    numbers = {path: int(version.removeprefix("API ")) for path, version in versions.items()
               if version.startswith("API ")}
    paths = [path for path, number in numbers.items() if number // 10000 <= driver_major]
    return sorted(paths, key=numbers.get, reverse=True)


def facts():
    """Name to value, for the report and docs/limits.md."""
    try:
        ctypes.CDLL("libcuda.so.1")
        loads = "loads"
    except OSError as problem:
        loads = str(problem)
    query = ("name,driver_version,persistence_mode,mig.mode.current,compute_mode,clocks.sm,"
             "memory.used")
    return {
        "kernel": _said_by("uname", "-srv"),
        "user": f"uid {os.getuid()}",
        "capabilities": _file_line("/proc/self/status", "CapEff"),
        "profiling for administrators only": _file_line("/proc/driver/nvidia/params",
                                                        "RmProfilingAdminOnly"),
        "libcuda.so.1": loads,
        "nvidia-smi": _said_by("nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"),
        "ncu": _said_by("ncu", "--version"),
        **{f"CUPTI {path}": version for path, version in cuptis().items()},
    }
