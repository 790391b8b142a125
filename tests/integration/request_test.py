"""What a program asks the library in it, by flopinj_request() (injector/requests.h)."""

import json
import subprocess
import sys

import attaching
import harness
from harness import CLIENTS, injected_environment

# A program in Python without a package: `launch(n)` is one of a kernel with 2 n FLOP.
PROGRAM = """
import ctypes, json, os, sys, threading, time
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint64, c_void_p

cuda = ctypes.CDLL("libcuda.so.1")

def ok(code):
    assert code == 0, code

def begin():
    global axpy, x, y
    ok(cuda.cuInit(0))
    context, module, axpy, x, y = c_void_p(), c_void_p(), c_void_p(), c_uint64(), c_uint64()
    ok(cuda.cuDevicePrimaryCtxRetain(byref(context), 0))
    ok(cuda.cuCtxSetCurrent(context))
    ok(cuda.cuModuleLoadData(byref(module), open(sys.argv[1], 'rb').read() + bytes(1)))
    ok(cuda.cuModuleGetFunction(byref(axpy), module, b'axpy'))
    for memory in (x, y):
        ok(cuda.cuMemAlloc_v2(byref(memory), c_size_t(4096)))
        ok(cuda.cuMemsetD32_v2(memory, 0, c_size_t(1024)))

def launch(n, blocks=None):
    values = (c_int(n), c_float(2), x, y)
    parameters = (c_void_p * 4)(*(ctypes.addressof(value) for value in values))
    blocks = blocks or (n + 31) // 32
    ok(cuda.cuLaunchKernel(axpy, blocks, 1, 1, 32, 1, 1, 0, None, parameters, None))

def library():
    return ctypes.CDLL(os.environ.get('LIBRARY') or os.environ['CUDA_INJECTION64_PATH'])

def ask(*lines, size=65536):
    request = library().flopinj_request
    request.restype, request.argtypes = c_size_t, (c_char_p, c_void_p, c_size_t)
    room = ctypes.create_string_buffer(size + 1)
    room[size] = b'#'  # is not ours to write
    length = request('\\n'.join(lines).encode(), room, size)
    assert room[size] == b'#'
    text = room.raw[:size].partition(b'\\0')[0].decode()
    assert length == len(text) or len(text) == size - 1, (length, text)
    return text

def value(key, *lines):
    text = ask(*lines)
    found = [line for line in text.splitlines() if line.startswith(key + ' ')]
    assert len(found) == 1, text
    return found[0].partition(' ')[2]

def until(condition):
    give_up = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.002)
"""


