"""What flopinj answers to mistakes of the first hour: what is wrong, and what to do. No process of
these starts CUDA. Use: mistakes_test.py FLOPINJ"""

import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

FLOPINJ = Path(sys.argv[1]).resolve()
OF_REPORT = "it is an option of flopinj report"

#: What is typed, the exit code, and words that its only line on standard error has.
TABLE = [
    ("record -- python train.py", 2, "Did you mean: flopinj run -- python train.py"),
    ("stat -- python train.py", 2, "Did you mean: flopinj run -- python train.py"),
    ("export a.pb", 2, "Did you mean: flopinj report --format csv -o tables/ a.pb"),
    ("open a.pb", 2, "Did you mean: flopinj report --format html -o report.html a.pb"),
    ("profile --simulate -- true", 2, "Did you mean: flopinj run --simulate -- true\n"),
    ("profile --simulate true -o x", 2, "Did you mean: flopinj run --simulate -- true -o x\n"),
    ("profile -t cuda -o x.pb sh x.sh", 2, "Did you mean: flopinj run -o x.pb -- sh x.sh\n"),
    ("record", 2, "Did you mean: flopinj run -- python train.py\n"),
    ("record -p 4711", 2, "Did you mean: flopinj attach 4711\n"),
    ("record sh x.sh -p 4711", 2, "Did you mean: flopinj run -- sh x.sh -p 4711\n"),
    ("stat --pid=4711", 2, "Did you mean: flopinj attach 4711\n"),
    ("start -p 4711", 2, "Did you mean: flopinj attach 4711\n"),
    ("watch -p4711", 2, "Did you mean: flopinj top 4711\n"),
    ("watch -n 5 4711", 2, "Did you mean: flopinj top 4711\n"),
    ("start --duration 3s 4711", 2, "Did you mean: flopinj attach --duration 3s 4711\n"),
    ("stats --report sum notes.txt", 2, "Did you mean: flopinj report notes.txt\n"),
    ("view -i notes.txt", 2, "Did you mean: flopinj report notes.txt\n"),
    ("version", 2, "Did you mean: flopinj --version"),
    ("completion bash", 2, "Did you mean: flopinj --generate bash\n"),
    ("dmeo", 2, "did you mean demo?"),
    ("-o x.pb python train.py", 2, "options go behind the command: flopinj run -o"),
    ("-V", 2, "unknown option -V: here it is --version"),
    ("run", 2, "it goes behind --, as in flopinj run -- python train.py"),
    ("run --simulate=foo -- x", 2, "--simulate takes no value: leave '=foo' out"),
    ("run -f true -- x", 2, "unknown option -f: here it is --force"),
    # -c is no nearer
    ("run -x -- x", 2, "unknown option -x; an option of the program goes behind it: flopinj run"),
    ("run --epochs 3 sh x.sh", 2, "behind it: flopinj run -- python train.py --epochs"),
    ("run --job-name x -- x", 2, "unknown option --job-name: did you mean --job?"),
    ("run --project x -- x", 2, "here it is --label project=NAME, or --job NAME"),
    ("run -p train -- x", 2, "ranges are chosen by --nvtx-include 'NAME/'"),
    ("run --kernel-regex x -- x", 2, "here it is --kernel-name regex:EXPRESSION"),
    ("run -k 'regex:a(' -- x", 2, "'regex:a(' is not understood (Unmatched ( or"),
    ("run --capture-range nvtx -- x", 2,
     "'nvtx' is none of its values: a range is chosen by --nvtx-include"),
    ("run --profile-from-start off -- x", 2, "here it is --capture-range cudaProfilerApi"),
    ("run —mode full -- x", 2, "begins with a long dash, and options with two short ones: --mode"),
    ("metrics --port :9178", 2, "':9178' is no number: it takes 1 to 65535, as in --port 9178"),
    ("top -- sh x.sh", 2,
     "only run takes a program: flopinj run -- sh x.sh, and while it runs flopinj top"),
    ("project --tokens 3 a.pb", 2,
     "unknown option --tokens; options go behind train or infer: flopinj project train --help"),
    ("metrics --port x", 2, "'x' is no number: it takes 1 to 65535 (see"),
    ("run --out x -- x", 2, "unknown option --out: did you mean --output?"),
    ("run --csv -- x", 2, "when the program has ended: flopinj report --format csv -o tables/"),
    ("run --html x.html -- x", 2, "unknown option --html: here it is --report FILE.html"),
    ("run --warmup 5 -- x", 2, "flopinj report --skip-steps N leaves the first steps out"),
    ("run --frequency 5 -- x", 2, "here it is --budget PERCENT"),
    ("run --nvtx -- x", 2, "are always recorded"),
    ("run -o -- x", 2, "--output takes a NAME, which is missing"),
    ("run --duration 30 seconds -- x", 127, "A time and its unit are one word: 30s\n"),
    ("status --all", 2, "without a PID all processes are listed"),
    ("cat notes.txt", 2, "Did you mean: flopinj report notes.txt\n"),
    ("rm notes.txt", 2, "unknown command 'rm'; there are run, demo"),
    ("kill 4711", 2, "Did you mean: flopinj detach 4711\n"),
    ("export --type sqlite a.pb", 2,
     "Did you mean: flopinj report --format sqlite -o report.db a.pb\n"),
    ("export --to=json a.pb", 2, "Did you mean: flopinj report --format json a.pb\n"),
    ("sh", 2, "unknown command 'sh'; there are run, demo"),  # as login, a program of that name
    ("run -m hello", 2, "flopinj run -- python -m MODULE"),
    ("run -n 8 -- x", 2, "flopinj run -o job-%r.pb -- torchrun --nproc-per-node N train.py"),
    ("run --gpus 2 -- x", 2, "CUDA_VISIBLE_DEVICES=0 flopinj run -- python train.py"),
    ("run --kernel-id 5 -- x", 2, "unknown option --kernel-id: here it is --kernel-name NAME"),
    ("run --unit x -- x", 2, "flopinj report says the unit of each number"),
    ("run --pid 1", 2, "flopinj attach PID"),
    ("run -- 'A=1 sh' x.sh", 127, "leave the quotes out: flopinj run -- env A=1 sh x.sh\n"),
    ("run -- 'cd x && sh x.sh'", 127, "Did you mean: flopinj run -- sh -c 'cd x && sh x.sh'\n"),
    ("top -p 1", 2, "flopinj top PID"),
    ("top -d 5", 2, "unknown option -d: here it is --every SECONDS"),
    ("top --delay 5", 2, "unknown option --delay: here it is --every SECONDS"),
    ("attach --delay 5", 2, "unknown option --delay: it is --start-after of flopinj run"),
    ("status --watch", 2, "here it is flopinj top PID"),
    ("doctor --gpu 0", 2, "CUDA_VISIBLE_DEVICES=0 flopinj doctor"),
    ("import --format torch x.json -o x.pb", 2, "import sees in a file which profiler"),
    ("attach -p 1", 2, "flopinj attach PID"),
    ("attach --for 3s 1", 2, "here it is --duration TIME"),
    ("attach 1 2", 2, "attach takes one PID at a time, and 2 are given"),
    ("attach 4194305", 1, "there is no process 4194305: has it ended? flopinj status lists"),
    ("run --metrics x -- x", 2, "flopinj chooses the counters"),
    ("run --trace=cuda -- x", 2, "are always recorded"),
    ("run --delay 5 -- x", 2, "here it is --start-after TIME"),
    ("run --live -- x", 2, "here it is flopinj top"),
    ("run --peak bf16=1T -- x", 2, OF_REPORT),
    ("metrics --listen 1", 2, "here it is flopinj metrics --port PORT"),
    ("demo --model mlp", 2, "unknown option --model: demo has no options: leave it out"),
    ("demo --steps 5", 2, "unknown option --steps: demo has no options: leave it out"),
    ("run -- nowhere-at-all", 127, "Is it in a folder of PATH"),
    ("run --simulate -- x.py 1", 127, "Did you mean: flopinj run --simulate -- python"),
    ("run -q -- 'sh x.sh'", 127, "leave the quotes out: flopinj run -q -- sh x.sh\n"),
    ("run -- A=1 sh x.sh", 127, "Did you mean: flopinj run -- env A=1 sh x.sh\n"),
    ("run -- cd x '&&' sh x.sh", 127, "Did you mean: flopinj run -- sh -c 'cd x && sh x.sh'\n"),
    ("run -- ./notes.txt", 126, "chmod +x makes a file a program"),
    ("run -- ./folder", 126, "it is a folder; name a program in it"),
    ("run --report x.pdf -- true", 2, "name it NAME.html. Nothing was started"),
    ("run --report nowhere/x.html -- true", 2, "create it first. Nothing was started"),
    ("run --report folder -- true", 2, "is a directory; name a file in it. Nothing was started"),
    ("import x.json", 2, "as in flopinj import"),
    ("import -o i.pb nowhere.json", 1, "no such file: export_chrome_trace()"),
    ("import -o i.pb folder", 1, "it is a folder: name the files in it"),
    ("import -o i.pb notes.txt", 1, "neither JSON of torch.profiler"),
    ("import -o i.pb list.json", 1, "export_chrome_trace() writes one"),
]


