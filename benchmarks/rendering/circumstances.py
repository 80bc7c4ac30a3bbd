"""What is missing, and where, when and by which versions the results were made."""

from benchmarks.methods import BASELINE
from benchmarks.peers.environments import normalise
from benchmarks.peers.hypothesis_tests import TESTS
from benchmarks.peers.recalibrators import RECALIBRATORS
from benchmarks.rendering import markdown

# Sections whose rows are kept from earlier runs.
KEPT = ("recalibration", "small", "detecting")
UNKNOWN = "not recorded"


def missing_part(runs):
    """Peers that were not run, with the reason."""
    missing = {}
    for section in runs.values():
        missing.update(section["missing"])
    if not missing:
        return ""
    return "## Missing\n\n" + markdown.table(
        ["peer or method", "why it was not run"], sorted(missing.items()), text=(0, 1)
    )


def circumstances_part(runs, recalibrated, tests):
    """Machine, date and commit of each section's last run; then the versions that made the rows that are kept.

    ``recalibrated`` are the rows of each section of recalibration.
    """
    rows = [row for section in recalibrated.values() for row in section]
    versions = {}
    for made in runs.values():
        for environment, packages in made["versions"].items():
            versions.setdefault(environment, {}).update(packages)
    lines = [
        *(_last_run(section, made) for section, made in sorted(runs.items())),
        *(
            line
            for section, made in recalibrated.items()
            for line in own_versions(section, [(row["method"], row.get("version")) for row in made])
        ),
        *own_versions("detecting", [(row["test"], row.get("version")) for row in tests]),
        *(f"- {name}: {_listed(packages)}." for name, packages in versions.items() if packages),
        *other_versions(versions, rows, tests),
    ]
    return "## Machine and versions\n\n" + "\n".join(lines) if lines else ""


def _last_run(section, made):
    cores = "one core" if made["cores"] == 1 else f"{made['cores']} cores"
    machine = f"{made['system']}, {made['processor']}, {cores} of it used, {made['memory_gib']} GiB"
    software = f"commit {made['commit']}, polycal {made['polycal']}, Python {made['python']}"
    run = "last run" if section in KEPT else "run"
    said = markdown.escape(f"{made['date']}, {software}; {machine}.")
    return f"- **{section}**, {run}: {said}"


def _listed(packages):
    return markdown.escape(", ".join(f"{name} {version}" for name, version in sorted(packages.items())))


def own_versions(section, made_by):
    """Polycal's methods by the version, and the fingerprint of the sources, that made their rows.

    Parameters
    ----------
    section : str
        Which rows these are.
    made_by : list of (str, str or None)
        Method and version of every row.
    """
    counts, totals = {}, {}
    for method, version in made_by:
        if method == BASELINE or method.startswith("polycal "):
            methods = counts.setdefault(version or UNKNOWN, {})
            methods[method] = methods.get(method, 0) + 1
            totals[method] = totals.get(method, 0) + 1
    lines = [f"- Versions of polycal that made its rows of **{section}**:"] if counts else []
    for version, methods in sorted(counts.items()):
        said = [_part(method, n, totals[method]) for method, n in sorted(methods.items())]
        lines.append(_item(version, said))
    return lines


def _part(method, n, total):
    """A method's short name, and how many of its rows are meant where it is not all."""
    name = "the input (none)" if method == BASELINE else method.removeprefix("polycal ")
    return name if n == total else f"{name} ({n} of {total} rows)"


def other_versions(versions, rows, tests):
    """Peers' rows that are of another version than the one their environment has now."""
    entries = [(row["method"], RECALIBRATORS.get(row["method"]), row.get("version")) for row in rows]
    entries += [(row["test"], TESTS.get(row["test"]), row.get("version")) for row in tests]
    found = {}
    for name, entry, version in entries:
        if entry is None or version is None or entry.package == "polycal":
            continue
        now = {normalise(p): v for p, v in versions.get(entry.environment, {}).items()}
        if version != now.get(normalise(entry.package), version):
            found.setdefault(f"{entry.package} {version}", set()).add(name)
    if not found:
        return []
    lines = [_item(version, sorted(names)) for version, names in sorted(found.items())]
    return ["- Rows of other versions than these:", *lines]


def _item(version, methods):
    return f"  - {markdown.escape(version)}: {markdown.escape(', '.join(methods))}."
