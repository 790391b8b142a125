"""Manual pages read by groff without a warning, and completions by the shells themselves; both hold
all that --help has."""

import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

FOLDER = Path(sys.argv[1]).resolve()
PROGRAMS = {Path(path).name: Path(path).resolve() for path in sys.argv[2:4]}
COMMANDS = {
    "flopreduce": ("", "compare", "explain", "merge", "peaks", "project", "project train",
                   "project infer", "rules"), "flopinj": ("", "run", "doctor")
}
ENVIRONMENT = {
    "PATH": ":".join([*{str(path.parent) for path in PROGRAMS.values()}, "/usr/bin:/bin"])
}
PLACES = [(program, command) for program, commands in COMMANDS.items() for command in commands]


def help_of(program, command, option="--help"):
    return subprocess.run([PROGRAMS[program], *command.split(), option], capture_output=True,
                          text=True, timeout=60, check=True).stdout


def options_of(program, command):
    """Long options as help lists them, all of them."""
    option = "--help-all" if command == "run" else "--help"
    return {name for line in help_of(program, command, option).splitlines()
            if re.match(r" {2,6}-", line)
            for name in re.findall(r"--[a-z-]+", re.split(r"\s{2,}|[A-Z]", line.strip())[0])}


def read_page(program):
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", "-P-cbou", "-rLL=400n", FOLDER / "man" / f"{program}.1"],
        capture_output=True, text=True, timeout=60)
    return done.stdout, done.stderr


class ManualPages(unittest.TestCase):
    def test_groff_has_nothing_to_say(self):
        for program in PROGRAMS:
            for options in (["-Tutf8"], ["-Tascii", "-rLL=60n"], ["-Tps"]):
                done = subprocess.run(
                    ["groff", "-man", "-ww", "-z", *options, FOLDER / "man" / f"{program}.1"],
                    capture_output=True, text=True, timeout=60)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_what_an_option_takes_is_shown_whole(self):
        for program, command in PLACES:
            text = help_of(program, command)
            for opening, closing in ("[]", "()"):
                for line in text.splitlines():
                    if re.match(r" {2,6}-", line):
                        value = re.split(r"\s{2,}", line.strip())[0]
                        self.assertEqual(value.count(opening), value.count(closing), line)
        self.assertIn("--peak [DEVICE:]PRECISION=VALUE\n", help_of("flopreduce", ""))
        self.assertIn("--kernel-name NAME|regex:EXPRESSION\n", help_of("flopinj", "run"))
        self.assertNotIn("No regex:", help_of("flopinj", "run"))

    def test_help_is_in_groups_and_leaves_out_those_for_experts(self):
        usual, whole = help_of("flopinj", "run"), help_of("flopinj", "run", "--help-all")
        groups = ["Usual", "What to record", "Job", "Simulator"]
        titles = re.findall(r"^(\w[\w ]+):$", usual, re.MULTILINE)
        self.assertEqual(titles[:4], groups)
        self.assertLess(usual.index("--report"), usual.index("What to record:"))
        self.assertIn("More options: flopinj run --help-all", usual)
        self.assertNotIn("--flush-ms", usual)
        self.assertIn("--flush-ms", whole.split("For experts:")[1])
        self.assertNotIn("More options", whole)
        page = read_page("flopinj")[0]
        places = [page.index(f"   {title}\n") for title in [*groups, "For experts"]]
        self.assertEqual(places, sorted(places))

    def test_the_reports_options_are_in_groups(self):
        groups = ["Usual", "What is read", "Phases, names and formulas", "Peaks and MFU", "Output"]
        shown, page = help_of("flopreduce", ""), read_page("flopreduce")[0]
        titles = re.findall(r"^(\w[\w ,]+):$", shown, re.MULTILINE)
        self.assertEqual(titles[1:6], groups)  # behind the commands' arguments
        self.assertIn("--fail-if", shown.split("What is read:")[0])
        self.assertIn("--peak", shown.split("Peaks and MFU:")[1].split("Output:")[0])
        places = [page.index(f"   {title}\n") for title in groups]
        self.assertEqual(places, sorted(places))
        self.assertIn("\nOptions:\n", help_of("flopreduce", "merge"))  # few: one list

    def test_every_option_and_its_text_is_there(self):
        for program, command in PLACES:
            page = " ".join(read_page(program)[0].split())
            self.assertIn(f"{program} {command}".strip(), page)
            options = options_of(program, command)
            self.assertIn("--help", options)
            for option in options:
                self.assertIn(option, page)
        page = " ".join(read_page("flopreduce")[0].split())
        self.assertIn("--top N Lines of long tables (10 if not given).", page)
        self.assertIn(
            "--weight WEIGHT What --format folded adds up (flop) (flop, time or launches).",
            page)
        self.assertIn("'ratio > 2.1 or total.flop > 1.5T'",
                      page)  # quotes, hyphens and dots as they are

    def test_the_page_has_what_one_looks_for(self):
        for program in PROGRAMS:
            text = read_page(program)[0]
            titles = re.findall(r"^[A-Z][A-Z ]+$", text, re.MULTILINE)
            for title in ("EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO"):
                self.assertEqual(titles.count(title), 1, titles)
        environment = read_page("flopinj")[0].split("\nENVIRONMENT\n")[1].split("\nFILES\n")[0]
        settings = Path(__file__).parents[3] / "collector/options/options.cpp"
        variables = re.findall(r'"(FLOPINJ_[A-Z_]+)"', settings.read_text())
        self.assertGreater(len(variables), 25)
        for variable in variables:
            self.assertIn(variable, environment)

    def test_the_page_has_a_name_line_for_apropos(self):
        for program in PROGRAMS:
            self.assertRegex(read_page(program)[0], rf"NAME\n +{program} [-\u2010\u2212] ")


