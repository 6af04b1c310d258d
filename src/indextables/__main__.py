"""`python -m indextables`: the command, where its script is not on the path."""

from indextables.cli import main

main(prog_name="indextables")
