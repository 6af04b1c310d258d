"""The command as a script calls it."""

import json

from click.testing import CliRunner

from indextables.cli.app import main


def run(*words, stdin=None):
    """(exit code, stdout, stderr); anything but an orderly exit is raised."""
    result = CliRunner().invoke(main, [str(word) for word in words], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def run_json(*words):
    """The JSON document on stdout of a command that went well."""
    code, out, err = run(*words, "--format", "json")
    assert code == 0, err
    return json.loads(out)
