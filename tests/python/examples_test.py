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
    "lightning_mlp.py": [["--width", "16", "--batch", "4", "--steps", "3"]],
    "gpt.py": [[*"--layers 2 --width 32 --heads 2 --length 16 --vocabulary 64 --batch 2".split(),
                "--steps", "2", *more] for more in ([], ["--checkpoint"])],
}


NEEDS = {"vision.py": "torchvision", "lightning_mlp.py": "lightning"}
LAUNCHER = {"ddp.py": ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]}


class Examples(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="flopinj-examples-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        staged.stage(self.folder / "package", os.environ["FLOPINJ_BUILD"])
        self.env = {**os.environ, "PYTHONPATH": f"{self.folder}/package"}

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
        self.assertEqual(len(set(losses)), 1, losses)


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
    """Needs no PyTorch."""

    test_each_is_run = test_they_run = None

    def test_its_cells_run(self):
        missing = [name for name in ("pandas", "matplotlib")
                   if importlib.util.find_spec(name) is None]
        if missing:
            self.skipTest(f"not installed: {', '.join(missing)}")
        book = json.loads((ROOT / "examples" / "report.ipynb").read_text())
        code = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
        self.assertFalse(any(cell.get("outputs") for cell in book["cells"]))
        self.env["MPLBACKEND"] = "agg"
        printed = self.run_example("-c", "\n".join(code))
        self.assertEqual(printed[-1], "Read the trace:  flopreduce demo.pb")
        self.assertTrue((self.folder / "demo.pb").is_file())


if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        Examples.test_each_is_run = Examples.test_they_run = None
        LibTorch.test_it_trains_and_names_steps_and_phases = None
    unittest.main(verbosity=2)
