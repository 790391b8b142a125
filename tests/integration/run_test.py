"""flopinj run: what it says, what it refuses, and that processes of one run keep traces apart."""

import fcntl
import glob
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import harness
from harness import CLIENTS, FLOPINJ, FLOPREDUCE, TRAINER
from theory import step_launches

LAUNCH = CLIENTS / "launch_client"
KNOWN = harness.BUILD / "lib/flopinj/known_kernels/known_kernels"
KERNELS = harness.SOURCE / "tests/unit/simgpu/ptx/kernels.ptx"
LAUNCHES = 60  # of launch_client same_grid
RUN = (str(FLOPINJ), "run", "--simulate", "-o", "t.pb", "--")
PR_SET_CHILD_SUBREAPER = 36


def has_launches(trace):
    return (trace.exists() and trace.stat().st_size > 0 and
            harness.reduce(trace, check=None)["ledger"][-1]["launches"] > 0)


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def may_unshare():
    try:
        return subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True,
                              check=False).returncode == 0
    except FileNotFoundError:
        return False


class RunCase(harness.TestCase):
    def flopinj_run(self, *arguments, expect=0, **variables):
        done = harness.run([FLOPINJ, "run", *arguments], harness.clean_environment() | variables,
                           cwd=self.folder)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done

    def ours(self, text):
        return [line for line in text.splitlines() if line.startswith("flopinj: ")]

    def launches(self, name):
        return harness.reduce(self.folder / name)["ledger"][-1]["launches"]

    def traces(self):
        return sorted(path.name for path in self.folder.glob("*.pb"))


class Torch(RunCase):
    def test_python_starts_with_the_hook(self):
        code = "import os; print(os.environ['PYTHONPATH'])"
        done = self.flopinj_run("--torch", "--simulate", "-q", "-o", "t.pb", "--", sys.executable,
                                "-c", code, PYTHONPATH=str(self.folder))
        hook, rest = done.stdout.strip().split(":", 1)
        self.assertEqual(rest, str(self.folder))
        self.assertTrue(os.path.samefile(hook, FLOPREDUCE.parents[1] / "lib/flopinj/torch"))
        self.assertEqual(done.stderr, "")

    def test_without_the_package_it_says_so_and_the_program_runs(self):
        (self.folder / "torch.py").write_text("print('imported')")
        done = self.flopinj_run("--torch", "--simulate", "-q", "-o", "t.pb", "--", sys.executable,
                                "-S", "-c", "import sitecustomize, torch; print(torch.__name__)",
                                PYTHONPATH=str(self.folder))
        self.assertEqual(done.stdout.split(), ["imported", "torch"])
        self.assertRegex(done.stderr, "^flopinj: --torch: no names for modules and operators: .*"
                                      "flopinj: in a clone of flopinj, pip install [.]\n$")