class Bash(unittest.TestCase):
    def complete(self, line, folder="/"):
        """What bash offers for the last word of a line; words are split as bash does it, also at
        "="."""
        words = [w for w in re.split(r"\s+|(=)", line) if w]
        if line.endswith((" ", "=")):
            words += [""]
        program = words[0]
        script = (
            f"source {FOLDER}/bash/{program}; COMP_WORDS=({' '.join(repr(w) for w in words)}); "
            f"COMP_CWORD={len(words) - 1}; "
            f"_{program}; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
        done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True,
                              timeout=60, cwd=folder, env=ENVIRONMENT)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return [word for word in done.stdout.splitlines() if word]

    def test_commands(self):
        with tempfile.TemporaryDirectory() as empty:
            named = re.split("Commands|Options", help_of("flopinj", ""))[1]
            self.assertEqual(self.complete("flopinj ", empty),
                             re.findall(r"^  (\w+) +\S", named, re.MULTILINE))
            self.assertEqual(self.complete("flopreduce comp", empty), ["compare"])
            self.assertEqual(self.complete("flopreduce project ", empty), ["train", "infer"])
            listed = re.findall(r"^  (\w+) +\S",
                                re.split("Commands|Arguments", help_of("flopreduce", ""))[1],
                                re.MULTILINE)
            self.assertEqual(set(self.complete("flopreduce ", empty)),
                             set(listed) - {"report"})  # which is the default

    def test_options_are_those_of_the_command(self):
        for program, command in PLACES:
            offered = self.complete(f"{program} {command} --")
            self.assertEqual(set(offered), options_of(program, command), (program, command))
        self.assertEqual(self.complete("flopreduce trace.pb --form"),
                         ["--format", "--formulas", "--formula-flop"])
        self.assertEqual(self.complete("flopreduce project train --exam"), ["--examples"])
        self.assertEqual(self.complete("flopreduce --table peaks --weig"),
                         ["--weight"])  # no command, but a value

    def test_values(self):
        self.assertEqual(self.complete("flopreduce --format ht"), ["html"])
        self.assertEqual(self.complete("flopreduce --format=ht"), ["html"])
        self.assertEqual(self.complete("flopreduce compare a b --format "),
                         ["text", "json", "csv", "markdown", "sqlite", "html"])
        self.assertEqual(self.complete("flopreduce explain Cov"), ["Coverage"])
        self.assertEqual(self.complete("flopreduce explain Coverage Cov"), [])  # a trace
        self.assertEqual(self.complete("flopinj run --level="), ["launches", "tally"])
        self.assertEqual(sorted(self.complete("flopreduce --color a")), ["always", "auto"])
        self.assertEqual(self.complete("flopreduce --table operator_"),
                         ["operator_work", "operator_passes", "operator_places"])
        self.assertIn("H100 SXM5 80GB", self.complete("flopreduce project train --gpu H100"))

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "x trace.pb").touch()
            self.assertEqual(self.complete("flopreduce x", folder), ["x trace.pb"])
            self.assertEqual(self.complete("flopreduce compare x", folder), ["x trace.pb"])
            self.assertEqual(self.complete("flopreduce -o x", folder), ["x trace.pb"])
            self.assertEqual(self.complete("flopreduce --output=x", folder), ["x trace.pb"])
            self.assertEqual(self.complete("flopreduce --format x", folder), [])

    def test_the_profiled_program_is_left_alone(self):
        self.assertEqual(self.complete("flopinj run -- python --mo"), [])


