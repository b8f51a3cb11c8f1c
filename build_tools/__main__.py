"""`python -m build_tools`: runs the gate, or says what it needs to run."""

import sys

try:
    from .command_line import main
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "google":
        raise
    sys.exit(
        "the gate cannot run: protobuf is not installed here\n"
        "why:  protos are compiled and compared with it\n"
        "next: pip install 'grpcio-tools==1.85.1', or in a checkout of this repository: ./dev check"
    )

if __name__ == "__main__":
    sys.exit(main())
