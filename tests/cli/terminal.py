"""Programs on a terminal of their own, and in a pipe."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

from tests.conftest import ROOT

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOUR = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7])(?:;[0-9;]*)?m")
_HEIGHT = 40


def on_terminal(program: str, *arguments: str, width: int = 120, **environment: str) -> str:
    """What a Python program writes to a terminal, escapes and all."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", _HEIGHT, width, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=variables(**{"TERM": "xterm-256color", **environment}),
    ) as process:
        os.close(follower)
        written = bytearray()
        while part := _read(leader):
            written += part
    os.close(leader)
    text = written.decode()
    assert process.returncode == 0, text
    return text


def in_pipe(*command: str, expect: int = 0, **environment: str) -> tuple[str, str]:
    """What a Python program writes to standard output and error, without a terminal and with nothing to read."""
    done = subprocess.run(
        [sys.executable, *command],
        env=variables(**environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout, done.stderr


def is_setting(name: str) -> bool:
    """Of whoever runs the tests: the folder of the class archive is that of all tests."""
    return name.startswith("CATALOG_") and name != "CATALOG_CLASS_ARCHIVE"


def variables(**changed: str) -> dict[str, str]:
    """The variables of a program: those of this process, but for what tells how to draw and what to work on."""
    ours = {"TERM", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"}
    kept = {name: value for name, value in os.environ.items() if name not in ours and not is_setting(name)}
    return kept | {"PYTHONPATH": str(ROOT)} | changed


def _read(leader: int) -> bytes:
    try:
        return os.read(leader, 65536)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return b""  # how Linux says that nobody holds the other end any more