class OtherShells(unittest.TestCase):
    @unittest.skipUnless(shutil.which("zsh"), "no zsh here")
    def test_zsh_offers_it(self):
        def complete(*words):
            """The words that are described, and a line "files" where these come, too."""
            shown = 'print -rl -- "${(@)known%%:*}"'
            script = (f"_describe() {{ {shown}; }}; _files() {{ print files; }}; "
                      f"words=({' '.join(map(repr, words))}); CURRENT=$#words; "
                      f"f() {{ source {FOLDER}/zsh/_{words[0]}; }}; f")
            done = subprocess.run(["zsh", "-f", "-c", script], capture_output=True, text=True,
                                  timeout=60, env=ENVIRONMENT)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return done.stdout.splitlines()

        self.assertEqual(complete("flopreduce", "comp"), ["compare", "files"])
        self.assertEqual(complete("flopreduce", "--format", "ht"), ["html"])
        self.assertEqual(complete("flopreduce", "--format=ht"), ["--format=html"])
        self.assertEqual(complete("flopreduce", "project", "train", "--exam"), ["--examples"])
        self.assertEqual(complete("flopreduce", "compare", "x"), ["files"])
        for program, command in PLACES:
            self.assertEqual(set(complete(program, *command.split(), "--")),
                             options_of(program, command))

    @unittest.skipUnless(shutil.which("fish"), "no fish here")
    def test_fish_completes(self):
        def complete(line):
            script = f"source {FOLDER}/fish/{line.split()[0]}.fish; complete -C '{line}'"
            with tempfile.TemporaryDirectory() as home:
                done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True,
                                      text=True, timeout=60,
                                      env=ENVIRONMENT | {"HOME": home}, cwd=home)
            self.assertEqual(done.stderr, "")
            return [row.split("\t")[0] for row in done.stdout.splitlines()]

        self.assertEqual(complete("flopreduce comp"), ["compare"])
        self.assertEqual(complete("flopreduce --format ht"), ["html"])
        self.assertEqual(complete("flopreduce --table phase_p"),
                         ["phase_parts", "phase_precisions"])
        self.assertEqual(complete("flopreduce project train --exam"), ["--examples"])
        for program, command in PLACES:
            self.assertLessEqual(options_of(program, command),
                                 set(complete(f"{program} {command} --".replace("  ", " "))))


if __name__ == "__main__":
    unittest.main(argv=["manual_test.py", "-v"])
