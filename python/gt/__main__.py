"""The command `gt`, which is `python -m gt`, too."""

import importlib
import sys

import gt

_USAGE = """usage: gt COMMAND [options]

commands:
{commands}

`gt COMMAND --help` tells more. `gt --version` prints version, commit, engines and features: a bug
report begins with it.
"""

#: What `gt --help` prints of each command.
_COMMANDS = {
    "demo": "train on handwritten digits, in this process and on a server",
    "server": "run a dispatcher that workers and clients connect to",
    "worker": "run a worker that serves a dispatcher",
    "top": "show what a dispatcher, its workers and its sessions are at, live",
    "explain-wait": "say what a session waits for, and because of whom",
    "trace": "record what happens at a dispatcher into a log",
    "visualize": "draw such a log as a timeline",
    "convert": "turn a folder of Hugging Face into a checkpoint of GT, or back",
    "key": "make a key for servers, or one for a role or a user of such a key",
    "version": "say the version",
}

#: The commands that are not a program `gt.scripts.COMMAND`.
_MODULES = {
    "demo": "gt.demo.__main__",
    "server": "gt.server.__main__",
    "worker": "gt.worker.__main__",
    "convert": "gt.convert.__main__",
}


def main(argv: list[str] | None = None) -> int:
    """Run a command; return the exit status."""
    command, *rest = (sys.argv[1:] if argv is None else argv) or ["--help"]
    if command == "version":
        print(gt.__version__)
        return 0
    if command in ("-V", "--version"):
        from gt._version import report

        print(report())
        return 0
    if command in ("-h", "--help", "help"):
        print(_usage(), end="")
        return 0
    if command not in _COMMANDS:
        print(f"gt: there is no command '{command}'\n\n{_usage()}", end="", file=sys.stderr)
        return 2
    module = _MODULES.get(command) or f"gt.scripts.{command.replace('-', '_')}"
    return importlib.import_module(module).main(rest)


def _usage() -> str:
    lines = [f"  {command:<12}  {text}" for command, text in _COMMANDS.items()]
    return _USAGE.format(commands="\n".join(lines))


if __name__ == "__main__":
    sys.exit(main())
