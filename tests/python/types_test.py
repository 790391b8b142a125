"""Types: the package and a user's script by `mypy --strict`."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
import venv
from pathlib import Path

import staged

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CACHE = Path(os.environ["FLOPINJ_BUILD"]).resolve() / "mypy"


def mypy(*arguments):
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", CACHE, *arguments],
                          cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=300, check=False)
    return done.stdout


class Types(unittest.TestCase):

    def test_the_package(self):
        self.assertRegex(mypy("--strict", "python/flopinj"), "^Success: ")

    def test_a_script_that_uses_the_installed_package(self):
        with tempfile.TemporaryDirectory(prefix="flopinj-types-") as folder:
            venv.create(folder)
            (packages,) = Path(folder).glob("lib/python*/site-packages")
            staged.stage(packages, os.environ["FLOPINJ_BUILD"])
            options = ["--strict", "--config-file=", "--python-executable", f"{folder}/bin/python"]
            self.assertRegex(mypy(*options, HERE / "data" / "user_script.py"), "^Success: ")
            wrong = Path(folder) / "wrong.py"
            wrong.write_text("import flopinj\n"
                             "flopinj.rekord()\n"
                             "flopinj.record(budget=[{}])\n"
                             "flop: str = flopinj.reduce('t.pb').flop\n"
                             "with flopinj.step(tokens='4'):\n"
                             "    pass\n")
            said = mypy(*options, wrong)
            for line in range(2, 6):
                self.assertIn(f"wrong.py:{line}: error", said)


if __name__ == "__main__":
    if importlib.util.find_spec("mypy") is None:
        print("skipped: mypy is not installed; `tools/dev test` brings it")
        sys.exit(77)
    unittest.main(verbosity=2)
