"""Run PyTorch's databases of operators and modules on the device "cluster"; report the results.

    python tests/torch_device/run.py --write docs/coverage.md

replaces the section between the marks of the page. An entry passes if all of its tests pass, with
all samples and without computing on the host.
"""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

FOLDER = pathlib.Path(__file__).parent
BEGIN = "<!-- torch device: begin -->"
END = "<!-- torch device: end -->"
KINDS = {
    "compare_cpu": "results as on the CPU",
    "noncontiguous_samples": "with operands in another layout",
    "variant_consistency_eager": "in place and with `out`",
    "fn_grad": "gradients by finite differences",
    "fn_gradgrad": "gradients of gradients",
}


def run(report: pathlib.Path) -> None:
    """Run the tests with all entries."""
    command = [sys.executable, "-m", "pytest", "-q", "--tb=line", "--timeout=300"]
    environment = {**os.environ, "GT_TEST_OPERATORS": "1", "GT_TEST_ALL": "1"}
    environment.pop("GT_TORCH_FALLBACK", None)
    tests = [str(FOLDER / name) for name in ("test_operators.py", "test_torch_modules.py")]
    subprocess.run([*command, f"--junitxml={report}", *tests], env=environment, check=False)


def read(report: pathlib.Path) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Return results by entry and kind of test ("pass", "fail" or a reason), and of modules."""
    pattern = re.compile(rf"test_({'|'.join(KINDS)})_(.*)_cluster_\w+?$")
    found: dict[str, dict[str, str]] = collections.defaultdict(dict)
    modules = []
    for case in ElementTree.parse(report).iter("testcase"):
        skipped = case.find("skipped")
        failed = case.find("failure") is not None or case.find("error") is not None
        state = "fail" if failed else "pass" if skipped is None else skipped.get("message", "")
        if case.get("name", "").startswith("test_module["):
            modules.append(state)
            continue
        kind, entry = pattern.match(case.get("name", "")).groups()
        found[entry][kind] = state
    return found, modules


def is_lacking(reason: str) -> bool:
    """Return whether a test was skipped because the device lacks a feature."""
    return any(of in reason for of in ("the cluster has no", "view the bits", "takes more than"))


def section(found: dict[str, dict[str, str]], modules: list[str]) -> str:
    """Return the section of the page."""
    passing = {
        entry
        for entry, states in found.items()
        if not any(state == "fail" or is_lacking(state) for state in states.values())
    }
    rows = []
    for kind, title in KINDS.items():
        states = [states[kind] for states in found.values() if kind in states]
        ran = [state for state in states if state in ("pass", "fail")]
        rows.append(f"| {title} | {len(ran)} | {ran.count('pass')} |")
    title = "modules: results, gradients and buffers as on the CPU"
    rows.append(f"| {title} | {len(modules)} | {modules.count('pass')} |")
    others = []
    for entry in sorted(found.keys() - passing):
        states = found[entry].values()
        why = next((state for state in states if is_lacking(state)), "")
        failed = [KINDS[kind] for kind, state in found[entry].items() if state == "fail"]
        others.append(f"- `{entry}`: {why.removeprefix('Skipped: ') or ', '.join(failed)}")
    return "\n".join(
        [
            BEGIN,
            "## As a device of PyTorch's",
            "",
            "PyTorch's own tests for devices, on `cluster`, the device of `gt.torch`, with all",
            "samples and nothing computed on the host. "
            f"**{len(passing)} of {len(found)} entries pass all of them.**",
            "",
            "| checked | tests | pass |",
            "| --- | ---: | ---: |",
            *rows,
            "",
            "For random numbers only shapes and dtypes are compared. Tests that fail on the CPU",
            "too are not counted. `make torch-coverage` writes this section. The others are:",
            "",
            *others,
            END,
        ]
    )


def main() -> None:
    """Run the tests, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=pathlib.Path, help="the page to write the section into")
    parser.add_argument("--report", type=pathlib.Path, help="an existing JUnit report")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = options.report or pathlib.Path(folder) / "report.xml"
        if not options.report:
            run(report)
        text = section(*read(report))
    print(text)
    if options.write:
        page = options.write.read_text()
        if BEGIN not in page:
            page = f"{page.rstrip()}\n\n{BEGIN}\n{END}\n"
        before, rest = page.split(BEGIN)
        options.write.write_text(before + text + rest.split(END)[1])


if __name__ == "__main__":
    main()
