# SPDX-License-Identifier: GPL-3.0-or-later
"""Serves JSON lines to the program that started this interpreter.

Each line of standard input is a request, a JSON object; each line of standard output is an answer.
What a request raises is answered as {"error": text, "kind": exception, "missing": package or absent}
and the next request is served. Whatever libraries print goes to standard error.
"""
import json
import os
import sys
import threading
import time


def _end_with_parent():
    """A harness deep in a computation would outlive a program that was killed."""
    parent = os.getppid()

    def watch():
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _answers_stream():
    """The real standard output; the name and the descriptor now lead to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return answers


def _describe(error):
    answer = {"error": f"{type(error).__name__}: {error}", "kind": type(error).__name__}
    if isinstance(error, ModuleNotFoundError) and error.name:
        answer["missing"] = error.name.split(".")[0]
    return answer


def serve(handle):
    """`handle(request, answer)` calls answer(dict) once or more; a value it returns is answered."""
    _end_with_parent()
    stream = _answers_stream()

    def answer(value):
        stream.write(json.dumps(value) + "\n")
        stream.flush()

    for line in sys.stdin:
        try:
            value = handle(json.loads(line), answer)
        except Exception as error:  # every fault is the request's, the server goes on
            value = _describe(error)
        if value is not None:
            answer(value)
