"""`import torch` finds every CUPTI function that it links in the simulated CUPTI, where torch is
installed and built for CUDA."""

import importlib.util
import sys
import unittest

import harness

CUPTI = harness.SIMGPU / "libcupti.so.13"
# The library that is loaded under the name stays: the wheel's own is never opened.
CLIENT = """
import torch
maps = open('/proc/self/maps').read()
found = {line.split()[-1] for line in maps.splitlines() if 'libcupti' in line}
print(torch.version.cuda, sorted(found))
"""


@unittest.skipUnless(importlib.util.find_spec("torch"),
                     "no torch; `tools/dev test-frameworks` brings it")
class ImportTorch(harness.TestCase):
    def test_it_links(self):
        env = harness.clean_environment()
        env["LD_PRELOAD"] = f"{harness.SANITIZER_PRELOAD}:{CUPTI}".lstrip(":")
        env["LD_BIND_NOW"] = "1"
        done = harness.run([sys.executable, "-c", CLIENT], env, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        version, libraries = done.stdout.split(maxsplit=1)
        if version == "None":
            self.skipTest("torch is built without CUDA")
        self.assertIn(str(CUPTI), libraries)


if __name__ == "__main__":
    harness.main()
