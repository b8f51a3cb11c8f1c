"""`python -m build_tools`: runs the gate, or says what it needs to run."""

import signal
import sys

signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `… | head` ends the gate like any other program
try:
    from .command_line import main
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "google":
        raise
    print(
        "the gate cannot run: protobuf is not installed here\n"
        "why:  protos are compiled and compared with it\n"
        "next: pip install 'grpcio-tools==1.85.1', or in a checkout of this repository: ./dev check",
        file=sys.stderr,
    )
    sys.exit(2)

if __name__ == "__main__":
    sys.exit(main())
