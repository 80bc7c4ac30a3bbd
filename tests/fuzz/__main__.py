"""Damaged files: mutations of small valid ones, read in child processes.

``python -m tests.fuzz csv 7 300`` reads 300 damaged files of seed 7 in this process, under limits of memory and time;
``python -m tests.fuzz`` runs all formats in child processes, seed after seed, until one fails or Ctrl-C.
"""

# ruff: noqa: PT017, T201
import itertools
import json
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pyarrow import feather

import polycal as pc
from polycal.io.chunks import open_predictions

# What may be raised, in one line each; anything else is a failure, as is the end of the process.
EXPECTED = (ValueError, TypeError, OSError, MemoryError)
SECONDS, BYTES = 20, 4 << 30
NUMBERS = (0, 1, -1, 0x7F, 0x80, 0x7FFF, 0x7FFFFFFF, -0x80000000, 0x7FFFFFFFFFFFFFFF)
BITS = ("<i1", "<i2", "<i4", "<i8", ">i4")
KINDS = ("npz", "npy", "csv", "parquet", "feather", "yaml", "json")
GROUPS = {"animal": ["cat", "dog"], "first": [0, 1], "été": ["no", "1e3"]}


def seeds(folder: Path) -> dict[str, list[Path]]:
    """Small valid files, by format."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(4), 60)
    names = ["cat", "dog", "émeu", "a.b"]
    labels, weight, marks = rng.integers(0, 4, 60), rng.random(60), rng.random(60) < 0.5
    files: dict[str, list[Path]] = {}

    def add(name: str) -> Path:
        path = folder / name
        files.setdefault(path.suffix.removeprefix("."), []).append(path)
        return path

    for suffix in ("npz", "csv", "parquet", "feather"):
        options = {"sample_weight": weight, "class_names": names, "evaluation": marks}
        pc.io.write_predictions(add(f"all.{suffix}"), labels, proba, **options)
    np.savez_compressed(add("packed.npz"), logits=np.log(proba).astype(np.float32), labels=labels)
    pc.io.write_predictions(add("alone.npy"), labels, proba)
    table = pa.table({"proba": list(proba), "label": labels, "weight": weight})
    pq.write_table(table, add("lists.parquet"), row_group_size=20, compression="zstd")
    columns = {name: pa.array(column) for name, column in zip("abcd", proba.T, strict=True)}
    texts = pa.array([names[i] for i in labels]).dictionary_encode()
    pq.write_table(pa.table(columns | {"label": labels}), add("plain.parquet"), write_statistics=True)
    for packing in ("lz4", "zstd"):
        feather.write_feather(table, add(f"{packing}.feather"), compression=packing, chunksize=20)
    feather.write_feather(pa.table(columns | {"evaluation": marks, "x": texts}), add("text.feather"))
    add("groups.yaml").write_text(yaml.safe_dump(GROUPS, allow_unicode=True))
    add("flow.yaml").write_text("a: &a [cat, 'dog', \"x\"]\nb: *a\nc:\n  - !!str 1\n  - 0x1F\n")
    add("groups.json").write_text(json.dumps(GROUPS))
    return files


def mutate(data: bytes, rng: np.random.Generator) -> bytes:
    """A few changes of bytes, of numbers, and of runs of bytes."""
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 6))):
        size = max(1, len(changed))
        at, length = int(rng.integers(size)), int(min(rng.geometric(0.1), size))
        match rng.integers(6):
            case 0:
                changed[at : at + 1] = rng.bytes(1)
            case 1:
                changed[at : at + 1] = bytes([changed[at] ^ (1 << int(rng.integers(8)))]) if changed else b"x"
            case 2:
                number = np.array(NUMBERS[rng.integers(len(NUMBERS))]).astype(BITS[rng.integers(len(BITS))])
                changed[at : at + number.itemsize] = number.tobytes()
            case 3:
                del changed[at : at + length]
            case 4:
                start = int(rng.integers(size))
                changed[at:at] = changed[start : start + length] * int(rng.choice([1, 2, 200]))
            case _:
                start = int(rng.integers(size))
                changed[at : at + length] = changed[start : start + length]
    return bytes(changed)


def read(path: Path) -> None:
    """Read a file in every way there is."""
    if path.suffix in {".yaml", ".json"}:
        pc.read_groups(path)
        return
    files = open_predictions(path, memory="512MiB")
    files.row_counts()
    for chunk in files:
        assert np.abs(chunk.sample.proba.sum(axis=1) - 1).max() < 0.1
    pc.read_predictions(path, max_bytes=1 << 28)


def run(kind: str, seed: int, cases: int) -> None:
    """Read damaged files of one format; the number of a case is printed before it is tried."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as name:
        found = seeds(Path(name))[kind]
        for case in range(cases):
            source = found[case % len(found)]
            whole = source.read_bytes()
            print(case, source.name, flush=True)
            source.write_bytes(mutate(whole, rng))
            signal.alarm(SECONDS)
            try:
                read(source)
            except EXPECTED as error:
                assert len(str(error).splitlines()) == 1, f"not one line: {error!r}"
            finally:
                signal.alarm(0)
                source.write_bytes(whole)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
        sys.exit()
    for seed in itertools.count(1):
        for kind in KINDS:
            print(f"seed {seed}, {kind}", flush=True)
            command = [sys.executable, "-m", "tests.fuzz", kind, str(seed), "500"]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"exit {done.returncode} at case {done.stdout.splitlines()[-1:]}: {done.stderr}")
