"""NVIDIA's own driver and CUPTI without a GPU: programs are as without us, and one line says why.

build/real-driver and build/cupti are filled by `tools/dev test-real-driver`; else this is skipped.
"""

import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
import harness  # noqa: E402
from harness import FLOPINJ, LIBRARY, SIMGPU, SOURCE, run  # noqa: E402

HERE = Path(__file__).resolve().parent
DRIVERS = sorted((SOURCE / "build" / "real-driver").glob("*/libcuda.so.1"))
CUPTIS = sorted((SOURCE / "build" / "cupti").glob("*/nvidia/*/lib/libcupti.so.1[0-9]"))
CLIENT = harness.BUILD / "tests" / "real_driver_client"
MADE_BY_THE_DRIVER = Path("/dev/nvidiactl")  # run as root, and of no use
NO_GPU = ("flopinj: there is no GPU here (no device file that the driver could open); "
          "the program runs unprofiled\n")
# Where simgpu answers otherwise, and the driver's answer: thread modes need no device there.
OTHERWISE = {"cuThreadExchangeStreamCaptureMode(): 3": "cuThreadExchangeStreamCaptureMode(): 0"}
# Symbols that older drivers lack: the library asks for each and does without.
LACKING = {"535": {"cuStreamGetGreenCtx"}}  # of CUDA 12.4


def setUpModule():
    if not MADE_BY_THE_DRIVER.exists():
        unittest.addModuleCleanup(MADE_BY_THE_DRIVER.unlink, missing_ok=True)


def importable(module):
    command = [sys.executable, "-c", f"import {module}"]
    return run(command, harness.clean_environment()).returncode == 0


def environment(driver, cupti=None, **more):
    env = harness.clean_environment()
    folders = [driver.parent] + ([cupti.parent] if cupti else [])
    env["LD_LIBRARY_PATH"] = ":".join(map(str, folders))
    env.update({k: str(v) for k, v in more.items()})
    return env


BOTH_VARIABLES = {"CUDA_INJECTION64_PATH": LIBRARY, "NVTX_INJECTION64_PATH": LIBRARY}
# What is run, and with which variables.
WAYS = {
    "variables": lambda command: (command, BOTH_VARIABLES),
    "preload": lambda command: (command, {"LD_PRELOAD": LIBRARY}),
    "run": lambda command: ([FLOPINJ, "run", "--quiet", "--", *command], {}),
}


class Programs(harness.TestCase):
    def compare(self, command, driver, cuptis=CUPTIS, ways=("variables",), lines=(NO_GPU,)):
        """Output and exit code as without us, one line more on stderr, and no trace."""
        alone = run(command, environment(driver))
        for cupti in cuptis:
            for way in ways:
                with self.subTest(driver=driver.parent.name, cupti=cupti.parts[-5], way=way):
                    profiled, variables = WAYS[way](command)
                    env = environment(driver, cupti, FLOPINJ_OUTPUT=self.trace, **variables)
                    done = run(profiled, env)
                    self.assertEqual((done.returncode, done.stdout),
                                     (alone.returncode, alone.stdout), done.stderr)
                    self.assertIn(done.stderr, [line + alone.stderr for line in lines])
                    self.assertFalse(self.trace.exists())
        return alone

    def test_plain_c(self):
        answers = r"^cuInit 100, cuDriverGetVersion 0 12\d+, cuDeviceGetCount 3\n"
        for driver in DRIVERS:
            alone = self.compare([CLIENT], driver, ways=WAYS)
            self.assertEqual(alone.returncode, 5)
            self.assertRegex(alone.stdout, answers + r"threads [12]\n$")  # 555 has one of its own

    def test_a_cupti_that_is_in_the_process_already(self):
        """As JAX and torch have it: loaded before CUDA starts, of the driver's major or newer."""
        load = ("import ctypes, sys\n"
                "ctypes.CDLL(sys.argv[1])\n"
                "print(ctypes.CDLL('libcuda.so.1').cuInit(0))")
        for driver in DRIVERS:
            for cupti in CUPTIS:
                self.compare([sys.executable, "-c", load, cupti], driver, [cupti])

    @unittest.skipUnless(importable("cuda.bindings"), "no cuda-bindings")
    def test_python_with_cuda_bindings(self):
        client = ("from cuda.bindings import driver as d, runtime as r\n"
                  "print(d.cuInit(0), d.cuDriverGetVersion(), d.cuDeviceGetCount())\n"
                  "print(r.cudaGetDeviceCount())")
        for driver in DRIVERS:
            self.compare([sys.executable, "-c", client], driver)

    @unittest.skipUnless(importable("torch"), "no torch")
    def test_import_torch(self):
        client = ("import torch\n"
                  "print(torch.cuda.is_available(), torch.cuda.device_count())\n"
                  "print(torch.ones(2).sum())")
        for driver in DRIVERS:
            # One that is built for a newer CUDA than the driver's does not come to cuInit.
            self.compare([sys.executable, "-c", client], driver, CUPTIS[:1] + CUPTIS[-1:],
                         lines=(NO_GPU, ""))


