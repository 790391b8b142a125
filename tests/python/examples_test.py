"""The examples run to their end on a CPU, at small sizes, and name the command that comes next."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import staged

ROOT = Path(__file__).resolve().parents[2]
SMALL = {
    "matvec.py": [["--size", "48"]],
    "vision.py": [["--network", "alexnet", "--batch", "2", "--size", "64", "--steps", "2"]],
    "ddp.py": [["--width", "16", "--batch", "4", "--steps", "3"]],
    "jax_mlp.py": [["--width", "16", "--batch", "4", "--steps", "3"]],
    "lightning_mlp.py": [["--width", "16", "--batch", "4", "--steps", "3"]],
    "gpt.py": [[*"--layers 2 --width 32 --heads 2 --length 16 --vocabulary 64 --batch 2".split(),
                "--steps", "2", *more] for more in ([], ["--checkpoint"])],
}


NEEDS = {"jax_mlp.py": "jax", "vision.py": "torchvision", "lightning_mlp.py": "lightning"}
LAUNCHER = {"ddp.py": ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]}


class Examples(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="flopinj-examples-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        staged.stage(self.folder / "package", os.environ["FLOPINJ_BUILD"])
        self.env = {**os.environ, "PYTHONPATH": f"{self.folder}/package"}
        del self.env["FLOPINJ_BUILD"]  # of tests: who runs an example does not have it

    def run_example(self, *command):
        done = subprocess.run([sys.executable, *command], env=self.env, text=True, timeout=300,
                              cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_each_is_run(self):
        programs = {path.name for path in (ROOT / "examples").glob("*.py")} - {"closing.py"}
        self.assertEqual(programs, set(SMALL))

    def test_they_run(self):
        losses = []
        for name, runs in SMALL.items():
            if importlib.util.find_spec(NEEDS.get(name, "torch")) is None:
                continue
            for arguments in runs:
                with self.subTest(example=name, arguments=arguments):
                    printed = self.run_example(*LAUNCHER.get(name, []), ROOT / "examples" / name,
                                               *arguments)
                    self.assertIn("flopinj run -- ", printed[-1])
                    self.assertIn(f"{name} {' '.join(arguments)}", printed[-1])
                    if name == "gpt.py":
                        losses.append(printed[0])
        # Checkpointing changes what is computed, and not the result.
        self.assertEqual(len(set(losses)), 1 if losses else 0, losses)


# The names that JAX hands to XLA with the operations of the example's step.
NAMES = """
import sys
sys.path.insert(0, sys.argv[1])
import jax, jax_mlp
from jax import numpy as jnp
weights = [jnp.ones(shape) for shape in ((8, 16), (16, 16), (16, 4))]
step = jax.jit(jax_mlp.train).lower(weights, jnp.ones((4, 8)), jnp.ones((4, 4)))
import re
for op, name in re.findall(r'%([\\w.-]+) = .*op_name="([^";]+)', step.compile().as_text()):
    print(op, name)