class Simulated(RunCase):
    def test_a_cupti_beside_the_cuda_runtime_is_not_taken(self):
        maths = re.search(r"\S+/libm[.-]\S+", Path("/proc/self/maps").read_text())
        if maths is None:
            self.skipTest("Python has no library of mathematics to stand in")
        for name in ("libcudart.so.13", "libcupti.so.13"):
            shutil.copy(maths[0], self.folder / name)
        preload = [harness.SANITIZER_PRELOAD, str(self.folder / "libcudart.so.13")]
        done = self.flopinj_run("--simulate", "-o", "t.pb", "--", LAUNCH, "same_grid",
                                LD_PRELOAD=":".join(filter(None, preload)))
        self.assertEqual(self.launches("t.pb"), LAUNCHES, done.stderr)

    def test_every_launch_is_measured_also_of_a_kernel_that_is_launched_once(self):
        """clock_client: one launch of 2^20 multiply-adds, and two of 2^10, which have other
        parameters."""
        self.flopinj_run("--simulate", "-o", "t.pb", "--", CLIENTS / "clock_client", KERNELS, 1, 0,
                         0)
        report = harness.reduce(self.folder / "t.pb")
        self.assertEqual(report["figures"]["flop"], 2 * ((1 << 20) + 2 * (1 << 10)))
        ledger = report["ledger"][-1]
        self.assertEqual([ledger[key] for key in ("launches", "measured", "unmeasured")], [3, 3, 0])

    def test_a_block_that_takes_all_registers_is_counted_as_instrumented_code_takes_none(self):
        """24 launches of two blocks of 1,024 threads, 48 FLOP eight times; 100 of 4,096 FLOP."""
        figures = self.full_blocks()
        self.assertEqual(figures["flop"], 24 * 2 * 1024 * 8 * 48 + 100 * 4096)

    def test_of_a_launch_that_must_not_be_instrumented_there_is_a_bound(self):
        """Where instrumented code may take room, as on hardware, a full block has none to give."""
        self.assertEqual(self.full_blocks("instrumented_memory=1")["bounded_launches"], 24)

    def full_blocks(self, fault=""):
        self.flopinj_run("--simulate", "-o", "t.pb", "--", KNOWN, "1,024 x 64", "FFMA",
                         XDG_STATE_HOME="/nonexistent", SIMGPU_FAULT=fault)
        report = harness.reduce(self.folder / "t.pb")
        self.assertEqual(report["ledger"][-1]["unmeasured"], 0)
        return report["figures"]

    def test_the_users_settings_hold(self):
        shown = self.flopinj_run("--simulate", "--mode", "timing", "--print-env",
                                 FLOPINJ_PLAN_WAIT_MS="7").stdout
        self.assertEqual(re.findall(r"^export FLOPINJ_(?:MODE|PLAN_WAIT_MS)=(.*)$", shown, re.M),
                         ["timing", "7"])

    def test_the_doctor_looks_at_the_simulated_gpu(self):
        done = harness.run([FLOPINJ, "doctor", "--simulate", "--sim-devices", "3"],
                           harness.clean_environment())
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"(?m)^ok    CUDA driver: .*simgpu/libcuda\.so\.1.*, 3 GPUs$")


class Closing(RunCase):
    def test_one_line_says_what_there_is_and_what_to_type(self):
        done = self.flopinj_run("--simulate", "-o", "a b.pb", "--", LAUNCH, "same_grid", "7",
                                expect=7)
        size = (self.folder / "a b.pb").stat().st_size / 1000
        self.assertEqual(self.ours(done.stderr),
                         [f"flopinj: recorded {LAUNCHES} launches, counters read for all kernels "
                          f"({size:.3g} kB). Next: flopinj report '{self.folder}/a b.pb'"])
        command = done.stderr.split("Next: ")[1]
        shown = subprocess.run(command, shell=True, env={"PATH": str(FLOPREDUCE.parent)},
                               capture_output=True)
        self.assertEqual(shown.returncode, 0, shown.stderr)

    def test_quiet(self):
        done = self.flopinj_run("--quiet", "--simulate", "-o", "q.pb", "--", LAUNCH, "same_grid")
        self.assertEqual(done.stderr, "")
        self.assertEqual(self.traces(), ["q.pb"])
        self.assertEqual(self.flopinj_run("-q", "--", "true").stderr, "")

    def test_without_counters_it_says_so(self):
        done = self.flopinj_run("--simulate", "--mode", "timing", "-o", "t.pb", "--", LAUNCH,
                                "same_grid")
        self.assertIn("no counters (mode timing)", done.stderr)

    def test_several_ranks_have_one_line_with_all_their_traces(self):
        script = "; ".join(f"RANK={rank} WORLD_SIZE=2 {LAUNCH} same_grid" for rank in (1, 0))
        done = self.flopinj_run("--simulate", "-o", "job.pb", "--", "sh", "-c", script)
        self.assertEqual(self.traces(), ["job.rank0.pb", "job.rank1.pb"])
        lines = self.ours(done.stderr)
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertTrue(
            lines[0].startswith(f"flopinj: rank 0 of 2 recorded {LAUNCHES} launches"), lines)
        pattern = lines[0].split("Next: flopinj report ")[1]
        report = harness.reduce(*glob.glob(pattern))
        self.assertEqual(report["ledger"][-1]["launches"], 2 * LAUNCHES)


