"""An archive as `tools/dev package` makes it, here of the build folder: pip makes the Python
package of it without a compiler (FLOPINJ_ARCHIVE), and the Dockerfile an image."""

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
import harness  # noqa: E402

VERSION = re.search(r"project\(flopinj VERSION ([0-9.]+)",
                    (harness.SOURCE / "CMakeLists.txt").read_text()).group(1)
NAME = f"flopinj-{VERSION}-linux-{platform.machine()}"


def run(*words, env=None, **options):
    return subprocess.run([str(word) for word in words], text=True, timeout=300, env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


def archive(folder):
    tree = folder / NAME
    run("cmake", "--install", harness.BUILD, "--strip", "--prefix", tree, check=True)
    with tarfile.open(folder / f"{NAME}.tar.gz", "w:gz", compresslevel=1) as packed:
        packed.add(tree, NAME)
    return folder / f"{NAME}.tar.gz"


@unittest.skipIf(importlib.util.find_spec("scikit_build_core") is None,
                 "not installed: scikit-build-core")
class Package(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="flopinj-archive-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        # As in a fresh clone; pip builds in the folder of the sources.
        self.sources = self.folder / "sources"
        self.sources.mkdir()
        for name in (".gitignore", "CMakeLists.txt", "pyproject.toml", "python", "cmake", "docs"):
            run("cp", "-r", harness.SOURCE / name, self.sources, check=True)
        # On PATH there is Python alone.
        bin_folder = self.folder / "bin"
        bin_folder.mkdir()
        os.symlink(sys.executable, bin_folder / "python3")
        self.env = {**harness.clean_environment(), "PATH": str(bin_folder),
                    "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}

    def wheel(self, archive):
        return run(sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps",
                   "--no-build-isolation", "-w", self.folder / "wheels", self.sources,
                   env={**self.env, "FLOPINJ_ARCHIVE": str(archive)})

    def test_a_package_of_it_needs_no_compiler(self):
        made = self.wheel(archive(self.folder))
        self.assertEqual(made.returncode, 0, made.stdout)
        wheel, = (self.folder / "wheels").glob("*.whl")
        self.assertEqual(wheel.name, f"flopinj-{VERSION}-py3-none-linux_{platform.machine()}.whl")
        # An index shows the description, and has no other page of the sources.
        with zipfile.ZipFile(wheel) as packed:
            said = packed.read(f"flopinj-{VERSION}.dist-info/METADATA").decode()
        self.assertIn("Description-Content-Type: text/markdown", said)
        self.assertIn("flopinj demo", said)
        self.assertNotRegex(said, r"\]\((?!https?:)")
        run(sys.executable, "-m", "venv", "--without-pip", self.folder / "venv", check=True)
        python = self.folder / "venv" / "bin" / "python"
        done = run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps",
                   "--no-index", "--find-links", self.folder / "wheels", "flopinj", env=self.env)
        self.assertEqual(done.returncode, 0, done.stdout)
        done = run(python, harness.SOURCE / "tests" / "python" / "installed.py",
                   python.parent, env=harness.clean_environment(), cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_another_versions_archive_is_refused(self):
        other = self.folder / f"flopinj-0.0.9-linux-{platform.machine()}.tar.gz"
        done = self.wheel(other)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"take a file {NAME}.tar.gz", done.stdout)


@unittest.skipUnless(shutil.which("buildah") and os.getuid() == 0, "not installed: buildah")
class Image(unittest.TestCase):
    """Without a registry: the base has nothing but a shell and what a program needs."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="flopinj-image-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.env = {**harness.clean_environment(), "BUILDAH_ISOLATION": "chroot",
                    "STORAGE_DRIVER": "vfs"}
        self.root = ("--root", self.folder / "images", "--runroot", self.folder / "run")

    def buildah(self, *words):
        done = run("buildah", *self.root, *words, env=self.env)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout.split()[-1] if done.stdout else ""

    def base(self, *programs):
        """An image that has what these programs load, a shell, and mv."""
        tree = self.folder / "base"
        (tree / "tmp").mkdir(parents=True)
        for name in ("sh", "mv"):
            (tree / "bin").mkdir(exist_ok=True)
            shutil.copy(shutil.which(name), tree / "bin")
            programs += (shutil.which(name),)
        listed = run("ldd", *programs).stdout
        for file in re.findall(r"(?m)(?:=> |^\s)(/\S+) \(0x", listed):
            (tree / file[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, tree / file[1:])
        container = self.buildah("from", "scratch")
        self.buildah("copy", container, tree, "/")
        self.buildah("commit", container, "localhost/base")
        return "localhost/base"

    def test_it_runs_the_demo(self):
        (self.folder / "build" / "package").mkdir(parents=True)
        shutil.move(archive(self.folder), self.folder / "build" / "package")
        for name in ("Dockerfile", ".dockerignore"):
            shutil.copy(harness.SOURCE / name, self.folder)
        base = self.base(*(harness.BUILD / name for name in (
            "bin/flopinj", "bin/flopreduce", "lib/libflopinj.so", "lib/flopinj/trainer/trainer",
            "lib/flopinj/simgpu/libcuda.so.1")))
        self.buildah("build", "--build-arg", f"BASE={base}", "-t", "image", self.folder)
        container = self.buildah("from", "localhost/image")
        shown = run("buildah", *self.root, "run", container, "--", "sh", "-c",
                    "cd /tmp && flopinj demo", env=self.env).stdout
        self.assertIn("2,120 measured, 0 extrapolated", shown)
        self.assertIn("the same as a page: /tmp/flopinj-demo.html", shown)


if __name__ == "__main__":
    harness.main()
