"""``python -m tests.forks FOLDER``: forks for every line of JSON on stdin, and the child is an interpreter as if new.

A start of Python that imports torch takes two seconds of the processor, a fork some milliseconds. What the child
writes is in FOLDER/out and FOLDER/err; its exit code is printed. A line that asks for a warm one is answered by a
second such process, itself a fork, that has also imported what our dependencies take longest to import.
"""

import atexit
import gc
import importlib
import json
import multiprocessing
import os
import runpy
import signal
import sys
import threading
import traceback
import types
from collections.abc import Callable, Iterable
from pathlib import Path

PRELOADED = ("torch", "safetensors.torch")
WARM = ("numpy", "scipy.sparse", "scipy.linalg", "numba", "numba.np.arraymath", "numba.typed.typeddict", "flint")
WARM += ("numba.typed.dictimpl", "joblib", "typer", "rich.table", "rich.progress")


def main() -> None:
    serve(map(json.loads, sys.stdin), lambda code: print(code, flush=True), PRELOADED)


def serve(requests: Iterable[dict], answer: Callable[[int], None], preloaded: tuple[str, ...]) -> None:
    """One child at a time."""
    for name in preloaded:
        importlib.import_module(name)
    assert not [name for name in sys.modules if name.startswith("thereexists")]
    gc.freeze()  # what is imported stays: no child looks through it for garbage
    warm = None
    for asked in requests:
        if asked.pop("warm", False):
            if warm is None:
                warm, theirs = multiprocessing.Pipe()
                if os.fork() == 0:
                    warm.close()
                    return serve(iter(theirs.recv, None), theirs.send, WARM)
            warm.send(asked)
            answer(warm.recv())
            continue
        child = os.fork()
        if child == 0:
            end(asked)
        answer(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    if warm is not None:
        warm.send(None)


def end(asked: dict) -> None:
    """Become the program and end as any does, with threads, exit handlers and an exit code, but for one thing: no
    object is freed. Those of torch alone take a second of the processor, and the system frees them anyway.
    """
    code: object = None
    try:
        become(asked)
    except SystemExit as stop:
        code = stop.code
    except BaseException:
        traceback.print_exc()
        code = 1
    if not isinstance(code, int | None):
        print(code, file=sys.stderr)
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def become(asked: dict) -> None:
    for number, name in enumerate((os.devnull, f"{sys.argv[1]}/out", f"{sys.argv[1]}/err")):
        os.dup2(os.open(name, os.O_RDWR | (os.O_CREAT | os.O_TRUNC if number else 0), 0o600), number)
    os.environ.clear()
    os.environ |= asked["environment"]
    os.chdir(asked["cwd"])
    signal.alarm(asked["timeout"])
    first, *rest = asked["words"]
    if first == "-c":
        code, *rest = rest
        program = sys.modules["__main__"] = types.ModuleType("__main__")
        sys.argv, sys.path[0] = ["-c", *rest], ""
        exec(compile(code, "<string>", "exec"), vars(program))
    elif first == "-m":
        sys.argv, sys.path[0] = rest, os.getcwd()
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = [first, *rest], str(Path(first).parent)
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    main()