class NothingRecorded(RunCase):
    def test_a_program_that_cannot_start_is_the_only_word(self):
        for program, code in (("no-such-program", 127), ("/", 126)):
            done = self.flopinj_run("--simulate", "--", program, expect=code)
            lines = done.stderr.splitlines()
            self.assertEqual(len(lines), 1, done.stderr)
            self.assertIn("cannot run", lines[0])

    def test_a_program_without_cuda_is_named(self):
        done = self.flopinj_run("--simulate", "--", "sh", "-c", "exit 5", expect=5)
        self.assertEqual(len(self.ours(done.stderr)), 1, done.stderr)
        self.assertIn("nothing was recorded: no process of this run started CUDA", done.stderr)

    def test_that_nothing_was_recorded_is_said_as_the_program_ends(self):
        """Whoever reads a file behind the program finds the line in it."""
        def wait():
            said = self.folder / "said.txt"
            with open(said, "w") as file:
                subprocess.run([FLOPINJ, "run", "--simulate", "--", "true"], stderr=file,
                               env=harness.clean_environment(), cwd=self.folder, check=True)
            ended = time.monotonic()
            while "nothing was recorded" not in said.read_text():
                self.assertLess(time.monotonic(), ended + 60)
                time.sleep(0.001)
            return time.monotonic() - ended

        self.assertLess(min(wait() for _ in range(5)), 0.08)

    def test_a_machine_without_a_driver_is_named_first(self):
        env = harness.clean_environment()
        if subprocess.run([sys.executable, "-c", "import ctypes; ctypes.CDLL('libcuda.so.1')"],
                          env=env, capture_output=True).returncode == 0:
            self.skipTest("there is a driver here")
        done = harness.run([FLOPINJ, "run", "--", "true"], env, cwd=self.folder)
        self.assertRegex(done.stderr, r"\Aflopinj: no NVIDIA driver on this machine .*nothing was "
                                      r"recorded.*flopinj run --simulate.*\n\Z")

    # What the CUDA runtime does before all else: it asks for tables that only NVIDIA's driver has.
    ASKS = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
if "starts" in sys.argv:
    assert cuda.cuInit(0) == 0
table = ctypes.c_void_p()
assert cuda.cuGetExportTable(ctypes.byref(table), bytes(range(16))) != 0
if "loads" in sys.argv:
    context, module = ctypes.c_void_p(), ctypes.c_void_p()
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    text = b".version 8.0\\n.target sm_80\\n.address_size 64\\n.visible .entry k() { ret; }\\0"
    assert cuda.cuModuleLoadData(ctypes.byref(module), text) == 0
