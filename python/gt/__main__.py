"""The command `gt`, also run as `python -m gt`."""

import difflib
import importlib
import sys

import gt

_USAGE = """usage: gt COMMAND [options]

commands:
{commands}

`gt COMMAND --help` lists the options of a command. `gt --version` prints version, commit, engines
and features: include it in bug reports.
"""

#: The description of each command in `gt --help`.
_COMMANDS = {
    "demo": "train on handwritten digits, in this process and on a server",
    "server": "run a dispatcher that workers and clients connect to",
    "worker": "run a worker that serves a dispatcher, or drain one",
    "top": "show the state of a dispatcher, its workers and its sessions, live",
    "web": "serve a web page that shows the same",
    "sessions": "list your sessions, end them, pause and resume them",
    "published": "list what is published on a server",
    "weight": "set the weight of a user among others",
    "explain-wait": "explain what a session waits for, and which sessions make it wait",
    "trace": "record the events of a dispatcher into a log",
    "visualize": "draw such a log as a timeline",
    "record": "run a program, and record its session's stream into a file",
    "replay": "run such a stream again, anywhere, and compare its values",
    "convert": "convert a Hugging Face model folder into a GT checkpoint, or back",
    "cluster": "start a server with workers here or by a scheduler, show it, end it",
    "key": "make a server key, or derive a key for a role or a user from one",
    "version": "print the version",
}

#: The modules of commands that are not `gt.scripts.COMMAND`.
_MODULES = {
    "demo": "gt.demo.__main__",
    "server": "gt.server.__main__",
    "worker": "gt.worker.__main__",
    "convert": "gt.convert.__main__",
    "cluster": "gt.cluster.command",
}


def main(argv: list[str] | None = None) -> int:
    """Run a command; return the exit status."""
    command, *rest = (sys.argv[1:] if argv is None else argv) or ["--help"]
    if command in ("version", "help") and rest:
        print(f"gt: `gt {command}` takes no arguments, it got {' '.join(rest)}", file=sys.stderr)
        return 2
    if command == "version":
        print(gt.__version__)
        return 0
    if command in ("-V", "--version"):
        from gt.scripts.version import report

        print(report())
        return 0
    if command in ("-h", "--help", "help"):
        print(_usage(), end="")
        return 0
    if command not in _COMMANDS:
        near = difflib.get_close_matches(command, _COMMANDS, n=1)
        hint = f"\n  hint: gt {near[0]}" if near else ""
        text = f"gt: there is no command '{command}'{hint}\n\n{_usage()}"
        print(text, end="", file=sys.stderr)
        return 2
    module = _MODULES.get(command) or f"gt.scripts.{command.replace('-', '_')}"
    return importlib.import_module(module).main(rest)


def _usage() -> str:
    lines = [f"  {command:<12}  {text}" for command, text in _COMMANDS.items()]
    return _USAGE.format(commands="\n".join(lines))


if __name__ == "__main__":
    sys.exit(main())