def run(words, folder, **variables):
    environment = {"PATH": "/usr/bin:/bin", "FLOPINJ_QUIET": "1", **variables}
    return subprocess.run([FLOPINJ, *words], cwd=folder, capture_output=True, text=True,
                          timeout=60, stdin=subprocess.DEVNULL, env=environment)


class Mistakes(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="flopinj-mistakes-")
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        (self.folder / "folder").mkdir()
        (self.folder / "notes.txt").write_text("one\n")
        (self.folder / "list.json").write_text('{"a": 1}\n')

    def test_every_answer_says_what_to_do(self):
        before = sorted(self.folder.rglob("*"))
        for typed, code, words in TABLE:
            with self.subTest(typed):
                done = run(shlex.split(typed), self.folder)
                self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
                self.assertIn(words, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertRegex(done.stderr, r"\Aflopinj( import)?: ")
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def test_lines_that_are_suggested_are_understood(self):
        suggested = set()
        for typed, _, _ in TABLE:
            said = run(shlex.split(typed), self.folder).stderr
            found = re.search("(?:Did you mean: |as in |out: )(flopinj .*?)(?: [(]see .*)?$", said)
            suggested |= {found[1]} if found else set()
        self.assertGreater(len(suggested), 12)
        for line in suggested:
            command, *words = shlex.split(line)[1:]
            if command == "run":  # without running it
                words.insert(0, "--print-env")
            with self.subTest(line):
                try:
                    done = run([command, *words], self.folder)
                    self.assertNotRegex(done.stderr, "unknown|see flopinj|no program|is required")
                except subprocess.TimeoutExpired:
                    self.assertEqual(command, "metrics")

    def test_help_may_be_behind_a_command(self):
        for command in ("run", "attach", "demo"):
            self.assertEqual(run([command, "help"], self.folder).stdout,
                             run([command, "--help"], self.folder).stdout)

    def test_a_misspelt_variable_is_named_before_the_program_runs(self):
        for name, words in (("FLOPINJ_OUTPT", "did you mean FLOPINJ_OUTPUT?"),
                            ("FLOPINJ_OUT", "did you mean FLOPINJ_OUTPUT?"),
                            ("FLOPINJ_SOMETHING_ELSE", "man flopinj has the variables"),
                            ("FLOPINJ_BUILD", "man flopinj has the variables")):
            done = run(["run", "--", "sh", "-c", "env >&2"], self.folder, **{name: "1"})
            self.assertIn(f"unknown variable {name} is ignored: {words}", done.stderr)
            # The library in the program has no more to say of it.
            self.assertIsNone(re.search(f"^{name}=", done.stderr, re.MULTILINE))
        done = run(["run", "--", "sh", "-c", "env"], self.folder, FLOPINJ_LAKE="lake")
        self.assertNotIn("unknown variable", done.stderr)
        self.assertIn("FLOPINJ_LAKE=lake", done.stdout)

    def test_a_variable_that_only_an_option_could_be_is_named_to_a_report(self):
        done = run(["tables", "kernels"], self.folder, FLOPINJ_PEAK="989T")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "unknown variable FLOPINJ_PEAK is ignored: .*--peak")
        done = run(["tables", "kernels"], self.folder, FLOPINJ_LAKE="lake", FLOPINJ_MODE="full")
        self.assertEqual(done.stderr, "")

    def test_a_program_that_hands_no_variables_on_is_named(self):
        for name, said in (("sudo", "sudo clears variables: sudo flopinj run -- python train.py"),
                           ("docker", "docker run --gpus all IMAGE flopinj run -- PROGRAM"),
                           ("ssh", "ssh HOST flopinj run -- PROGRAM")):
            stand_in = self.folder / name
            stand_in.write_text('#!/bin/sh\necho "$@"\n')
            stand_in.chmod(0o755)
            path = f"{self.folder}:/usr/bin:/bin"
            for before, heard in (([], True), (["--mode", "off"], False)):
                done = run(["run", *before, "--", name, "python", "train.py"], self.folder,
                           PATH=path, FLOPINJ_QUIET="0")
                self.assertEqual((done.returncode, done.stdout), (0, "python train.py\n"))
                self.assertEqual(f"no program that {name} starts is recorded:" in done.stderr,
                                 heard)
                self.assertEqual(said in done.stderr, heard, done.stderr)
        done = run(["run", "--", "sudo", "-E", "python"], self.folder, PATH=path,
                   FLOPINJ_QUIET="0")
        self.assertNotIn("is not recorded", done.stderr)

    def test_the_budget_may_have_its_percent_sign(self):
        for budget in ("5%", "5"):
            done = run(["run", "--budget", budget, "--", "true"], self.folder)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_variable_is_checked_as_its_option_is(self):
        for name, value, takes in (("FLOPINJ_MODE", "fast", "multiplex, full, timing, count or"),
                                   ("FLOPINJ_BUDGET", "500", "per cent of wall time")):
            done = run(["run", "--", "echo", "ran"], self.folder, **{name: value})
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f"{name}={value} is not understood: it takes {takes}", done.stderr)
        for words, variables in ((["--mode", "off"], {"FLOPINJ_MODE": "fast"}),
                                 ([], {"FLOPINJ_RUN": "of another version"})):  # it has no option
            done = run(["run", *words, "--", "echo", "ran"], self.folder, **variables)
            self.assertEqual((done.returncode, done.stdout), (0, "ran\n"), done.stderr)

    def test_metrics_of_nothing(self):
        done = run(["metrics"], self.folder)
        if not done.stdout:  # else a program is recorded on this machine now
            self.assertEqual(done.returncode, 1)
            self.assertIn("start one with flopinj run", done.stderr)

    def test_metrics_replace_no_file_of_another_kind(self):
        trace = self.folder / "run.pb"
        trace.write_bytes(b"a recording")
        done = run(["metrics", "-o", "run.pb"], self.folder)
        self.assertEqual((done.returncode, trace.read_bytes()), (1, b"a recording"))
        self.assertIn("run.pb exists and has no metrics of flopinj: name another file", done.stderr)
        page = self.folder / "flopinj.prom"
        page.write_text("# HELP flopinj_up 1 where the process was asked.\n")
        process = subprocess.Popen([FLOPINJ, "metrics", "-o", page])
        try:
            with self.assertRaises(subprocess.TimeoutExpired):
                process.wait(1)
        finally:
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(60), 0)

    def test_a_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            done = run(["metrics", "--port", str(port)], self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("another program has it; choose another --port", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
