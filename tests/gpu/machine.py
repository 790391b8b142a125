"""What this machine has: a GPU, a CUDA toolkit, CUPTI. Standard library only."""

import ctypes
import importlib.util
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR = 75, 76  # CUdevice_attribute

# Program: sources and the libraries it needs besides the CUDA runtime, which is linked statically.
PROGRAMS = {
    "kernels": (("kernels.cu",), ()),
    "products": (("products.cu",), ("cublas", "cublasLt")),
    "probes": (
        tuple(f"probes/{name}.cu" for name in (
            "main", "callback_windows", "clients", "closing", "counts", "finalizing", "footprint",
            "graph_windows", "green", "in_child", "intruders", "launch_kinds", "limits",
            "many_records", "modules", "order", "tensor_map", "waiting", "windows")),
        ("cupti", "cuda"),
    ),
}


class NoGpu(Exception):
    """Says in a few words why there is none."""


def gpu():
    """(name, major, minor, CUDA version of the driver) of device 0."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise NoGpu("there is no NVIDIA driver (libcuda.so.1)") from None
    result = cuda.cuInit(0)
    if result != 0:
        raise NoGpu(f"cuInit failed with {result}")
    count = ctypes.c_int()
    if cuda.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        raise NoGpu("the driver knows no GPU")
    device, name, version = ctypes.c_int(), ctypes.create_string_buffer(128), ctypes.c_int()
    cuda.cuDeviceGet(ctypes.byref(device), 0)
    cuda.cuDeviceGetName(name, len(name), device)
    cuda.cuDriverGetVersion(ctypes.byref(version))
    capability = []
    for attribute in (COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR):
        value = ctypes.c_int()
        cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        capability.append(value.value)
    return name.value.decode(), capability[0], capability[1], version.value


def driver_version():
    """Of the kernel driver, such as "580.65.06"; None where it is not known."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    command = [program, "--query-gpu=driver_version", "--format=csv,noheader"]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          timeout=30, check=False)
    lines = done.stdout.split()
    return lines[0] if done.returncode == 0 and lines else None


def architecture(major, minor):
    """As nvcc names it. Products of warp groups and tensor memory need the "a"."""
    return f"{major}{minor}" + ("a" if major in (9, 10) else "")


BUILT_FOR = ("90a", "100a")  # of programs that another machine is to run


class Prebuilt:
    """Programs that were compiled elsewhere, by `tests/gpu/run --build`."""
    LIST = "architectures.txt"

    def __init__(self, folder):
        self.folder = folder

    @classmethod
    def make(cls, folder):
        """Program to an empty string or why it is not there."""
        folder.mkdir(parents=True, exist_ok=True)
        made = Toolkit().compile_all(folder, BUILT_FOR)
        (folder / cls.LIST).write_text("\n".join(BUILT_FOR) + "\n")
        return made

    def take(self, to, architecture, names):
        """Copies the programs that are here for this GPU: each to an empty string."""
        listed = self.folder and self.folder / self.LIST
        if not listed or not listed.exists() or architecture not in listed.read_text().split():
            return {}
        taken = [name for name in names if (self.folder / name).exists()]
        for name in taken:
            shutil.copy2(self.folder / name, to)
        return dict.fromkeys(taken, "")


class Toolkit:
    """A CUDA toolkit, completed from NVIDIA's Python wheels where it lacks a library."""

    def __init__(self):
        nvcc = shutil.which("nvcc")
        homes = [
            os.environ.get("CUDA_HOME"), nvcc and Path(nvcc).resolve().parents[1], "/usr/local/cuda"
        ]
        self.roots = [Path(home) for home in homes if home and Path(home).is_dir()]
        self.nvcc = next((root / "bin/nvcc"
                          for root in self.roots if (root / "bin/nvcc").exists()), None)
        spec = importlib.util.find_spec("nvidia")
        wheels = [wheel for place in (spec.submodule_search_locations or [] if spec else [])
                  for wheel in sorted(Path(place).glob("*")) if wheel.is_dir()]
        places = [root / part for root in self.roots
                  for part in (".", "targets/x86_64-linux", "extras/CUPTI")] + wheels
        self.includes = [p / "include" for p in places if (p / "include").is_dir()]
        # Stubs only serve to link; programs get the driver's own library.
        folders = [p / lib for p in places for lib in ("lib64", "lib")]
        self.libraries = [f for f in folders if f.is_dir()]
        self.stubs = [f / "stubs" for f in self.libraries if (f / "stubs").is_dir()]

    def library(self, name):
        """Path of libNAME.so or of a versioned one; None if there is none."""
        for folder in [*self.libraries, *(self.stubs if name == "cuda" else ())]:
            for pattern in (f"lib{name}.so", f"lib{name}.so.[0-9]*"):
                found = sorted(folder.glob(pattern))
                if found:
                    return found[0]
        return None

    def compile(self, program, folder, architectures):
        """An empty string, or why it failed."""
        sources, libraries = PROGRAMS[program]
        command = [self.nvcc, "-std=c++17", "-O2", "--threads", "0",
                   *(HERE / source for source in sources), "-o", folder / program]
        for name in architectures:
            command += ["-gencode", f"arch=compute_{name},code=sm_{name}"]
        for include in (HERE.parents[1], *self.includes):
            command += ["-I", include]
        for name in libraries:
            path = self.library(name)
            if path is None:
                return f"there is no lib{name}"
            command += ["-Xlinker", path]
            if name != "cuda":
                command += ["-Xlinker", f"-rpath={path.parent}"]
        done = subprocess.run([str(c) for c in command], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        return "" if done.returncode == 0 else f"{program}: {done.stdout}"

    def compile_all(self, folder, architectures, programs=tuple(PROGRAMS)):
        """Program to an empty string or why it failed."""
        with ThreadPoolExecutor() as pool:
            results = pool.map(lambda name: self.compile(name, folder, architectures), programs)
        return dict(zip(programs, results))
