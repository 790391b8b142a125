"""A page of the documents: its blocks of code, and a shell in which its commands run.

A block is fenced. What becomes of it depends on the word behind its opening fence:

console     lines that begin with "$ " are commands ("> " goes on with one), what follows a command
            is its output. A line of "..." in it is any number of lines.
sh          commands whose output the page does not show
python      is compiled;  yaml, json: is parsed;  anything else is only shown

A comment in the page's source, on the line before a block, says that it is not run and why:

    <!-- not run: needs Slurm -->

Commands of such a block are still checked for their syntax. All commands of a page run in one shell
and one folder, from top to bottom. A command has to succeed, unless the next one is `echo $?`."""

import os
import re
import signal
import socket
import subprocess
import textwrap
from dataclasses import dataclass, field

NOT_RUN = re.compile(r"<!-- not run: (.+) -->")


@dataclass
class Command:
    text: str
    line: int  # of the page's source, from 1
    output: list | None = None  # what the page shows, or None: it shows nothing
    output_line: int = 0
    lines_succeed: bool = False  # each of its lines has to, not the last one only


@dataclass
class Block:
    language: str
    line: int
    not_run: str | None
    lines: list = field(default_factory=list)

    def text(self):
        return "\n".join(self.lines) + "\n"

    def commands(self):
        if self.language == "sh":
            return [Command("\n".join(self.lines), self.line + 1, lines_succeed=True)]
        found = []
        for number, line in enumerate(self.lines, self.line + 1):
            if line.startswith("$ "):
                found.append(Command(line[2:], number, [], number + 1))
            elif not found:
                raise AssertionError(f"line {number}: output without a command")
            elif line.startswith("> ") and not found[-1].output:
                found[-1].text += "\n" + line[2:]
                found[-1].output_line = number + 1
            else:
                found[-1].output.append(line)
        for command in found:
            while command.output and not command.output[-1]:
                command.output.pop()
        return found


def blocks_of(text):
    """The fenced blocks of a page, in order."""
    found, open_block, before = [], None, ""
    for number, line in enumerate(text.splitlines(), 1):
        if open_block is not None:
            if line == "```":
                found.append(open_block)
                open_block = None
            else:
                open_block.lines.append(line)
        elif line.startswith("```"):
            reason = NOT_RUN.fullmatch(before)
            open_block = Block(line[3:], number, reason and reason[1])
        before = line
    assert open_block is None, f"the block of line {open_block.line} has no end"
    return found


def shown(printed, folder):
    """The lines of what was printed, as a page shows them: with the same folder and host for all,
    long lines broken, and without what the training program itself says."""
    for real, name in ((str(folder), "/tmp/d"), (socket.gethostname(), "node1")):
        printed = printed.replace(real, name)
    lines = []
    for line in printed.rstrip("\n").splitlines():
        if re.match(r"step \d+ loss |weights [0-9a-f]{16}$", line):
            continue
        if len(line) > 100:
            lines += textwrap.wrap(line, 96, subsequent_indent="  ", break_on_hyphens=False)
        else:
            lines.append(line)
    return lines


def run(commands, folder, environment, timeout):
    """Runs the commands in one shell; pairs of exit code and what each printed."""
    logs = folder.parent / (folder.name + ".printed")
    logs.mkdir()
    script = ["code=0 failed=0", 'before() { return "$code"; }']
    for number, command in enumerate(commands):
        script += [
            "failed=0; trap 'failed=$?' ERR" if command.lines_succeed else "before",
            "{", command.text, f"}} >{logs}/{number} 2>&1 </dev/null", "code=$?; trap - ERR",
            f"[ $code != 0 ] || code=$failed; failed=0; echo $code >{logs}/{number}.code"
        ]
    process = subprocess.Popen(["bash", "-c", "\n".join(script)], cwd=folder, env=environment,
                               start_new_session=True)
    try:
        process.wait(timeout)
    finally:
        try:  # and what a page has left in the background
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
    done = []
    for number, command in enumerate(commands):
        code = logs / f"{number}.code"
        assert code.exists(), f"line {command.line}: the shell did not get to its end"
        done.append((int(code.read_text()), shown((logs / str(number)).read_text(), folder)))
    return done


# What differs from run to run: times and shares of them, process ids, sizes of files, and how many
# of the launches were measured. Signatures have the hash of a kernel's code in them, which depends
# on the compiler.
VOLATILE = ((r"(?:[<>]=? )?\d[\d.,]* (?:[num]?s|%|k?B|MB)(?!\w)", "..."),
            (r"\b(pid|process|detach) \d+", r"\1 ..."),
            (r"\bpid\d+", "pid..."), (r"\bflop-\d+", "flop-..."),
            (r"[\d,]+ (measured|extrapolated|samples?|windows?|times? or more)\b", r"... \1"),
            (r"\d+ (launches have an estimated time)", r"... \1"),
            (r"(FLOP) \d+ (\d+x\d+x\d+)\b", r"\1 ... \2"),  # samples of a signature
            (r"\bsignature [0-9a-f]{16}", "signature ..."),
            (r"let go of: [\d,]+", "let go of: ..."),
            (r"(all devices [\d,]+) [\d,]+ [\d,]+", r"\1 ... ..."),
            (r"(Per step) [\d.]+ (A )", r"\1 ... \2"),
            # It is cut where these times have many digits.
            (r"(reading counters)(?: \.\.\.|, of \.\.\. allowed)", r"\1 ..."))


def comparable(lines, exact):
    """Output as it is compared. Unless every character counts it is without what differs from run
    to run, and blanks and line breaks are all alike."""
    if exact:
        return "\n".join(line.rstrip() for line in lines)
    text = " ".join(" ".join(lines).split())
    for expression, instead in VOLATILE:
        text = re.sub(expression, instead, text)
    return text


def same(expected, printed, exact):
    """Whether a page's output, with "..." for any lines, is what was printed."""
    parts = [[]]
    for line in expected:
        if line.strip() == "...":
            parts.append([])
        else:
            parts[-1].append(line)
    pattern = r"\s*.*\s*".join(re.escape(comparable(part, exact)) for part in parts)
    return re.fullmatch(pattern, comparable(printed, exact), re.DOTALL) is not None
