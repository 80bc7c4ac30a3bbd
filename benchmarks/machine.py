"""Where and when results were made: written beside them, and shown with them."""

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.methods import own_version
from benchmarks.peers.environments import RECIPES, environment
from polycal._threads import cpu_count

ROOT = Path(__file__).parents[1]
RUNS = "runs.json"


def record(section, missing, folder):
    """Write down the circumstances of a section's run; what is missing may not be known yet."""
    path = folder / RUNS
    known = json.loads(path.read_text()) if path.exists() else {}
    if missing is None:
        missing = known.get(section, {}).get("missing", {})
    known[section] = {**circumstances(), "missing": missing}
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def circumstances():
    """Machine, versions, date and commit."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit(),
        "polycal": own_version(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        "cores": cpu_count(),
        "memory_gib": memory_gib(),
        "versions": versions(),
    }


def versions():
    """{environment: {package: version}} of those that are there."""
    names = ("polycal", *RECIPES)
    return {name: dict(environment(name, create=False).versions) for name in names}


def commit():
    """The commit, and whether there were changes since."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def processor():
    """The processor's name, as the system knows it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line
        ]
        if names:
            return names[0]
    return platform.processor() or "unknown"


def memory_gib():
    """Memory of the machine."""
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
