"""What libflopinj.so brings into a process: its entry points and nothing else, and it needs only
glibc, of 2.28 or later."""

import re
import subprocess
import unittest

import harness

ENTRY_POINTS = {"InitializeInjection", "InitializeInjectionNvtx", "InitializeInjectionNvtx2",
                "flopinj_listen", "flopinj_operators", "flopinj_request"}
GLIBC = {
    "libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "libdl.so.2", "libpthread.so.0", "librt.so.1"
}
PROGRAMS = (harness.FLOPINJ, harness.FLOPREDUCE, harness.TRAINER,
            harness.BUILD / "lib/flopinj/known_kernels/known_kernels")


def tool(*command):
    done = subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True)
    return done.stdout


def exported(library):
    rows = (line.split() for line in tool("nm", "-D", "--defined-only", library).splitlines())
    return {row[-1].split("@")[0] for row in rows if row[-2] != "A"}


def needed(binary):
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", tool("readelf", "-d", binary)))


class Injected(unittest.TestCase):
    def test_exports_only_its_entry_points(self):
        self.assertEqual(exported(harness.LIBRARY), ENTRY_POINTS)

    def test_needs_only_glibc(self):
        self.assertLessEqual(needed(harness.LIBRARY), GLIBC)

    def test_contains_no_protobuf_runtime(self):
        symbols = tool("nm", "-C", harness.LIBRARY)
        self.assertNotIn("google::protobuf", symbols)

    def test_has_no_lock_of_objects_that_functions_make(self):
        """A forked child would wait for another thread of its parent to have made the object. All
        locks are in injector/process/process_state.h."""
        symbols = tool("nm", "-C", harness.LIBRARY)
        self.assertEqual(re.findall("guard variable for (?:flopinj|spdlog|fmt).*", symbols), [])

    def test_is_never_unloaded(self):
        self.assertIn("NODELETE", tool("readelf", "-d", harness.LIBRARY))

    def test_has_no_static_tls_that_a_late_load_could_not_get(self):
        """glibc keeps a small reserve of static TLS for libraries loaded later; we use a few bytes
        of it."""
        sizes = [int(m.split()[4], 16) for m in tool("readelf", "-lW", harness.LIBRARY).splitlines()
                 if m.strip().startswith("TLS")]
        self.assertLess(sum(sizes), 256)


class Shipped(unittest.TestCase):
    def test_an_old_glibc_will_do(self):
        libraries = [harness.LIBRARY, harness.BUILD / "lib/flopinj/libflopinj_nvtx.so",
                     *harness.SIMGPU.glob("*.so.*")]
        for binary in (*PROGRAMS, *libraries):
            versions = {tuple(map(int, version.split("."))) for version in
                        re.findall(r"\bGLIBC_([0-9.]+)", tool("objdump", "-T", binary))}
            self.assertLessEqual(max(versions), (2, 28), binary)


class Tools(unittest.TestCase):
    def test_tools_need_only_glibc(self):
        for binary in PROGRAMS:
            self.assertLessEqual(needed(binary), GLIBC, binary)


class Simulated(unittest.TestCase):
    def test_stand_ins_export_only_the_names_of_the_originals(self):
        for name, prefix in (("libcuda.so.1", ("cu", "simgpu_")),
                             ("libcudart.so.12", ("cuda", "__cuda")),
                             ("libcudart.so.13", ("cuda", "__cuda")),
                             ("libcupti.so.13", ("cupti",))):
            if not (harness.SIMGPU / name).exists():
                continue  # those of the CUDA runtime need CUDA 13's headers
            strangers = {s for s in exported(harness.SIMGPU / name) if not s.startswith(prefix)}
            self.assertEqual(strangers, set(), name)


if __name__ == "__main__":
    if harness.SANITIZER_PRELOAD:
        print("skipped: a sanitizer's runtime is needed and exported there")
        raise SystemExit(77)
    unittest.main(verbosity=2)
