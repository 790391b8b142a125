"""The examples run to their end on a CPU, at small sizes, and name the command that comes next."""

import importlib.util
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
    "gpt.py": [[*"--layers 2 --width 32 --heads 2 --length 16 --vocabulary 64 --batch 2".split(),
                "--steps", "2", *more] for more in ([], ["--checkpoint"])],
}


class Examples(unittest.TestCase):

    def test_each_is_run(self):
        programs = {path.name for path in (ROOT / "examples").glob("*.py")} - {"closing.py"}
        self.assertEqual(programs, set(SMALL))

    def test_they_run(self):
        losses = []
        with tempfile.TemporaryDirectory(prefix="flopinj-examples-") as folder:
            staged.stage(Path(folder) / "package", os.environ["FLOPINJ_BUILD"])
            env = {**os.environ, "PYTHONPATH": f"{folder}/package"}
            for name, runs in SMALL.items():
                for arguments in runs:
                    with self.subTest(example=name, arguments=arguments):
                        done = subprocess.run([sys.executable, ROOT / "examples" / name,
                                               *arguments], env=env, text=True, timeout=300,
                                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                        self.assertEqual(done.returncode, 0, done.stderr)
                        self.assertIn("flopinj run -- python", done.stdout.splitlines()[-1])
                        if name == "gpt.py":
                            losses.append(done.stdout.splitlines()[0])
        # Checkpointing changes what is computed, and not the result.
        self.assertEqual(len(set(losses)), 1, losses)


if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        print("skipped: torch is not installed")
        sys.exit(77)
    unittest.main(verbosity=2)
