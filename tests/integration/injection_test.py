"""How the library gets into a program, where its trace goes, and that the program never pays for
our failure."""

import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

import harness
from harness import CLIENTS, FLOPINJ, TRAINER, injected_environment, run

LAUNCH = CLIENTS / "launch_client"


class WaysIn(harness.TestCase):
    def launches_of(self, **how):
        done = run([LAUNCH, "same_grid"], injected_environment(self.trace, **how))
        self.assertEqual(done.returncode, 0, done.stderr)
        report = harness.reduce(self.trace)
        self.assert_all_counted(report, 60)
        return report

    def test_cuda_variable_alone(self):
        report = self.launches_of(by=("CUDA_INJECTION64_PATH",))
        self.assertEqual(harness.precisions(report), {"fp32": 20 * 2 * (1 + 17 + 1000)})

    def test_both_variables(self):
        self.launches_of()

    def test_preload_alone(self):
        """The preloaded library sets both variables for the program it is in."""
        done = run([CLIENTS / "nvtx_client"], injected_environment(self.trace, by=("LD_PRELOAD",)))
        self.assertEqual(done.returncode, 0, done.stderr)
        paths = [r["range"] for r in harness.reduce(self.trace)["ranges"]]
        self.assertIn("outer", paths)

    def test_preload_together_with_variables_counts_once(self):
        self.launches_of(by=("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "LD_PRELOAD"))

    def test_nvtx_variable_alone_records_nothing_and_disturbs_nothing(self):
        done = run([CLIENTS / "nvtx_client"],
                   injected_environment(self.trace, by=("NVTX_INJECTION64_PATH",)))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertFalse(self.trace.exists())

    def test_flopinj_run(self):
        env = harness.clean_environment()
        done = run([FLOPINJ, "run", "--simulate", "-o", self.trace, "--", LAUNCH, "same_grid", "7"],
                   env)
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertEqual(harness.reduce(self.trace)["ledger"][-1]["launches"], 60)

    def test_a_program_without_cuda(self):
        done = run(["/bin/echo", "hello"], injected_environment(self.trace, by=("LD_PRELOAD",)))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "hello\n", ""))
        self.assertFalse(self.trace.exists())

    def test_mode_off(self):
        done = run([LAUNCH, "same_grid"], injected_environment(self.trace, FLOPINJ_MODE="off"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertFalse(self.trace.exists())


class AnotherCupti(harness.TestCase):
    """Programs that load a CUPTI of their own, as PyTorch does, on the simulated driver: only the
    simulated CUPTI works with that one."""
    STRANGE = CLIENTS / "strange/libcupti.so.13"
    NVIDIAS = sorted(Path(sys.prefix).glob("lib/python*/site-packages/nvidia/**/libcupti.so.1*"))

    def others(self):
        if harness.SANITIZER_PRELOAD:  # NVIDIA's is not ours to run under sanitizers
            return [self.STRANGE]
        self.assertTrue(self.NVIDIAS, "the tests' requirements bring NVIDIA's")
        return [self.STRANGE, *self.NVIDIAS]

    def test_the_simulated_one_is_used_whatever_is_loaded(self):
        for other in self.others():
            for chosen in ({}, {"FLOPINJ_CUPTI": harness.SIMGPU / "libcupti.so.13"}):
                with self.subTest(other=other, chosen=bool(chosen)):
                    done = run([LAUNCH, "same_grid"], injected_environment(
                        self.trace, LD_PRELOAD=other, FLOPINJ_FORCE=1, **chosen))
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    self.assert_all_counted(harness.reduce(self.trace), 60)

    def test_the_simulated_one_is_found_beside_its_driver(self):
        """Where the loader's path has another one first."""
        for other in self.others():
            if other.name != "libcupti.so.13":
                continue
            with self.subTest(other=other):
                done = run([LAUNCH, "same_grid"], injected_environment(
                    self.trace, LD_LIBRARY_PATH=f"{other.parent}:{harness.SIMGPU}",
                    FLOPINJ_FORCE=1))
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assert_all_counted(harness.reduce(self.trace), 60)

    def test_another_one_that_was_asked_for_is_refused(self):
        for other in self.others():
            with self.subTest(other=other):
                done = run([LAUNCH, "same_grid", "5"], injected_environment(
                    self.trace, FLOPINJ_CUPTI=other))
                self.assertEqual(done.returncode, 5)
                self.assertRegex(done.stderr, r"\Aflopinj: .*is not the CUPTI of the simulated GPU"
                                              r".*\n\Z")
                self.assertFalse(self.trace.exists())


class WaysOut(harness.TestCase):
    def test_name_pattern(self):
        done = run([LAUNCH, "same_grid"],
                   injected_environment(self.folder / "t-%p-%h-%r-%q{COLOUR}.pb", COLOUR="blue",
                                        RANK="3"))
        self.assertEqual(done.returncode, 0, done.stderr)
        found = glob.glob(str(self.folder / f"t-*-{socket.gethostname()}-3-blue.pb"))
        self.assertEqual(len(found), 1, os.listdir(self.folder))
        report = harness.reduce(found[0])
        self.assertEqual(report["processes"][0]["rank"], 3)

    def test_standard_output(self):
        env = injected_environment("-")
        with open(self.trace, "wb") as out:
            done = subprocess.run([str(LAUNCH), "same_grid"], env=env, stdout=out,
                                  stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_all_counted(harness.reduce(self.trace), 60)

    def test_fifo(self):
        os.mkfifo(self.trace)
        received = []
        reader = threading.Thread(target=lambda: received.append(self.trace.read_bytes()))
        reader.start()
        self.run_profiled([LAUNCH, "same_grid"])
        reader.join(60)
        copy = self.folder / "copy.pb"
        copy.write_bytes(received[0])
        self.assert_all_counted(harness.reduce(copy), 60)

    def test_unix_socket(self):
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(self.folder / "socket"))
        server.listen(1)
        copy = self.folder / "copy.pb"

        def serve():
            connection, _ = server.accept()
            with connection, open(copy, "wb") as out:
                while data := connection.recv(65536):
                    out.write(data)

        thread = threading.Thread(target=serve)
        thread.start()
        self.run_profiled([LAUNCH, "same_grid"], output=f"unix:{self.folder}/socket")
        thread.join(60)
        server.close()
        self.assert_all_counted(harness.reduce(copy), 60)

    def test_two_processes_do_not_share_a_file(self):
        self.run_profiled([LAUNCH, "same_grid"])
        before = self.trace.read_bytes()
        done = self.run_profiled([LAUNCH, "same_grid"])
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertIn("is there already and is kept", done.stderr)
        self.assertEqual(self.trace.read_bytes(), before)
        (other,) = self.folder.glob("trace.pid*.pb")
        self.assert_all_counted(harness.reduce(other), 60)
        self.run_profiled([LAUNCH, "same_grid"], FLOPINJ_FORCE="1")
        self.assertNotEqual(self.trace.read_bytes(), before)


class TheProgramNeverPays(harness.TestCase):
    """In each case the program ends with its own exit code, one line says why, and what is left
    still works."""

    def one_line(self, done, *words):
        lines = done.stderr.strip().splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        for word in ("flopinj", *words):
            self.assertIn(word, lines[0])

    def profiled(self, expect_trace=True, output=None, **settings):
        done = run([LAUNCH, "same_grid", "5"], injected_environment(output or self.trace,
                                                                    **settings))
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertEqual(self.trace.exists(), expect_trace)
        return done

    def test_output_folder_missing(self):
        self.one_line(self.profiled(False, output=self.folder / "none" / "x.pb"), "none/x.pb")

    def test_output_is_a_folder(self):
        self.one_line(self.profiled(False, output=self.folder), str(self.folder))

    def test_full_disk(self):
        self.one_line(self.profiled(False, output="/dev/full"), "/dev/full")

    def test_nobody_at_the_socket(self):
        self.one_line(self.profiled(False, output="unix:/nonexistent/socket"),
                      "/nonexistent/socket")

    def test_bad_pattern(self):
        self.one_line(self.profiled(False, output=self.folder / "%z.pb"), "%z")

    def test_no_cupti(self):
        """simgpu's driver without its CUPTI, and a machine without any other."""
        only_driver = self.folder / "driver"
        only_driver.mkdir()
        (only_driver / "libcuda.so.1").symlink_to(harness.SIMGPU / "libcuda.so.1")
        done = self.profiled(False, LD_LIBRARY_PATH=only_driver,
                             FLOPINJ_CUPTI="/nonexistent/libcupti.so")
        self.one_line(done, "libcupti")

    def test_a_cupti_that_is_no_file_is_not_waited_for(self):
        os.mkfifo(self.folder / "libcupti.so")
        done = self.profiled(False, FLOPINJ_CUPTI=self.folder / "libcupti.so")
        self.one_line(done, "libcupti.so")

    def test_a_cupti_newer_than_the_driver_is_refused(self):
        """Nothing of it is called: one that cannot start may crash, as 13.2 does."""
        newer = {"SIMGPU_DRIVER_VERSION": "12.8", "SIMGPU_CUPTI_VERSION": "13.2"}
        cupti = harness.SIMGPU / "libcupti.so.13"
        for how in ({"FLOPINJ_CUPTI": cupti}, {"LD_PRELOAD": cupti}):
            done = self.profiled(False, **how, **newer)
            self.one_line(done, "libcupti.so.13", "CUDA 13", "CUDA 12.8")

    def test_only_a_cupti_of_the_drivers_major_is_looked_for(self):
        done = self.profiled(False, SIMGPU_DRIVER_VERSION="12.8")
        self.one_line(done, "libcupti.so.12 found", "CUDA 12.8", "nvidia-cuda-cupti-cu12")

    def test_a_cupti_that_cannot_start_is_asked_nothing_else(self):
        """Of 13.3 and later each call fails then; 12.6 to 13.1 tell their version all the same."""
        for version in ("12.6", "13.0", "13.5"):
            done = self.profiled(False, SIMGPU_CUPTI_VERSION=version, SIMGPU_FAULT="cannot_start")
            self.one_line(done, "cuptiSubscribe failed")

    def test_the_drivers_own_major_is_preferred(self):
        """Both are beside each other, as where packages for CUDA 12 and 13 are installed."""
        (self.folder / "libcupti.so.12").symlink_to(harness.SIMGPU / "libcupti.so.13")
        for driver, twelve in (("12.8", True), ("13.0", False)):
            with self.subTest(driver):
                self.profiled(SIMGPU_DRIVER_VERSION=driver, FLOPINJ_FORCE="1",
                              LD_LIBRARY_PATH=f"{harness.SIMGPU}:{self.folder}")
                report = harness.reduce(self.trace)
                self.assert_all_counted(report, 60)
                version = report["processes"][0]["cupti_version"]  # 28, or 130000
                self.assertEqual(version < 100, twelve)

    def test_every_version_is_used_as_it_is(self):
        for version in ("12.6", "12.8", "12.9", "13.0", "13.2", "13.5"):
            with self.subTest(version):
                self.profiled(SIMGPU_CUPTI_VERSION=version, FLOPINJ_FORCE="1")
                self.assert_all_counted(harness.reduce(self.trace), 60)

    def test_limited_support_is_support(self):
        self.profiled(SIMGPU_CUPTI_VERSION="13.5", SIMGPU_FAULT="limited_support")
        report = harness.reduce(self.trace)
        self.assert_all_counted(report, 60)
        self.assertIn("limited set of metrics", json.dumps(report["diagnostics"]))

    def test_no_gpu(self):
        done = run([TRAINER, "--steps", "1"],
                   injected_environment(self.trace, SIMGPU_FAULT="no_device"))
        self.assertEqual(done.returncode, 1)
        self.assertEqual([l for l in done.stderr.splitlines() if not l.startswith("trainer:")], [])

    def test_no_privileges(self):
        self.one_line(self.profiled(SIMGPU_FAULT="no_privileges"), "CAP_PERFMON",
                      "NVreg_RestrictProfilingToAdminUsers")
        self.counted_but_unmeasured()

    def test_cupti_ends_itself(self):
        """After the 20th of 60 launches; the program runs on, and what was recorded is whole."""
        done = self.profiled(SIMGPU_FAULT="fatal_error=20")
        self.one_line(done, "CUPTI met a fatal error", "launches from here on are not recorded")
        report = harness.reduce(self.trace)
        self.assert_balanced(report)
        self.assertEqual(report["ledger"][-1]["launches"], 20)
        self.assertEqual([row["severity"] for row in report["diagnostics"]
                          if row["code"] == "cupti.fatal"], ["error"])
        notice, = [row["notice"] for row in report["notices"] if "fatal error" in row["notice"]]
        self.assertIn("launches from here on are not recorded", notice)

    def test_shared_by_mps(self):
        self.one_line(self.profiled(SIMGPU_FAULT="mps"), "MPS", "kernels are timed")
        self.counted_but_unmeasured()
        doctor = run([FLOPINJ, "doctor", "--simulate"],
                     harness.clean_environment() | {"SIMGPU_FAULT": "mps"})
        self.assertEqual(doctor.returncode, 1)
        self.assertIn("FAIL  counters: not supported by NVIDIA on a GPU that is shared by MPS\n",
                      doctor.stdout)

    def test_hardware_busy(self):
        self.one_line(self.profiled(SIMGPU_FAULT="hardware_busy"), "Nsight Compute")
        self.counted_but_unmeasured()

    def test_another_profiler_lives_here(self):
        self.one_line(self.profiled(False, SIMGPU_FAULT="second_subscriber"), "another")

    def test_decode_fails(self):
        self.profiled(SIMGPU_FAULT="decode_fails")
        self.counted_but_unmeasured()

    def counted_but_unmeasured(self):
        report = harness.reduce(self.trace)
        self.assert_balanced(report)
        ledger = report["ledger"][-1]
        self.assertEqual((ledger["launches"], ledger["unmeasured"]), (60, 60))
        for kernel in report["kernels"]:
            self.assertIsNone(kernel["flop"], "not measured is never 0")
            self.assertIsNotNone(kernel["gpu_time_ns"])
        self.assertTrue(report["diagnostics"])

    def test_dropped_ranges_are_never_guessed(self):
        self.profiled(SIMGPU_FAULT="drop_ranges=1")
        report = harness.reduce(self.trace)
        self.assert_balanced(report)
        if report["ledger"][-1]["measured"]:
            self.assertEqual(harness.precisions(report), {"fp32": 20 * 2 * (1 + 17 + 1000)})

    def test_lost_activity_records(self):
        self.profiled(SIMGPU_FAULT="drop_activity=3")
        self.assert_all_counted(harness.reduce(self.trace), 60)

    def test_the_program_waits_for_no_host_object(self):
        """They are made on a thread of ours: the program has launched everything before the first
        one is there."""
        self.profiled(SIMGPU_FAULT="slow_host=60000", FLOPINJ_PLAN_WAIT_MS=0)
        report = harness.reduce(self.trace)
        self.assert_balanced(report)
        ledger = report["ledger"][-1]
        self.assertEqual((ledger["launches"], ledger["unmeasured"]), (60, 60))
        self.assertTrue(all(harness.known(k, "gpu_time_ns") for k in report["kernels"]))

    @unittest.skipUnless(os.geteuid() == 0 and not harness.SANITIZER_PRELOAD,
                         "only root can make a program another user's; sanitizers preload")
    def test_in_a_set_user_id_program_it_does_nothing(self):
        """The driver honours the variables there, too."""
        self.folder.chmod(0o777)  # a trace could be written
        program = self.folder / "program"
        shutil.copy(LAUNCH, program)
        shutil.copy(CLIENTS / "client_kernels.ptx", self.folder)
        env = injected_environment(self.folder / "t-%p.pb")
        for mode, traces in ((0o755, 1), (0o4755, 0)):
            program.chmod(mode)
            done = run([program, "same_grid"], env, user="nobody", cwd=self.folder)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            found = list(self.folder.glob("t-*.pb"))
            self.assertEqual(len(found), traces)
            for trace in found:
                trace.unlink()

    def test_unknown_variable_is_named_with_the_nearest(self):
        self.one_line(self.profiled(FLOPINJ_OUTPT="x"), "FLOPINJ_OUTPT", "FLOPINJ_OUTPUT")

    def test_bad_value_is_named(self):
        self.one_line(self.profiled(FLOPINJ_LEVEL="everything"), "FLOPINJ_LEVEL", "launches")

    def test_mode_count_and_timing(self):
        for mode, timed in (("count", False), ("timing", True)):
            self.profiled(FLOPINJ_MODE=mode, FLOPINJ_FORCE=1)
            report = harness.reduce(self.trace)
            self.assertEqual((report["ledger"][-1]["launches"], report["ledger"][-1]["unmeasured"]),
                             (60, 60))
            self.assertEqual(all(harness.known(k, "gpu_time_ns") for k in report["kernels"]), timed)


class SuddenEnds(harness.TestCase):
    def test_killed_at_any_moment(self):
        """What was launched a second before the kill is in the trace, and its ledger balances."""
        for delay in (0.4, 0.9, 1.7):
            with self.subTest(delay=delay):
                env = injected_environment(self.trace, FLOPINJ_FORCE="1")
                child = subprocess.Popen([str(LAUNCH), "endless"], env=env, stdout=subprocess.PIPE,
                                         text=True)
                seen = []  # (time, launches made so far)
                reader = threading.Thread(
                    target=lambda: [seen.append((time.monotonic(), int(line)))
                                    for line in child.stdout])
                reader.start()
                while not seen and child.poll() is None:
                    time.sleep(0.01)
                # A loaded machine wakes the recorder late too.
                killed, late, end = time.monotonic(), 0, time.monotonic() + delay
                while killed < end:
                    time.sleep(0.02)
                    late = max(late, time.monotonic() - killed - 0.02)
                    killed = time.monotonic()
                child.kill()
                child.wait(60)
                reader.join(60)
                child.stdout.close()
                report = harness.reduce(self.trace, check=0)
                self.assert_balanced(report)
                before = max([n for when, n in seen if when < killed - 1.0 - 2 * late], default=0)
                self.assertGreaterEqual(report["ledger"][-1]["launches"], before)
                self.assertLessEqual(report["ledger"][-1]["launches"], seen[-1][1] + 100)
                if report["ledger"][-1]["measured"]:
                    # Launches that the recorder made a record of but did not write are dropped.
                    written = report["ledger"][-1]["launches"] - report["ledger"][-1]["dropped"]
                    self.assertEqual(harness.precisions(report), {"fp32": 2 * 16 * written})

    def test_ended_by_a_signal(self):
        env = injected_environment(self.trace)
        child = subprocess.Popen([str(LAUNCH), "endless"], env=env, stdout=subprocess.PIPE,
                                 text=True)
        child.stdout.readline()
        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.wait(60), -signal.SIGTERM)
        child.stdout.close()

    def test_fork(self):
        """A child drops what it inherited: nothing is written twice, nobody hangs."""
        self.run_profiled([LAUNCH, "forks"])
        self.assert_all_counted(harness.reduce(self.trace), 2)

    def test_reader_of_the_fifo_leaves(self):
        os.mkfifo(self.trace)
        env = injected_environment(self.trace)
        child = subprocess.Popen([str(LAUNCH), "endless"], env=env, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        with open(self.trace, "rb") as reader:
            reader.read(100)
        self.assertIn("flopinj", child.stderr.readline())
        for _ in range(12):  # the program goes on
            self.assertTrue(child.stdout.readline())
        child.kill()
        _, more = child.communicate(timeout=60)
        self.assertEqual(more, "")


if __name__ == "__main__":
    unittest.main(verbosity=2)