"""

    def python_run(self, *how):
        return self.flopinj_run("--simulate", "--", sys.executable, "-c", self.ASKS, *how,
                                **harness.sanitizer_first({}))

    def test_a_program_of_the_cuda_runtime_gets_one_line_with_the_cause(self):
        for how in ([], ["starts"]):
            with self.subTest(how):
                done = self.python_run(*how)
                self.assertRegex(done.stderr, r"\Asimgpu: this program uses the CUDA runtime.*"
                                              r"machine code: it needs a GPU.*PTX.*Numba.*\n\Z")
        alone = harness.run([sys.executable, "-c", self.ASKS, "starts"],
                            harness.sanitizer_first(harness.library_path()))
        self.assertEqual(alone.stderr, done.stderr)

    def test_one_that_has_ptx_all_the_same_is_like_any_other(self):
        done = self.python_run("starts", "loads")
        self.assertRegex(done.stderr, r"\Aflopinj: recorded no kernel launch.*\n\Z")

    def test_mode_off(self):
        done = self.flopinj_run("--simulate", "--mode", "off", "--", LAUNCH, "same_grid")
        self.assertEqual(self.ours(done.stderr), ["flopinj: mode off: nothing is recorded"])

    def test_a_refusal_is_said_once(self):
        done = self.flopinj_run("--simulate", "--", LAUNCH, "same_grid",
                                SIMGPU_FAULT="second_subscriber")
        self.assertEqual(len(self.ours(done.stderr)), 1, done.stderr)
        self.assertIn("runs unprofiled", done.stderr)


class RefusedBeforeTheStart(RunCase):
    def refused(self, *arguments, words):
        done = self.flopinj_run("--simulate", *arguments, "--", "touch", "started", expect=2)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(words, done.stderr)
        self.assertFalse((self.folder / "started").exists())

    def test_an_existing_file(self):
        (self.folder / "old.pb").write_bytes(b"precious")
        self.refused("-o", "old.pb",
                     words="old.pb exists; choose another name, or overwrite it with --force")
        self.assertEqual((self.folder / "old.pb").read_bytes(), b"precious")
        self.flopinj_run("--simulate", "--force", "-o", "old.pb", "--", LAUNCH, "same_grid")
        self.assertEqual(self.launches("old.pb"), LAUNCHES)

    def test_a_missing_folder(self):
        self.refused("-o", "none/%p.pb", words="create it first")

    def test_a_folder_and_what_is_none(self):
        (self.folder / "file").write_text("")
        self.refused("-o", ".", words="is a directory")
        self.refused("-o", "file/%p.pb", words="choose another")

    def test_a_folder_without_permission(self):
        if os.geteuid() == 0:
            self.skipTest("root may write everywhere")
        (self.folder / "shut").mkdir(mode=0o500)
        self.refused("-o", "shut/%p.pb", words="Permission denied")

    def test_an_unknown_chip(self):
        self.refused("--sim-chip", "Z80", words="GH100")


class NamesApart(RunCase):
    def two_at_once(self, *options, first="", second=""):
        script = f"{first} {LAUNCH} same_grid & {second} {LAUNCH} same_grid & wait"
        done = self.flopinj_run("--simulate", *options, "--", "sh", "-c", script)
        for name in self.traces():
            self.assertEqual(self.launches(name), LAUNCHES, name)
        return done

    def test_two_processes_with_one_name_keep_both_traces(self):
        for options in ((), ("--force",)):
            with self.subTest(options=options):
                for name in self.traces():
                    (self.folder / name).unlink()
                done = self.two_at_once("-o", "same.pb", *options)
                names = self.traces()
                self.assertEqual(len(names), 2, names)
                self.assertEqual(names[0], "same.pb")
                self.assertRegex(names[1], r"^same\.pid\d+\.pb$")
                self.assertIn(f"this process records to {self.folder}/{names[1]}", done.stderr)

    def test_one_process_after_another_with_force(self):
        (self.folder / "same.pb").write_bytes(b"of an earlier run")
        script = f"{LAUNCH} same_grid; {LAUNCH} same_grid"
        self.flopinj_run("--simulate", "--force", "-o", "same.pb", "--", "sh", "-c", script)
        names = self.traces()
        self.assertEqual(len(names), 2, names)
        for name in names:
            self.assertEqual(self.launches(name), LAUNCHES, name)

    def test_ranks_have_names_of_their_own(self):
        self.two_at_once("-o", "job.pb", first="RANK=0 WORLD_SIZE=2", second="RANK=1 WORLD_SIZE=2")
        self.assertEqual(self.traces(), ["job.rank0.pb", "job.rank1.pb"])

    def test_the_only_rank_has_the_name_as_given(self):
        self.flopinj_run("--simulate", "-o", "one.pb", "--", LAUNCH, "same_grid",
                         RANK="0", WORLD_SIZE="1")
        self.assertEqual(self.traces(), ["one.pb"])

    def test_a_name_from_the_environment_is_kept(self):
        self.flopinj_run("--simulate", "--", LAUNCH, "same_grid", FLOPINJ_OUTPUT="mine.pb")
        self.assertEqual(self.traces(), ["mine.pb"])


class TheProgramIsAsWithoutUs(RunCase):
    def start(self, script, **how):
        return subprocess.Popen([*RUN, "sh", "-c", script], text=True, cwd=self.folder,
                                env=harness.clean_environment(), stdin=subprocess.DEVNULL, **how)

    def test_process_id_group_and_parent(self):
        process = self.start("echo $$ $PPID; ps -o pgid= -p $$", stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, start_new_session=True)
        out, _ = process.communicate(timeout=30)
        self.assertEqual(out.split(), [str(process.pid), str(os.getpid()), str(process.pid)])

    def test_it_has_no_child_that_it_did_not_make(self):
        process = self.start("wait; ps -o pid= --ppid $$ | wc -l", stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL)
        out, _ = process.communicate(timeout=30)
        self.assertEqual(out.strip(), "2")  # ps and wc

    def test_nor_one_that_it_adopts(self):
        """A program that is given orphans, as process 1 of a container is, and waits for all of
        its children."""
        program = [*RUN, sys.executable, "-c", "import os; os.waitpid(-1, 0)"]
        adopter = [sys.executable, "-c", "import ctypes, os, sys;"
                   f"ctypes.CDLL(None).prctl({PR_SET_CHILD_SUBREAPER}, 1, 0, 0, 0);"
                   "os.execv(sys.argv[1], sys.argv[1:])"]
        ways = {"subreaper": adopter}
        if may_unshare():
            ways["process 1"] = ["unshare", "--pid", "--fork"]
        for name, way in ways.items():
            with self.subTest(name):
                done = harness.run([*way, *program], harness.clean_environment(), timeout=30,
                                   cwd=self.folder)
                self.assertEqual(done.returncode, 1)
                self.assertIn("ChildProcessError", done.stderr)

    def test_its_watcher_ends_also_where_nobody_waits_for_it(self):
        """As where process 1 of a container waits for no orphan: a zombie is left, and no process
        that runs."""
        adopter = (
            "import ctypes, os, subprocess, sys, time\n"
            f"ctypes.CDLL(None).prctl({PR_SET_CHILD_SUBREAPER}, 1, 0, 0, 0)\n"
            "subprocess.run(['sh', '-c', '\"$@\"; true', 'sh', *sys.argv[1:]], check=True)\n"
            "for _ in range(600):\n"
            "    list = ['ps', '-o', 'stat=,comm=', '--ppid', str(os.getpid())]\n"
            "    out = subprocess.run(list, capture_output=True, text=True).stdout.splitlines()\n"
            "    left = [line.split() for line in out if line.split()[1] != 'ps']\n"
            "    if left and all(stat.startswith('Z') for stat, *_ in left): break\n"
            "    time.sleep(0.05)\n"
            "print(left)")
        done = harness.run([sys.executable, "-c", adopter, *RUN, LAUNCH, "same_grid"],
                           harness.clean_environment(), timeout=60, cwd=self.folder)
        self.assertRegex(done.stdout, r"^\[\['Z[+sN]*', 'flopinj'(, '<defunct>')?\]\]\n$",
                         done.stderr)

    def killed(self, how, process_group=False):
        steps = f"exec {TRAINER} --model mlp --steps 100000"
        process = self.start(steps, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             start_new_session=True)
        trace = self.folder / "t.pb"
        self.assertTrue(wait_for(lambda: has_launches(trace)))
        (os.killpg if process_group else os.kill)(process.pid, how)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, -how)
        lines = self.ours(err)
        self.assertEqual(len(lines), 1, err)
        self.assertIn("ended without closing the trace (by a signal, say): launches after the last "
                      f"packet of the trace are not in it. Next: flopinj report {trace}", lines[0])
        self.assertGreater(harness.reduce(trace, check=None)["ledger"][-1]["launches"], 0)

    def test_a_disk_that_is_full(self):
        """Wherever in a write it is: the reason comes last, and nothing else is claimed."""
        trace = self.folder / "t.pb"
        command = [TRAINER, "--model", "mlp", "--steps", "100"]
        plain = harness.run(command, harness.library_path())
        for room in range(12_000, 12_600, 97):
            with self.subTest(room=room):
                trace.unlink(missing_ok=True)
                done = harness.run(
                    [*RUN, *command],
                    harness.sanitizer_first(harness.clean_environment() | {
                        "LD_PRELOAD": str(harness.CLIENTS / "full_disk.so"),
                        "FULL_DISK_BYTES": str(room), "FLOPINJ_FLUSH_MS": "20",
                        "FLOPINJ_PLAN_WAIT_MS": "60000", "FLOPINJ_BUDGET": "none"}),
                    cwd=self.folder)
                self.assertEqual((done.returncode, done.stdout),
                                 (plain.returncode, plain.stdout), done.stderr)
                lines = self.ours(done.stderr)
                self.assertEqual(len(lines), 2, done.stderr)
                self.assertIn("No space left on device; recording stops here", lines[0])
                self.assertIn("launches after the last packet of the trace are not in it", lines[1])
                self.assertLessEqual(trace.stat().st_size, room)
                report = harness.reduce(trace, check=3)
                self.assertEqual(report["processes"][0]["end"], "failure")
                self.assertIn("trace.write", harness.codes(report))
                self.assertEqual(report["ledger_disagreements"], [])
                self.assertIn("writing the trace failed: No space left on device",
                              " ".join(n["notice"] for n in report["notices"]))
                for total in ("flop", "gpu_time_ns", "energy_j"):
                    self.assertIsNone(report["figures"][total])
                text = harness.run([harness.FLOPREDUCE, trace], harness.clean_environment()).stdout
                self.assertRegex(text, r"Executed +>= ")
                self.assertRegex(text, r"in >= [0-9,]+ launch")

    def test_killed(self):
        self.killed(signal.SIGKILL)

    def test_terminated_with_its_group(self):
        self.killed(signal.SIGTERM, process_group=True)

    def test_interrupted_at_a_terminal(self):
        """Ctrl-C reaches the program and not the watcher, which then says where the trace is."""
        leader, terminal = pty.openpty()
        process = subprocess.Popen(
            [*RUN, str(TRAINER), "--model", "mlp", "--steps", "100000"], cwd=self.folder,
            env=harness.clean_environment(), stdin=terminal, stdout=subprocess.DEVNULL,
            stderr=terminal, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.addCleanup(process.kill)
        os.close(terminal)
        trace = self.folder / "t.pb"
        self.assertTrue(wait_for(lambda: trace.exists() and trace.stat().st_size > 0))
        os.write(leader, b"\x03")
        self.assertEqual(process.wait(30), -signal.SIGINT)
        text = b""
        while b"Next: flopinj report" not in text:
            text += os.read(leader, 4096)
        os.close(leader)
        self.assertIn(b"ended without closing the trace", text)

    def test_processes_that_go_on_are_named(self):
        process = self.start(f"{TRAINER} --model mlp --steps 100000 >other 2>&1 & echo $!;"
                             "until [ -s t.pb ]; do sleep 0.1; done",
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with process:
            other = int(process.stdout.readline())
            self.addCleanup(os.kill, other, signal.SIGKILL)
            err = process.stderr.read()
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.ours(err), ["flopinj: a process of this run goes on, and records to "
                                          f"{self.folder}/t.pb"])


class Summary(RunCase):
    """flopinj run --summary."""

    STEPS = 4

    def condensed(self, *arguments, program=None, expect=0, **variables):
        program = program or [TRAINER, "--model", "mlp", "--steps", self.STEPS]
        return self.flopinj_run("--summary", "--simulate", *arguments, "--", *program,
                                expect=expect, **variables)

    def files(self):
        return sorted(path.name for path in self.folder.iterdir())

    def test_a_summary_is_in_the_place_of_the_trace(self):
        program = [TRAINER, "--model", "mlp", "--steps", self.STEPS, "--print-shapes"]
        done = self.condensed("-o", "t.pb", program=program)
        self.assertEqual(self.files(), ["t.sum"])
        self.assertEqual(self.ours(done.stderr), ["flopinj: condensed the trace. Next: "
                                                  f"flopinj report {self.folder}/t.sum"])
        flop = sum(value for *_, value in step_launches(json.loads(done.stdout))) * self.STEPS
        report = harness.reduce(self.folder / "t.sum")
        self.assertEqual(int(report["figures"]["flop_exact"]), flop)
        self.assertEqual(report["step_summary"][0]["count"], self.STEPS)

    def test_each_process_has_its_own(self):
        both = f"for r in 0 1; do RANK=$r WORLD_SIZE=2 {TRAINER} --steps 2 & done; wait"
        done = self.condensed("-o", "r%r.pb", program=["sh", "-c", both])
        self.assertEqual(self.files(), ["r0.sum", "r1.sum"])
        self.assertIn("condensed 2 traces. Next: flopinj report", done.stderr)
        report = harness.reduce(self.folder / "r0.sum", self.folder / "r1.sum")
        self.assertEqual(sorted(p["rank"] for p in report["ranks"]), [0, 1])

    def test_the_exit_code_and_a_quiet_run(self):
        done = self.condensed("-q", "-o", "t.pb", program=[LAUNCH, "same_grid", "7"], expect=7)
        self.assertEqual((done.stderr, self.files()), ("", ["t.sum"]))
        self.assertEqual((self.folder / "t.sum").stat().st_mode & 0o777, 0o600)  # as a trace
        done = self.condensed(program=["/no/such/program"], expect=127)
        self.assertEqual(len(self.ours(done.stderr)), 1, done.stderr)

    def test_a_trace_is_kept_where_no_summary_can_be_made(self):
        (self.folder / "t.sum").write_bytes(b"another")
        done = self.condensed("-o", "t.pb")
        self.assertEqual(self.files(), ["t.pb", "t.sum"])
        self.assertEqual((self.folder / "t.sum").read_bytes(), b"another")
        self.assertIn(f"no summary could be made of {self.folder}/t.pb, which is kept. Next: "
                      f"flopinj report {self.folder}/t.pb", done.stderr)
        self.assertGreater(self.launches("t.pb"), 0)
        self.condensed("--force", "-o", "t.pb")
        self.assertEqual(self.files(), ["t.sum"])
        self.assertGreater(self.launches("t.sum"), 0)

    def test_signals_reach_the_program_and_end_both(self):
        for how in (signal.SIGTERM, signal.SIGUSR1):
            with self.subTest(how):
                process = subprocess.Popen(
                    [FLOPINJ, "run", "--summary", "--simulate", "--force", "-o", "t.pb", "--",
                     TRAINER, "--model", "mlp", "--steps", "100000"],
                    cwd=self.folder, env=harness.clean_environment(), stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE, text=True)
                trace = self.folder / "t.pb"
                self.assertTrue(wait_for(lambda: has_launches(trace)))
                process.send_signal(how)
                _, err = process.communicate(timeout=60)
                self.assertEqual(process.returncode, -how, err)
                self.assertEqual(self.files(), ["t.sum"])
                report = harness.reduce(self.folder / "t.sum", check=None)
                self.assertGreater(report["ledger"][-1]["launches"], 0)

    def test_outputs_that_are_no_files(self):
        for output in ("-", "unix:/tmp/no"):
            done = self.condensed("-o", output, program=["true"], expect=2)
            self.assertIn("--summary needs traces in files", done.stderr)


class Page(RunCase):
    """flopinj run --report."""

    STEPS = 3

    def paged(self, *arguments, program=None, expect=0):
        program = program or [TRAINER, "--model", "mlp", "--steps", self.STEPS, "--print-shapes"]
        return self.flopinj_run("--simulate", "--report", "page.html", *arguments, "--", *program,
                                expect=expect)

    def check_page(self):
        page = self.folder / "page.html"
        self.assertRegex(page.read_text(), r"(?s)<!DOCTYPE html>.*trainer.*</html>")

    def test_it_is_written_when_the_program_has_ended(self):
        done = self.paged("-o", "t.pb")
        self.check_page()
        self.assertEqual((self.folder / "page.html").stat().st_mode & 0o777, 0o600)  # as a trace
        self.assertEqual(self.traces(), ["t.pb"])
        self.assertIn("flopinj: the report as a page: page.html", self.ours(done.stderr))
        flop = sum(value for *_, value in step_launches(json.loads(done.stdout))) * self.STEPS
        self.assertIn(f"{flop:,}", (self.folder / "page.html").read_text())

    def test_the_exit_code_is_the_programs(self):
        self.paged(program=["sh", "-c", f"{TRAINER} --steps 1; exit 7"], expect=7)
        self.check_page()

    def test_all_processes_are_in_it_and_summaries_too(self):
        both = f"for r in 0 1; do RANK=$r WORLD_SIZE=2 {TRAINER} --steps 1 & done; wait"
        done = self.paged("--summary", "-o", "r%r.pb", program=["sh", "-c", both])
        self.check_page()
        self.assertEqual(sorted(path.name for path in self.folder.glob("r*")), ["r0.sum", "r1.sum"])
        self.assertIn("the report as a page", done.stderr)

    def test_a_page_that_is_there_is_kept(self):
        (self.folder / "page.html").write_text("mine")
        done = self.paged(program=["touch", "started"], expect=2)
        self.assertIn("page.html exists; choose another name, or overwrite it with --force",
                      done.stderr)
        self.assertFalse((self.folder / "started").exists())
        self.assertEqual((self.folder / "page.html").read_text(), "mine")
        self.paged("--force")
        self.check_page()

    def test_without_a_recording_there_is_none(self):
        done = self.paged(program=["true"])
        self.assertFalse((self.folder / "page.html").exists())
        self.assertIn("no page was written: nothing was recorded", done.stderr)


if __name__ == "__main__":
    harness.main()
