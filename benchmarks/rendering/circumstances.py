"""What is missing, and where and when the results were made."""

from benchmarks.rendering import markdown


def missing_part(runs):
    """Peers that were not run, with the reason."""
    missing = {}
    for section in runs.values():
        missing.update(section["missing"])
    if not missing:
        return ""
    return "## Missing\n\n" + markdown.table(
        ["peer or method", "why it was not run"], sorted(missing.items())
    )


def circumstances_part(runs):
    """Machine, versions, date, commit."""
    lines = ["## Machine and versions"]
    for section, made in sorted(runs.items()):
        cores = "one core" if made["cores"] == 1 else f"{made['cores']} cores"
        machine = f"{made['system']}, {made['processor']}, {cores} of it used, {made['memory_gib']} GiB"
        software = f"commit {made['commit']}, polycal {made['polycal']}, Python {made['python']}"
        lines.append(f"- **{section}**: {made['date']}, {software}; {machine}.")
    versions = {}
    for made in runs.values():
        for environment, packages in made["versions"].items():
            versions.setdefault(environment, {}).update(packages)
    lines += [
        f"- {environment}: {', '.join(f'{name} {version}' for name, version in sorted(packages.items()))}"
        for environment, packages in versions.items()
        if packages
    ]
    return f"{lines[0]}\n\n" + "\n".join(lines[1:]) if runs else ""
