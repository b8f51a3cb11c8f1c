"""The gate's time against its limit of two seconds, and against bare protoc over the same protos.

Each run is a fresh process, as in a build. Medians of interleaved runs, with the spread.
"""

from __future__ import annotations

import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUNS = 15
LIMIT_S = 2.0


def main() -> None:
    protos = [ROOT / "proto" / "objects.proto", *sorted((ROOT / "proto" / "old").glob("*.proto"))]
    with tempfile.TemporaryDirectory() as folder:
        peers = {
            "gate": [[sys.executable, "-m", "build_tools", "check", "--require-history"]],
            "bare protoc": [_protoc(proto, folder) for proto in protos],
            "bare Python": [[sys.executable, "-c", "pass"]],
        }
        times: dict[str, list[float]] = {name: [] for name in peers}
        for _ in range(RUNS):
            for name, commands in peers.items():
                times[name].append(_timed(commands))
    print(
        f"{platform.python_implementation()} {platform.python_version()}, {len(protos)} protos, {RUNS} runs, "
        "median (min..max)"
    )
    for name, seconds in times.items():
        print(f"{name:12} {_median(seconds):.3f} s ({min(seconds):.3f}..{max(seconds):.3f})")
    print(f"gate / limit of {LIMIT_S:.0f} s: {_median(times['gate']) / LIMIT_S:.2f}")
    print(f"gate / bare protoc: {_median(times['gate']) / _median(times['bare protoc']):.2f}")


def _protoc(proto: Path, folder: str) -> list[str]:
    output = f"--descriptor_set_out={folder}/types.bin"
    return [sys.executable, "-m", "grpc_tools.protoc", f"-I{proto.parent}", output, proto.name]


def _timed(commands: list[list[str]]) -> float:
    start = time.perf_counter()
    for command in commands:
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return time.perf_counter() - start


def _median(seconds: list[float]) -> float:
    return statistics.median(seconds)


if __name__ == "__main__":
    main()
