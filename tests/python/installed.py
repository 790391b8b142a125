"""The installed package, as a stranger uses it: the programs, from any folder, without the sources.

Usage: PYTHON installed.py FOLDER, where FOLDER holds the console scripts.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPTS = Path(sys.argv[1])


def output(*command, folder):
    done = subprocess.run([str(c) for c in command], cwd=folder, text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, (command, done.returncode, done.stderr)
    return done.stdout


def main():
    with tempfile.TemporaryDirectory() as folder:
        program = [sys.executable, "-m", "flopinj.trainer", "--model", "mlp", "--steps", "3"]
        output(SCRIPTS / "flopinj", "run", "--simulate", "-o", "a.pb", "--", *program,
               folder=folder)
        output(sys.executable, "-m", "flopinj", "run", "--simulate", "-o", "b.pb", "--", *program,
               folder=folder)
        figures = [json.loads(output(SCRIPTS / "flopreduce", "--format", "json", trace,
                                     folder=folder))["figures"] for trace in ("a.pb", "b.pb")]
        assert all(each["simulated"] for each in figures)
        first, second = (each["launches"] for each in figures)
        code = ("import flopinj; report = flopinj.reduce('a.pb'); "
                "assert flopinj.environment()['CUDA_INJECTION64_PATH']; "
                "assert flopinj.status() is None; "
                "print(report.launches, len(report._repr_html_()))")
        launches, size = map(int, output(sys.executable, "-c", code, folder=folder).split())
        assert launches == first and size < 20_000, (launches, size)
        assert first == second > 0, (first, second)
        code = ("import flopinj, subprocess, sys\n"
                "with flopinj.record(simulate=True) as run:\n"
                "    subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n"
                "print(run.report.launches)")
        assert int(output(sys.executable, "-c", code, *program, folder=folder)) == first
        assert "ingest" in output(SCRIPTS / "flopinj", "fleet", "--help", folder=folder)
        output(sys.executable, "-c", "from flopinj.fleet import lake; lake.query('jobs')",
               folder=folder)
        code = "import flopinj._programs as p; print(p.TREE / 'share/flopinj/examples')"
        examples = Path(output(sys.executable, "-c", code, folder=folder).strip())
        shown = output(SCRIPTS / "flopinj", "report", examples / "gpt-simulated.pb.zst",
                       folder=folder)
        assert "  HFU  " in shown and "  Peak lost  " in shown, shown
        output(SCRIPTS / "flopinj", "demo", folder=folder)
        assert (Path(folder) / "flopinj-demo.html").stat().st_size > 50_000
        # An exception of C++ is thrown and caught here.
        refused = subprocess.run([SCRIPTS / "flopreduce", "--no-such-option"], cwd=folder,
                                 stderr=subprocess.PIPE, text=True)
        assert refused.returncode == 2 and "--no-such-option" in refused.stderr, refused


main()