"""


class Jax(Examples):
    """Phases of the example's operations, whose names are JAX's own; a GPU's ranges around them are
    those of tests/frameworks/record/made_up.py."""

    test_each_is_run = test_they_run = None

    def test_phases_by_the_names_of_operations(self):
        build = Path(os.environ["FLOPINJ_BUILD"])
        self.env |= {"JAX_PLATFORMS": "cpu"}
        named = [line.split(" ", 1)
                 for line in self.run_example("-c", NAMES, ROOT / "examples")]
        lines, expected = ["device\tof a test", "thread\t1\tpython"], dict.fromkeys(
            ("forward", "backward", "optimizer"), 0)
        for number, (op, name) in enumerate(named, 1):
            phase = ("optimizer" if "/optimizer/" in name else
                     "backward" if "transpose(" in name else
                     "forward" if "jvp(" in name else None)
            if phase is None:
                continue
            expected[phase] += 2 * number
            lines += [f"kernel\t{number}\t0\t{number}\tfusion_{number}",
                      "push\t1\tTSL\tXlaModule:#hlo_module=jit_train,program_id=3#",
                      f"push\t1\tTSL\tThunk:#name={name},hlo_op={op}#",
                      f"run\t1\t{number}\t100", "pop\t1\tTSL", "pop\t1\tTSL"]
        self.assertGreater(min(expected.values()), 0)
        trace = self.folder / "jax.pb"
        with open(trace, "wb") as out:
            subprocess.run([build / "test-bin/write_trace"], input="\n".join(lines) + "\n",
                           encoding="utf-8", stdout=out, check=True, timeout=60)
        done = subprocess.run([build / "bin/flopreduce", "--format", "json", trace], text=True,
                              stdout=subprocess.PIPE, check=True, timeout=60)
        phases = json.loads(done.stdout)["phases"]
        self.assertEqual({row["phase"]: row["flop"] for row in phases}, expected)


class LibTorch(unittest.TestCase):
    """The example in C++, with PyTorch's own libraries."""

    def test_it_trains_and_names_steps_and_phases(self):
        torch = Path(importlib.util.find_spec("torch").origin).parent
        nvtx = next(path for path in map(Path, sys.path)
                    for path in path.glob("nvidia/**/include/nvtx3")).parent
        with tempfile.TemporaryDirectory(prefix="flopinj-examples-") as folder:
            program, recorder, log = (Path(folder) / name for name in ("mlp", "nvtx.so", "log"))
            subprocess.run(
                ["c++", "-std=c++20", "-O0", f"-I{torch}/include", f"-I{nvtx}",
                 f"-I{torch}/include/torch/csrc/api/include", ROOT / "examples/libtorch_mlp.cpp",
                 "-o", program, f"-L{torch}/lib", f"-Wl,-rpath,{torch}/lib", "-ltorch",
                 "-ltorch_cpu", "-lc10"], check=True, timeout=500)
            subprocess.run(["cc", "-shared", "-fPIC", f"-I{nvtx}", f"-I{ROOT}/injector", "-o",
                            recorder, ROOT / "tests/frameworks/record/nvtx_log.c"], check=True)
            done = subprocess.run([program, "3", "16", "4"], text=True, check=True, timeout=100,
                                  stdout=subprocess.PIPE,
                                  env={**os.environ, "NVTX_INJECTION64_PATH": str(recorder),
                                       "FRAMEWORKS_NVTX_LOG": str(log)})
            ranges = [line.split("\t")[3] for line in log.read_text().splitlines()
                      if line.startswith("push\t")]
        self.assertEqual(ranges, 3 * ["step", "forward", "layer:first", "layer:last", "backward",
                                      "optimizer"])
        self.assertIn("flopinj run -- ", done.stdout.splitlines()[-1])


class Notebook(Examples):
    """Needs no PyTorch. Its outputs are those that it has when it is run."""

    BOOK = ROOT / "examples" / "report.ipynb"
    test_each_is_run = test_they_run = None

    def run_book(self, **settings):
        made = self.folder / "made.ipynb"
        self.env.update(settings, IPYTHONDIR=str(self.folder / "ipython"))
        self.run_example(ROOT / "tests" / "python" / "notebook.py", self.BOOK, made)
        return made.read_text(encoding="utf-8")

    def test_its_outputs(self):
        missing = [name for name in ("IPython", "pandas", "matplotlib")
                   if importlib.util.find_spec(name) is None]
        if missing:
            self.skipTest(f"not installed: {', '.join(missing)}")
        made = self.run_book(FLOPINJ_BUDGET="100", FLOPINJ_PLAN_WAIT_MS="60000")
        self.assertEqual(self.outputs(made), self.outputs(self.BOOK.read_text(encoding="utf-8")),
                         "tests/python/examples_test.py --write makes them again")

    @staticmethod
    def outputs(book):
        """Plain texts as they are. Pictures and HTML are there; package_test says how they look."""
        return [(mime, "".join(value) if mime in ("stream", "text/plain") else "")
                for cell in json.loads(book)["cells"] for output in cell.get("outputs", [])
                for mime, value in output.get("data", {"stream": output.get("text")}).items()]


if __name__ == "__main__":
    if importlib.util.find_spec("jax") is None:
        Jax.test_phases_by_the_names_of_operations = None
    if importlib.util.find_spec("torch") is None:
        Examples.test_each_is_run = Examples.test_they_run = None
        LibTorch.test_it_trains_and_names_steps_and_phases = None
    if sys.argv[1:] == ["--write"]:
        Notebook.test_its_outputs = lambda self: self.BOOK.write_text(self.run_book())
        unittest.main(argv=[sys.argv[0], "Notebook"])
    unittest.main(verbosity=2)
