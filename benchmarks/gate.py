"""The gate's time against bare protoc over the same protos.

Every run is a fresh process, as in a build: the gate in one, protoc in one per proto, because all protos define the
same names. Both use bytecode that a first run, which is not counted, has written, as after an installation. The runs
are interleaved; medians with the spread, of the time that passes and of the processor's time, which other programs
disturb less.
"""

from __future__ import annotations

import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUNS = 15
LIMIT = 1.5
"""The most that the gate may take, in times of bare protoc."""


@dataclass
class Peer:
    """Commands that are run one after the other, and the times of their runs in seconds."""

    commands: list[list[str]]
    elapsed_s: list[float] = field(default_factory=list)
    processor_s: list[float] = field(default_factory=list)

    def run(self, environment: dict[str, str]) -> None:
        for command in self.commands:
            subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)

    def measure(self, environment: dict[str, str]) -> None:
        began, used = time.perf_counter(), _processor_s()
        self.run(environment)
        self.elapsed_s.append(time.perf_counter() - began)
        self.processor_s.append(_processor_s() - used)


def main() -> None:
    protos = [ROOT / "proto" / "objects.proto", *sorted((ROOT / "proto" / "old").glob("*.proto"))]
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = folder
        peers = {
            "gate": Peer([[sys.executable, "-m", "build_tools", "check", "--require-history"]]),
            "bare protoc": Peer([_protoc(proto, folder) for proto in protos]),
            "bare Python": Peer([[sys.executable, "-c", "pass"]]),
        }
        for peer in peers.values():
            peer.run(environment)
        for _ in range(RUNS):
            for peer in peers.values():
                peer.measure(environment)
    print(f"{platform.python_implementation()} {platform.python_version()}, {len(protos)} protos, {RUNS} runs")
    print(f"{'':12} median (min..max), elapsed      processor")
    for name, peer in peers.items():
        print(f"{name:12} {_spread(peer.elapsed_s):30} {_spread(peer.processor_s)}")
    gate, protoc = peers["gate"], peers["bare protoc"]
    elapsed = statistics.median(gate.elapsed_s) / statistics.median(protoc.elapsed_s)
    processor = statistics.median(gate.processor_s) / statistics.median(protoc.processor_s)
    verdict = "within" if elapsed <= LIMIT else "ABOVE"
    print(f"gate / bare protoc: {elapsed:.2f} elapsed, {processor:.2f} processor; limit {LIMIT:.2f}: {verdict}")


def _protoc(proto: Path, folder: str) -> list[str]:
    output = f"--descriptor_set_out={folder}/types.bin"
    return [sys.executable, "-m", "grpc_tools.protoc", f"-I{proto.parent}", output, proto.name]


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.3f} s ({min(seconds):.3f}..{max(seconds):.3f})"


if __name__ == "__main__":
    main()