@unittest.skipUnless(os.geteuid() == 0, "only root can make a program another user's")
class SetUserId(harness.TestCase):
    """The driver honours the variable there too: the library itself does nothing."""

    def run_as_nobody(self, driver, mode):
        os.chmod(self.folder, 0o777)  # a trace could be written
        injected, program = (shutil.copy(file, self.folder) for file in (LIBRARY, CLIENT))
        os.chmod(program, mode)
        env = environment(driver, None, CUDA_INJECTION64_PATH=injected,
                          NVTX_INJECTION64_PATH=injected, FLOPINJ_OUTPUT=self.trace)
        # The loader forgets LD_LIBRARY_PATH in such a program: it is told where the driver is.
        return run([program, shutil.copy(driver, self.folder)], env, user="nobody", cwd="/")

    def test_nothing_is_said_and_nothing_is_written(self):
        for driver in DRIVERS:
            with self.subTest(driver=driver.parent.name):
                plain = self.run_as_nobody(driver, 0o755)
                self.assertEqual((plain.returncode, plain.stderr), (5, NO_GPU))  # we are called
                privileged = self.run_as_nobody(driver, 0o4755)
                self.assertEqual((privileged.returncode, privileged.stderr), (5, ""))
                self.assertEqual(privileged.stdout, plain.stdout)
                self.assertFalse(self.trace.exists())


class Symbols(unittest.TestCase):
    def test_every_driver_has_what_the_library_asks_for(self):
        """Or is known to lack it; then the library does without."""
        asked = {n.decode() for n in re.findall(rb"\0(cu[A-Z]\w+)(?=\0)", LIBRARY.read_bytes())}
        self.assertIn("cuDriverGetVersion", asked)
        for driver in DRIVERS:
            has = subprocess.run(["nm", "-D", "--defined-only", driver], text=True, check=True,
                                 capture_output=True).stdout
            names = {line.split()[-1].split("@")[0] for line in has.splitlines()}
            lacking = LACKING.get(driver.parent.name, set())
            self.assertEqual(asked - names, lacking, driver.parent.name)


class Energy(unittest.TestCase):
    def test_nvml_is_survived(self):
        """It says itself that there is no driver in the kernel."""
        for driver in DRIVERS:
            with self.subTest(driver=driver.parent.name):
                done = run([harness.BUILD / "tests" / "real_driver_energy"], environment(driver))
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertRegex(done.stdout, r"^nvmlInit: Driver Not Loaded \(9\)\n$")


class Simulator(unittest.TestCase):
    def answers(self, folder, **more):
        env = dict(harness.clean_environment(), LD_LIBRARY_PATH=str(folder), **more)
        done = run([sys.executable, HERE / "questions.py"], env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_simgpu_answers_as_the_driver_does(self):
        simulated = self.answers(SIMGPU, SIMGPU_FAULT="no_device")
        for driver in DRIVERS:
            with self.subTest(driver=driver.parent.name):
                genuine = self.answers(driver.parent)
                self.assertEqual(len(simulated), len(genuine))
                different = {s: g for s, g in zip(simulated, genuine) if s != g}
                self.assertEqual(different, OTHERWISE)


if __name__ == "__main__":
    if not DRIVERS or not CUPTIS:
        print("skipped: no driver; `tools/dev test-real-driver` brings it", file=sys.stderr)
        sys.exit(77)
    harness.main()
