"""What all subcommands share: options, exit codes, examples that work, completion, standard input."""

import json
import os
import re
import shlex
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from typer.testing import CliRunner

import polycal as pc
from polycal.cli.app import app
from polycal.cli.output import print_json

COMMANDS = sorted(command.callback.__name__ for command in app.registered_commands)


def help_of(command):
    return CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).stdout


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("option", ["--json", "--quiet", "--seed", "--jobs"])
def test_every_command_has_the_common_options(command, option):
    assert option in help_of(command)


@pytest.fixture
def folder(over_confident, tmp_path):
    """A folder with all files that the examples name."""
    sample = pc.read_predictions(over_confident)
    for name in ("preds.npz", "cal.npz", "test.npz"):
        over_confident.with_name(name).write_bytes(over_confident.read_bytes())
    pc.TemperatureScaling().fit(sample.proba, sample.labels).save(tmp_path / "model.polycal")
    (tmp_path / "groups.yaml").write_text("animal: [cat, dog]\n")
    (tmp_path / "tree.yaml").write_text("animal: [cat, dog]\n<eel>:\n")
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_the_example_in_the_help_works(run, folder, command):
    callback = next(c.callback for c in app.registered_commands if c.callback.__name__ == command)
    (example,) = re.findall(r"\*\*Example:\*\* (polycal .+)", callback.__doc__)
    if command == "explore":
        pytest.skip("serves until it is interrupted; tests/explorer starts it")
    done = run(*shlex.split(example)[1:], cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_a_proven_error_above_the_limit_is_exit_code_one(run, over_confident):
    done = run("audit", over_confident, "--fail-above", "0.001", "--quiet")
    assert (done.returncode, done.stdout) == (1, "")
    said = r'polycal: failed: the error of ".+" is at least 0\.\d{4}, above --fail-above 0\.001\.\n'
    assert re.fullmatch(said, done.stderr)
    done = run("audit", over_confident, "--fail-above", "0.5", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_is_not_proven_to_be_right_is_exit_code_one(run, over_confident, folder):
    done = run("audit", over_confident, "--pass-below", "0.01", "--quiet")
    assert (done.returncode, done.stdout) == (1, "")
    assert 'the error of "confidence" is only known to be at most 0.' in done.stderr
    few = run(
        "audit",
        folder / "preds.npz",
        "--calibrator",
        folder / "model.polycal",
        "--pass-below",
        "0.001",
        "--json",
    )
    assert few.returncode == 1
    assert "rows would show it if the predictions are right" in few.stderr
    most = json.loads(few.stdout)["after"]["confidence"]["at_most"]
    assert f"known to be at most {most:.4f}, above --pass-below 0.001;" in few.stderr
    done = run("audit", over_confident, "--pass-below", "0.9", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_limit_is_for_what_the_calibrator_leaves(run, folder):
    arguments = "audit", folder / "preds.npz", "--fail-above", "0.001", "--quiet"
    assert run(*arguments).returncode == 1
    assert run(*arguments, "--calibrator", folder / "model.polycal").returncode == 0


def test_bad_options_are_exit_code_two(run, over_confident):
    assert run("audit", over_confident, "--fail-above", "-1").returncode == 2
    assert run("audit", over_confident, "--colour").returncode == 2
    assert (
        run("recalibrate", over_confident, "--out", over_confident.with_name("m"), "--jobs", "0").returncode
        == 2
    )


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet", ".feather"])
def test_predictions_come_from_standard_input(run, over_confident, suffix):
    sample, path = pc.read_predictions(over_confident), over_confident.with_name(f"copy{suffix}")
    pc.write_predictions(path, sample.labels, sample.proba, class_names=sample.class_names)
    with path.open("rb") as file:
        done = run("audit", "-", "--json", "--notion", "confidence", stdin=file)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["scores"]["log_loss"]
    assert found == pytest.approx(pc.log_loss(sample.labels, sample.proba))


def test_rubbish_on_standard_input_is_one_line(run, tmp_path):
    (tmp_path / "rubbish").write_bytes(b"\x00\xff rubbish")
    with (tmp_path / "rubbish").open("rb") as file:
        done = run("audit", "-", stdin=file)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "stdin" in done.stderr


def test_the_shell_completes_subcommands(run_process):
    words = {"_POLYCAL_COMPLETE": "complete_bash", "COMP_WORDS": "polycal rec", "COMP_CWORD": "1"}
    done = run_process(env=os.environ | words | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"})
    assert "recalibrate" in done.stdout


def test_numbers_that_json_lacks_are_null(capsys):
    print_json({"a": [float("inf"), 1.0], "b": {"c": float("nan")}})
    assert json.loads(capsys.readouterr().out) == {"a": [None, 1.0], "b": {"c": None}}


def test_quiet_alone_is_one_line(run, over_confident):
    done = run("audit", over_confident, "--quiet")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1
    assert "Worst: is " in done.stdout


def test_no_threads_are_refused(run, over_confident):
    done = run("audit", over_confident, "--jobs", "0")
    assert done.returncode == 2
    assert "-1 for one per core" in done.stderr


def test_a_comparison_says_what_is_best(run, over_confident):
    done = run("compare", over_confident, "--method", "ensemble-temperature", "--method", "temperature")
    assert "by the mean of the ranks in Brier score and log loss" in " ".join(done.stdout.split())
    assert "ensemble-temperature" in done.stdout.replace("\n", "")


def test_the_page_of_the_command_is_up_to_date():
    root = Path(__file__).parents[2]
    spec = spec_from_file_location("command_page", root / "docs" / "command.py")
    page = module_from_spec(spec)
    spec.loader.exec_module(page)
    assert (root / "docs" / "command.md").read_text() == page.text(), "run: python docs/command.py"
