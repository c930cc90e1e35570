"""How processes release memory; each script here runs in a separate process."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Mapping

import pytest

from app.server import commands as processes
from app.server.commands import MALLOC
from tests.installation.processes import START_SECONDS

needs_glibc = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="heaps and caches of threads are glibc's"
)

# Prints the number of heaps after many threads have allocated memory at the same time, and the KiB that
# count as in use after every thread has freed its memory.
THREADS = """
import ctypes, tempfile, threading
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.fopen.restype = ctypes.c_void_p
libc.free.argtypes = libc.fclose.argtypes = (ctypes.c_void_p,)
libc.malloc_info.argtypes = ctypes.c_int, ctypes.c_void_p
class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd",
        "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
    )]
libc.mallinfo2.restype = Info
together = threading.Barrier(25)
def ask():
    together.wait()
    blocks = [libc.malloc(size) for size in range(512, 1024, 16) for _ in range(7)]
    for block in blocks:
        libc.free(block)
    together.wait()
    together.wait()
for _ in range(24):
    threading.Thread(target=ask, daemon=True).start()
before = libc.mallinfo2().uordblks
together.wait()
together.wait()
kept = libc.mallinfo2().uordblks - before
with tempfile.NamedTemporaryFile() as output:
    stream = libc.fopen(output.name.encode(), b"w")
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    print(output.read().count(b"<heap "), kept // 1024)
together.wait()
"""

# Both programs use a callback when their garbage is freed. They do not call the weak reference: Python 3.13
# collects garbage right after that call, while its result is still in use.

# Prints the number of collections until Python frees garbage that survived the first collection.
LOOKS = """
import gc, weakref
from store.config.garbage_collection import collect_seldom
class Knot:
    pass
collect_seldom(1_000)
looks = 0
def count(phase, info):
    global looks
    looks += phase == "start"
gc.callbacks.append(count)
knot = Knot()
knot.itself = knot
freed = []
watched = weakref.ref(knot, freed.append)
made = []
while not looks:
    made.append([])
del knot, made
made = []
while not freed:
    made.append([])
print(looks)
"""

# Prints the number of objects that a worker allocates until garbage from the start is collected.
OBJECTS = """
import weakref
from workers.settings import read_settings
from workers.runtime import Runtime
Runtime(read_settings()).prepare("collecting@here")
class Knot:
    pass
knot = Knot()
knot.itself = knot
freed = []
watched = weakref.ref(knot, freed.append)
del knot
made = []
while not freed:
    made.append([])
print(len(made))
"""


def memory_of(*command: str, environment: Mapping[str, str] | None = None) -> list[int]:
    """The numbers that a program prints."""
    printed = subprocess.check_output(command, env=environment, timeout=START_SECONDS)
    return [int(word) for word in printed.split()]


def commands(settings):
    """The commands of web and worker, up to Python's arguments."""
    for command in (processes.web("127.0.0.1", 0, 1), processes.worker(settings, "w")):
        yield command[: command.index(sys.executable) + 1]


@needs_glibc
def test_threads_share_few_heaps_and_release_freed_memory(settings, monkeypatch):
    monkeypatch.delenv(MALLOC, raising=False)
    for python in commands(settings):
        heaps, kept = memory_of(*python, "-c", THREADS)
        assert heaps <= 2
        assert kept < 100


@needs_glibc
def test_the_operators_glibc_settings_are_kept(settings, monkeypatch):
    monkeypatch.setenv(MALLOC, "glibc.malloc.arena_max=4")
    for python in commands(settings):
        heaps, kept = memory_of(*python, "-c", THREADS)
        assert heaps == 4
        assert kept > 1000


def test_garbage_that_survives_a_collection_is_freed_by_a_later_one():
    assert memory_of(sys.executable, "-c", LOOKS)[0] <= 4


@pytest.mark.slow
def test_a_worker_collects_garbage_before_there_is_much(environment, database):
    (made,) = memory_of(sys.executable, "-c", OBJECTS, environment=environment)
    assert made < 10_000
