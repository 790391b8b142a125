"""The Python package against the programs of the build folder, on the simulated GPU."""

import doctest
import importlib
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
import harness  # noqa: E402
import staged  # noqa: E402
from harness import CLIENTS, TRAINER, clean_environment, injected_environment  # noqa: E402

STAGE = tempfile.TemporaryDirectory(prefix="flopinj-package-")
sys.path.insert(0, str(staged.stage(STAGE.name, harness.BUILD)))
import flopinj  # noqa: E402

HEAVY = ("torch", "pandas", "numpy", "jax", "pyarrow", "matplotlib", "IPython")


def has(*modules):
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


class Importing(unittest.TestCase):

    def python(self, code):
        env = {**clean_environment(), "PYTHONPATH": STAGE.name}
        done = subprocess.run([sys.executable, "-c", code], env=env, check=True, text=True,
                              stdout=subprocess.PIPE, timeout=60)
        return done.stdout

    def test_it_takes_less_than_20_milliseconds(self):
        # Of the processor: what else runs on this machine does not matter.
        code = ("import time; begin = time.process_time(); import flopinj; "
                "print(time.process_time() - begin)")
        self.assertLess(statistics.median(float(self.python(code)) for _ in range(5)), 0.02)

    def test_nothing_else_is_imported_before_it_is_asked_for(self):
        loaded = self.python("import sys, flopinj; flopinj.range, flopinj.status;"
                             "print(*sys.modules)").split()
        self.assertEqual([name for name in HEAVY if name in loaded], [])

    def test_its_names_are_there(self):
        for name in flopinj.__all__:
            self.assertIsNotNone(getattr(flopinj, name), name)
        with self.assertRaises(AttributeError):
            flopinj.no_such_name  # noqa: B018


class Examples(unittest.TestCase):

    def test_those_in_the_sources(self):
        for name in ("_programs", "_control", "_marks"):
            result = doctest.testmod(importlib.import_module(f"flopinj.{name}"))
            self.assertGreater(result.attempted, 0, name)
            self.assertEqual(result.failed, 0, name)

    def test_errors_are_the_programs_own_sentence(self):
        from flopinj import _programs

        command = ["run", "--print-env", "--bugdet=3", "--", "true"]
        said = subprocess.run([harness.FLOPINJ, *command], stderr=subprocess.PIPE, text=True)
        with self.assertRaises(flopinj.Error) as caught:
            _programs.run("flopinj", *command)
        self.assertEqual(f"flopinj: {caught.exception}", said.stderr.strip())
        self.assertIn("--budget", str(caught.exception))
        self.assertEqual(caught.exception.exit_code, said.returncode)


CLIENT = """
import ctypes, sys
import flopinj
from cuda.bindings import driver

def ok(result):
    assert result[0] == driver.CUresult.CUDA_SUCCESS, result[0]
    return result[1] if len(result) == 2 else result[1:]

ok(driver.cuInit(0))
ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(ok(driver.cuDeviceGet(0))))))
module = ok(driver.cuModuleLoadData(open(sys.argv[1], 'rb').read()))
axpy = ok(driver.cuModuleGetFunction(module, b'axpy'))
x, y = (ok(driver.cuMemAlloc(4096)) for _ in range(2))
ok(driver.cuMemsetD32(x, 0, 1024)), ok(driver.cuMemsetD32(y, 0, 1024))

def launch(n):  # 2 n FLOP
    ok(driver.cuLaunchKernel(axpy, (n + 31) // 32, 1, 1, 32, 1, 1, 0, 0,
                             ((n, 2.0, x, y), (ctypes.c_int, ctypes.c_float, None, None)), 0))
"""
MARKING = CLIENT + """
@flopinj.range('layer:one')
def layer():
    launch(40)

for _ in range(6):
    with flopinj.step():
        with flopinj.phase('forward'):
            launch(100)
            layer()
        with flopinj.phase('backward'):
            launch(70)
        with flopinj.phase('optimizer'):
            launch(9)
ok(driver.cuCtxSynchronize())
"""
CONTROLLING = CLIENT + """
def launches(count):
    for _ in range(count):
        launch(100)
    ok(driver.cuCtxSynchronize())

launches(3)
print(flopinj.status())
print(flopinj.start(sys.argv[2], level='tally'))
launches(7)
print(flopinj.status())
try:
    flopinj.start('other.pb')
except flopinj.Error as error:
    print('refused:', error)
print(flopinj.stop())
launches(5)
"""


@has("cuda.bindings")
class Programs(harness.TestCase):

    def client(self, code, *arguments, injected=True, **settings):
        env = injected_environment(self.trace, **settings) if injected else clean_environment()
        env["LD_LIBRARY_PATH"] = str(harness.SIMGPU)
        env["PYTHONPATH"] = STAGE.name
        done = harness.run([sys.executable, "-c", code, CLIENTS / "client_kernels.simgpu",
                            *arguments], env, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_ranges_of_the_program(self):
        self.client(MARKING)
        ranges = harness.reduce(self.trace)["ranges"]
        self.assertEqual({row["path"]: (row["launches"], int(row["flop"])) for row in ranges}, {
            "step": (24, 6 * 2 * 219),
            "step/forward": (12, 6 * 2 * 140),
            "step/forward/layer:one": (6, 6 * 2 * 40),
            "step/backward": (6, 6 * 2 * 70),
            "step/optimizer": (6, 6 * 2 * 9),
        })

    def test_nothing_happens_where_nothing_is_injected(self):
        self.client(MARKING, injected=False)
        lines = self.client(CONTROLLING.replace("flopinj.start('other.pb')", "pass"), "now.pb",
                            injected=False)
        self.assertEqual(lines, ["None"] * 4)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_program_begins_and_ends_its_own_recording(self):
        first, name, second, refused, stopped = self.client(CONTROLLING, self.trace,
                                                            FLOPINJ_DORMANT=1)
        self.assertIn("'state': 'dormant'", first)
        self.assertEqual(name, str(self.trace))
        self.assertIn("'state': 'recording'", second)
        self.assertRegex(refused, "refused: .*record")
        self.assertEqual(stopped, name)
        self.assertEqual(harness.reduce(self.trace)["total"]["launches"], 7)

    def test_variables_for_another_program(self):
        settings = flopinj.environment(output=str(self.trace), simulate=True, quiet=True)
        self.assertEqual(settings["CUDA_INJECTION64_PATH"], os.path.realpath(harness.LIBRARY))
        subprocess.run([TRAINER, "--steps", "1"], env={**clean_environment(), **settings},
                       check=True, stderr=subprocess.DEVNULL, timeout=120)
        self.assertGreater(harness.reduce(self.trace)["total"]["launches"], 0)


if __name__ == "__main__":
    harness.main()
