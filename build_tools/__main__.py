"""The command `python -m build_tools`: runs the gate, or prints what it needs to run."""

import gc
import signal
import sys

gc.disable()  # a run is short and frees what it no longer needs: collections would only walk through syntax trees
signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `… | head` ends the gate, as it ends other programs
try:
    from .cli import main
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
