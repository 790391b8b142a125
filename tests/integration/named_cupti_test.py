"""A program that brings a CUPTI without the range profiler, as PyTorch up to 2.6 does, and another
CUPTI that the user names."""

import shutil
import sys
import unittest

import harness
from harness import CLIENTS, FLOPINJ, SIMGPU, TRAINER, injected_environment, run

LAUNCH = (CLIENTS / "launch_client", "same_grid")
LAUNCHES = 60
OLD = {"12.1": 18, "12.4": 22}  # and CUPTI's own number for each
TO_COUNT = ("pip install --target DIR 'nvidia-cuda-cupti-cu12>=12.6.80', and then "
            "flopinj run --cupti DIR")


class BringsOldCupti(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.brings = {
            "LD_LIBRARY_PATH": f"{SIMGPU / 'norange'}:{SIMGPU}",
            "LD_PRELOAD": ":".join(filter(None, [harness.SANITIZER_PRELOAD,
                                                 str(CLIENTS / "links_cupti.so")])),
        }

    def profiled(self, command=LAUNCH, **settings):
        env = harness.clean_environment() | {
            "CUDA_INJECTION64_PATH": str(harness.LIBRARY),
            "NVTX_INJECTION64_PATH": str(harness.LIBRARY),
            "FLOPINJ_OUTPUT": str(self.trace), "FLOPINJ_FORCE": "1"} | self.brings | settings
        done = run(command, env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr.splitlines()

    def flopinj_run(self, *arguments, expect=0, **variables):
        env = harness.clean_environment() | self.brings | variables
        env["FLOPINJ_PLAN_WAIT_MS"] = "60000"
        done = run([FLOPINJ, "run", "-o", self.trace, "--force", *arguments, "--", *LAUNCH], env)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done.stderr.splitlines()

    def pip_target(self):
        """A folder as `pip install --target` fills it."""
        folder = self.folder / "newer"
        file = folder / "nvidia/cuda_cupti/lib/libcupti.so.12"
        file.parent.mkdir(parents=True)
        shutil.copy(SIMGPU / "12/libcupti.so.12", file)
        return folder, file

    def version(self):
        return harness.reduce(self.trace)["processes"][0]["cupti_version"]

    def test_kernels_are_timed_and_one_line_has_the_commands(self):
        for version, number in OLD.items():
            with self.subTest(version):
                lines = self.profiled(SIMGPU_CUPTI_VERSION=version)
                self.assertEqual(len(lines), 1, lines)
                self.assertIn("norange/libcupti.so.12 has no cuptiRangeProfiler", lines[0])
                self.assertTrue(lines[0].endswith(TO_COUNT), lines)
                report = harness.reduce(self.trace)
                self.assertEqual(self.version(), number)
                ledger = report["ledger"][-1]
                self.assertEqual((ledger["launches"], ledger["unmeasured"]), (LAUNCHES, LAUNCHES))
                self.assertEqual([row["launches_unplaced"] for row in report["device_time"]], [0])
                for kernel in report["kernels"]:
                    self.assertIsNone(kernel["flop"])
                    self.assertGreater(kernel["gpu_time_ns"], 0)
                self.assertEqual(harness.codes(report), ["cupti.no_range_profiler"])

    def test_copies_are_timed_as_by_a_newer_one(self):
        """On the simulated GPU the same program copies the same bytes in the same time."""
        command = (TRAINER, "--model", "mlp", "--steps", 3)
        seen = []
        for version in OLD:
            self.profiled(command, SIMGPU_CUPTI_VERSION=version)
            seen.append(self.copies())
        done = run(command, injected_environment(self.trace, FLOPINJ_FORCE="1"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(sum(row["bytes"] for row in self.copies()), 0)
        self.assertEqual(seen, [self.copies()] * len(OLD))

    def copies(self):
        return [{key: row[key] for key in ("direction", "copies", "bytes", "ns")}
                for row in harness.reduce(self.trace)["copies"]]

    @unittest.skipIf(harness.SANITIZER_PRELOAD, "a sanitizer's library has to come first")
    def test_a_folder_of_pip_takes_its_place(self):
        folder, file = self.pip_target()
        for named in (folder, file):
            with self.subTest(named):
                lines = self.flopinj_run("--cupti", str(named))
                self.assertEqual(lines[0], f"flopinj: {file} is preloaded, in place of a CUPTI of "
                                           "the program's own")
                self.assert_all_counted(harness.reduce(self.trace), LAUNCHES)
                self.assertEqual(self.version(), 28)
        lines = self.flopinj_run("--quiet", FLOPINJ_CUPTI=str(folder))  # inherited
        self.assertEqual(lines, [])
        self.assertEqual(self.version(), 28)

    def test_what_is_loaded_stays_and_a_line_says_so(self):
        folder, file = self.pip_target()
        for named in (folder, file):
            lines = self.profiled(FLOPINJ_CUPTI=str(named), SIMGPU_CUPTI_VERSION="12.4")
            self.assertEqual(self.version(), 22)
            self.assertIn(f"FLOPINJ_CUPTI={named} is not used, since the program has loaded "
                          f"{SIMGPU / 'norange/libcupti.so.12'}", lines[0])
            self.assertEqual(set(harness.codes(harness.reduce(self.trace))),
                             {"cupti.passed_over", "cupti.no_range_profiler"})
        lines = self.profiled(FLOPINJ_CUPTI=str(self.folder / "none"))
        self.assertIn(f"{self.folder / 'none'} is neither a file nor a folder", lines[0])

    def test_what_cannot_be_preloaded_starts_nothing(self):
        empty = self.folder / "empty"
        empty.mkdir()
        both = self.folder / "both"
        both.mkdir()
        for name in ("libcupti.so.12", "libcupti.so.13"):
            (both / name).write_text(name)
        spaced = self.folder / "a b"
        spaced.mkdir()
        shutil.copy(SIMGPU / "12/libcupti.so.12", spaced)
        for named, why in ((self.folder / "none", "is neither a file nor a folder"),
                           (empty, "has no libcupti.so.12 or libcupti.so.13"),
                           (both, "name one of the two"), (spaced, "lists of paths are split")):
            with self.subTest(named):
                lines = self.flopinj_run("--cupti", str(named), expect=2)
                self.assertEqual(len(lines), 1, lines)
                self.assertIn(why, lines[0])
                self.assertFalse(self.trace.exists())


class Doctor(harness.TestCase):
    """With packages as pip lays them out; `torch` cannot be imported, and need not be."""

    def doctor_with(self, cupti):
        site = self.folder / "site"
        (site / "torch").mkdir(parents=True)
        (site / "torch/__init__.py").write_text("raise RuntimeError('imported')")
        packages = {"torch": ("2.4.0", "torch/__init__.py")}
        if cupti is not None:
            packages["nvidia-cuda-cupti-cu12"] = ("12.1.105",
                                                  "nvidia/cuda_cupti/lib/libcupti.so.12")
            file = site / "nvidia/cuda_cupti/lib/libcupti.so.12"
            file.parent.mkdir(parents=True)
            shutil.copy(cupti, file)
        for name, (version, file) in packages.items():
            about = site / f"{name.replace('-', '_')}-{version}.dist-info"
            about.mkdir()
            (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\n"
                                            f"Version: {version}\n")
            (about / "RECORD").write_text(f"{file},,\n")
        python = self.folder / "bin/python3"  # that has no other packages
        python.parent.mkdir()
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
        python.chmod(0o755)
        env = harness.library_path()
        env |= {"PYTHONPATH": str(site), "PATH": f"{python.parent}:/usr/bin:/bin"}
        done = run([FLOPINJ, "doctor"], harness.sanitizer_first(env))
        self.assertEqual(done.returncode, 0, done.stdout)  # it is no fault of the machine
        lines = [line.replace(str(site.resolve()), "SITE") for line in done.stdout.splitlines()]
        return [line for i, line in enumerate(lines)
                if "PyTorch" in line or (i > 0 and "PyTorch" in lines[i - 1]
                                         and line.startswith("   "))]

    def test_old(self):
        self.assertEqual(self.doctor_with(SIMGPU / "norange/libcupti.so.12"), [
            "note  PyTorch 2.4.0 of python3 brings SITE/nvidia/cuda_cupti/lib/libcupti.so.12, "
            "which has no range profiler",
            f"      Kernels are timed, and no FLOP are counted. To count them: {TO_COUNT}"])

    def test_new(self):
        self.assertEqual(self.doctor_with(SIMGPU / "12/libcupti.so.12"), [
            "note  PyTorch 2.4.0 of python3 brings SITE/nvidia/cuda_cupti/lib/libcupti.so.12"])

    def test_none(self):
        self.assertEqual(self.doctor_with(None), ["note  PyTorch 2.4.0 of python3 brings no CUPTI"])


if __name__ == "__main__":
    harness.main()