class Request(attaching.Attach):
    def program(self, code, *arguments, late=False, **settings):
        """The lines that it prints. `late`: the library is not injected; the program loads it."""
        by = () if late else ("CUDA_INJECTION64_PATH",)
        env = injected_environment(self.folder / "t-%p.pb", by=by, LIBRARY=harness.LIBRARY,
                                   **settings)
        done = harness.run([sys.executable, "-c", PROGRAM + code, CLIENTS / "client_kernels.ptx",
                            *arguments], env)
        self.said = done.stderr
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def launches(self, trace):
        report = harness.reduce(trace)
        self.assert_balanced(report)
        return report["ledger"][-1]["launches"]

    TWICE = """
def recorded(n):
    trace = value('output', 'start_from_inside', 'FLOPINJ_LEVEL=tally')
    for _ in range(n):
        launch(100)
    ok(cuda.cuCtxSynchronize())
    assert value('output', 'stop') == trace
    print(trace)

begin()
launch(100)
recorded(7)
launch(100)
recorded(11)
print(value('recordings', 'status'))
"""

    def check_twice(self, **settings):
        *traces, recordings = self.program(self.TWICE, **settings)
        self.assertEqual([self.launches(trace) for trace in traces], [7, 11])
        self.assertEqual(recordings, "2")

    def test_recordings_of_a_dormant_program(self):
        self.check_twice(FLOPINJ_DORMANT=1)

    def test_recordings_where_nobody_else_may_ask(self):
        self.check_twice(FLOPINJ_DORMANT=1, FLOPINJ_NO_CONTROL=1)

    def test_recordings_of_a_program_that_loads_the_library_itself(self):
        self.check_twice(late=True)

    def test_who_else_may_ask(self):
        code = """
begin()
value('output', 'start')
files = [os.path.realpath(f'/proc/self/fd/{fd}') for fd in os.listdir('/proc/self/fd')]
listening = any('flopinj-control' in name for name in files)
until(lambda: listening == any(  # a thread names itself
    'flopinj-control' in open(f'/proc/self/task/{task}/comm').read()
    for task in os.listdir('/proc/self/task')))
print(listening)
value('output', 'stop')
"""
        for late in (False, True):
            dormant = {} if late else {"FLOPINJ_DORMANT": 1}
            self.assertEqual(self.program(code, late=late, **dormant), ["True"])
            self.assertEqual(self.program(code, late=late, FLOPINJ_NO_CONTROL=1, **dormant),
                             ["False"])

    def test_before_cuda_begins(self):
        code = """
print(value('state', 'status'), ask('stop').strip(), ask('start').strip(), sep='; ')
begin()
print(value('state', 'status'), value('recordings', 'status'))
launch(100)
"""
        refused = ("dormant; error it does not record; "
                   "error CUDA has not begun in it: it can be recorded from cuInit on")
        self.assertEqual(self.program(code, FLOPINJ_DORMANT=1), [refused, "dormant 0"])
        # The recording that begins with the program is not asked for.
        self.assertEqual(self.program(code), [refused, "recording 1"])
        (trace,) = self.folder.glob("*.pb")
        self.assertEqual(self.launches(trace), 1)

    def test_recordings_that_end_themselves(self):
        code = """
begin()
trace = value('output', 'start_from_inside', sys.argv[2])
for _ in range(5):
    launch(100)
until(lambda: value('state', 'status') == 'dormant')
print(trace)
print(ask('stop').strip())
"""
        for setting in ("FLOPINJ_DURATION=2s", "FLOPINJ_LAUNCH_COUNT=5"):
            for settings in ({}, {"FLOPINJ_NO_CONTROL": 1}):
                with self.subTest(setting, **settings):
                    trace, again = self.program(code, setting, FLOPINJ_DORMANT=1, FLOPINJ_FORCE=1,
                                                **settings)
                    self.assertEqual(self.launches(trace), 5)
                    self.assertEqual(again, "error it does not record")

    def test_a_program_that_ends_while_its_recording_does(self):
        """Nobody sees the EXIT of a launch in which that began. It is no signal handler that calls
        exit() then."""
        code = """
begin()
print(value('output', 'start', 'FLOPINJ_DURATION=50ms'), flush=True)
while value('state', 'status') == 'recording':
    launch(100, blocks=2000)  # some milliseconds
"""
        for _ in range(5):
            (trace,) = self.program(code, FLOPINJ_DORMANT=1, FLOPINJ_MODE="count")
            self.assertEqual(self.said, "")
            self.assertEqual(harness.reduce(trace)["damage"], [])

    def test_it_answers_as_the_socket_does(self):
        requests = [["status"], ["stop"], ["start", "x"], ["start", "FLOPINJ_FORCE=1"],
                    ["start", "FLOPINJ_LEVEL=no"], ["begin"], [""], ["start", "FLOPINJ_MODE=off"]]
        code = """
begin()
print(os.getpid(), flush=True)
sys.stdin.readline()
for request in json.loads(sys.argv[2]):
    print(json.dumps(ask(*request)), flush=True)
"""
        env = injected_environment(self.folder / "t.pb", FLOPINJ_DORMANT=1)
        program = subprocess.Popen(
            [sys.executable, "-c", PROGRAM + code, str(CLIENTS / "client_kernels.ptx"),
             json.dumps(requests)], env=env, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, start_new_session=True)
        self.addCleanup(harness.kill_session, program)
        pid = int(program.stdout.readline())
        self.wait_for(lambda: self.listens(pid))
        by_socket = []
        for request in requests:
            with attaching.connection(pid) as client:
                client.sendall(("\n".join(request) + "\n\n").encode())
                by_socket.append(b"".join(iter(lambda: client.recv(4096), b"")).decode())
        out, _ = program.communicate("\n", timeout=attaching.PATIENCE_S)
        self.assertEqual([json.loads(line) for line in out.splitlines()], by_socket)

    def test_what_has_no_room_is_cut(self):
        code = """
whole = ask('begin')
request = library().flopinj_request
assert request(b'begin', None, c_size_t(0)) == len(whole)
assert request(None, None, c_size_t(0)) == len('error nothing was asked\\n')
for size in range(1, len(whole) + 2):
    assert ask('begin', size=size) == whole[:size - 1], size
assert ask('start', 'x' * 70000) == 'error the request is longer than 65536 bytes\\n'
"""
        self.program(code, FLOPINJ_DORMANT=1)

    def test_forked_children(self):
        code = """
def child(action):
    pid = os.fork()
    if pid == 0:
        try:
            action()
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0

def own():
    begin()
    print(value('output', 'start_from_inside'), flush=True)
    launch(100)
    value('output', 'stop')

library()
child(own)  # before CUDA begins in its parent
begin()
value('output', 'start_from_inside')
child(lambda: print(value('state', 'status'), ask('stop').strip(), ask('start').strip(), sep='; ',
                    flush=True))
launch(100)
print(value('output', 'stop'))
"""
        own, child, trace = self.program(code, FLOPINJ_DORMANT=1)
        self.assertEqual((self.launches(own), self.launches(trace)), (1, 1))
        self.assertNotEqual(own, trace)
        self.assertEqual(child, "off; error it does not record; error recording is switched off in "
                                "it, or its parent is recorded")

    def test_threads_that_ask_at_once(self):
        code = """
begin()
context = c_void_p()
ok(cuda.cuCtxGetCurrent(byref(context)))
ended, traces, refused = threading.Event(), set(), set()

def trains():
    ok(cuda.cuCtxSetCurrent(context))
    while not ended.is_set():
        launch(100)

def asks():
    for _ in range(10):
        for request in ('start', 'status', 'stop'):
            text = ask(request)
            (refused if text.startswith('error') else traces).add(
                next((l for l in text.splitlines() if l.startswith(('error', 'output'))), ''))

threads = [threading.Thread(target=asks) for _ in range(4)]
training = threading.Thread(target=trains)
for thread in (*threads, training):
    thread.start()
for thread in threads:
    thread.join()
ended.set()
training.join()
now = c_void_p()
ok(cuda.cuCtxGetCurrent(byref(now)))
assert now.value == context.value
print(sorted({text.split(',')[0] for text in refused}))
print(value('recordings_kept', 'status'), value('state', 'status'))
"""
        refused, last = self.program(code, FLOPINJ_DORMANT=1)
        self.assertLessEqual(set(json.loads(refused.replace("'", '"'))),
                             {"error it does not record", "error it records already"})
        self.assertEqual(last, "0 dormant")
        traces = list(self.folder.iterdir())
        report = harness.reduce(*traces)
        self.assert_balanced(report)
        self.assertEqual(report["damage"], [])

    def test_while_the_process_ends(self):
        code = """
begin()
def asks():
    while True:
        ask('start')
        ask('stop')
for _ in range(2):
    threading.Thread(target=asks, daemon=True).start()
for _ in range(int(sys.argv[2])):
    launch(100)
"""
        for launches in (1, 100, 1000):
            self.program(code, launches, FLOPINJ_DORMANT=1)
            for trace in self.folder.iterdir():
                if trace.stat().st_size:
                    self.assertEqual(harness.reduce(trace)["damage"], [])
                trace.unlink()

    def test_the_program_goes_on_meanwhile(self):
        """A recording that begins waits for CUPTI; no other thread of Python waits with it."""
        code = """
begin()
answers = []
thread = threading.Thread(target=lambda: answers.append(ask('start')))
thread.start()
looks = 0
while not answers:
    assert value('recordings', 'status') == '0' or value('state', 'status') == 'recording'
    looks += 1
    time.sleep(0.01)
thread.join()
print(looks, *answers[0].split()[:2])
"""
        (said,) = self.program(code, FLOPINJ_DORMANT=1, SIMGPU_FAULT="slow_enable=2000")
        looks, *answer = said.split()
        self.assertEqual(answer, ["ok", "output"])
        self.assertGreater(int(looks), 10)


if __name__ == "__main__":
    harness.main()
