"""The parts of a release: version, workflows, image, compose file, issue forms, citation.

`make check-release` installs the linters of these files; without them such tests are skipped.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import gt
import pytest
from gt.engines import gpus
from processes import run_gt

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[0-9]*.yml"))

#: Set by `make check-release`, where a test whose linter is missing fails.
REQUIRED = os.environ.get("GT_TEST_RELEASE") == "1"


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def only(pattern: str, path: str):
    """Return the one match of a pattern in a file."""
    found = re.findall(pattern, text(path), re.MULTILINE)
    assert len(found) == 1, (pattern, path, found)
    return found[0]


def skip(reason: str) -> None:
    """Skip a test, or fail in `make check-release`."""
    if REQUIRED:
        pytest.fail(reason)
    pytest.skip(f"{reason}: `make check-release` installs it")


def parsed(path: Path):
    """Return the contents of a YAML file."""
    try:
        import yaml
    except ImportError:
        skip("PyYAML is not installed")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def check_by(tool: str, *args: str) -> None:
    """Check that a linter finds nothing."""
    folder = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    program = shutil.which(tool, path=environment["PATH"])
    if program is None:
        skip(f"{tool} is not installed")
    done = subprocess.run(
        [program, *args], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


# ---- versions in one place --------------------------------------------------------------------

VERSION = only(r'^version = "(.+)"$', "Cargo.toml")


def test_the_version_is_that_of_the_workspace():
    assert gt.__version__ == VERSION
    assert only(r'^dynamic = \["(\w+)"\]$', "pyproject.toml") == "version"
    for manifest in sorted(ROOT.glob("crates/*/Cargo.toml")):
        assert "\nversion.workspace = true\n" in manifest.read_text(), manifest
    assert only(r'^version = "(.+)"$', "fuzz/Cargo.toml") == VERSION, "it is not in the workspace"


def test_the_version_is_not_repeated():
    places = ["CITATION.cff", "Dockerfile", "compose.yaml", "pyproject.toml", "zensical.toml"]
    places += [str(path.relative_to(ROOT)) for path in (*WORKFLOWS, *FORMS)]
    for path in (*places, "docs/support.md", "SECURITY.md", "README.md", "docs/installation.md"):
        assert not re.search(rf"(?<![\d.]){re.escape(VERSION)}(?![\d.])", text(path)), path


def test_the_readme_and_the_changelog_are_of_this_version():
    minor = ".".join(VERSION.split(".")[:2])
    assert only(r"This is version (\d+\.\d+)", "README.md") == minor
    assert re.search(r"^## \[(.+?)\]", text("CHANGELOG.md"), re.MULTILINE)[1] == VERSION


# ---- supported versions ------------------------------------------------------------------------


def oldest() -> dict[str, str]:
    """Return the oldest versions that docs/support.md names, by the first column of its table."""
    rows = re.findall(r"^\| ([^|]+) \| (\d+\.\d+) \| ", text("docs/support.md"), re.MULTILINE)
    return {name.split(",")[0] if "engine" not in name else "engine": old for name, old in rows}


def test_the_oldest_supported_versions_match_the_declarations():
    python = only(r'^requires-python = ">=(.+)"$', "pyproject.toml")
    assert oldest() == {
        "Python": python,
        "NumPy": only(r'^dependencies = \["numpy>=(.+)"\]$', "pyproject.toml"),
        "engine": ".".join(map(str, gpus.OLDEST_PYTORCH)),
        "PyTorch": only(r'^torch = \["torch>=(.+)"\]$', "pyproject.toml"),
        "Rust": only(r'^rust-version = "(.+)"$', "Cargo.toml"),
    }
    short = python.replace(".", "")
    assert only(r'"abi3-py(\d+)"', "crates/gt-python/Cargo.toml") == short
    assert only(r'^target-version = "py(\d+)"$', "pyproject.toml") == short
    assert only(r'^python_version = "(.+)"$', "pyproject.toml") == python


@pytest.mark.parametrize("path", ["README.md", "docs/installation.md"])
@pytest.mark.parametrize("name", ["Python", "Rust"])
def test_pages_name_the_oldest_supported_versions(path, name):
    named = re.findall(rf"\b{name}\W+(\d+\.\d+)\*{{0,2}} or newer", text(path))
    assert set(named) <= {oldest()[name]}, (path, named)
    assert named or path == "README.md", path


def test_the_tested_releases_of_pytorch_are_listed():
    named = re.search(
        r"^\| PyTorch, for `gt.torch` \| [\d.]+ \| ([\d., ]+) \|", text("docs/support.md"), re.M
    )
    releases = named[1].split(", ")
    assert only(r"^RELEASES := (.+)$", "Makefile").split() == releases
    assert (
        re.findall(r"\d+\.\d+", only(r"^TESTED = \((.+)\)$", "python/gt/torch/__init__.py"))
        == releases
    )


# ---- workflows --------------------------------------------------------------------------------


def test_workflows_pass_actionlint():
    check_by("actionlint", *map(str, WORKFLOWS))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_have_few_rights_and_limits(path):
    workflow = parsed(path)
    triggers = workflow[True]  # YAML 1.1 reads the key `on` as a boolean.
    assert "pull_request_target" not in triggers and "workflow_run" not in triggers
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["cancel-in-progress"]
    for name, job in workflow["jobs"].items():
        assert 0 < job["timeout-minutes"] <= 180, name
        # A job with write or identity permissions has no other task.
        writes = {right for right, how in job["permissions"].items() if how != "read"}
        allowed = {"publish": {"id-token", "attestations"}, "release": {"contents"}}
        assert writes == allowed.get(name, set()), name
        for step in job["steps"]:
            action, _, version = step.get("uses", "a@v1").partition("@")
            assert re.fullmatch(r"(release/)?v\d+|[0-9a-f]{40}", version), step
            if action == "actions/checkout":
                assert step["with"]["persist-credentials"] is False, name


def test_only_tags_are_published_after_all_wheels_were_built_and_tried():
    jobs = parsed(ROOT / ".github" / "workflows" / "wheels.yml")["jobs"]
    publish = jobs["publish"]
    assert "refs/tags/v" in publish["if"] and publish["environment"] == "pypi"
    assert set(publish["needs"]) == {"linux", "macos", "sdist", "try"}
    assert all(jobs[name]["needs"] == "version" for name in ("linux", "macos", "sdist"))
    uses = [step["uses"].split("@")[0] for step in publish["steps"]]
    assert uses[-2:] == ["actions/attest-build-provenance", "pypa/gh-action-pypi-publish"]


def test_wheels_are_tried_with_the_supported_versions_of_python():
    jobs = parsed(ROOT / ".github" / "workflows" / "wheels.yml")["jobs"]
    (setup,) = (step for step in jobs["try"]["steps"] if "setup-python" in step.get("uses", ""))
    minors = sorted(
        int(version.split(".")[1]) for version in setup["with"]["python-version"].split()
    )
    first, last = only(r"^\| Python \| [\d.]+ \| 3\.(\d+) to 3\.(\d+) \|", "docs/support.md")
    assert minors == list(range(int(first), int(last) + 1))


def test_the_tests_that_workflows_name_exist():
    workflow = parsed(ROOT / ".github" / "workflows" / "tests.yml")
    for path in workflow["env"]["WITHOUT_A_SERVER"].split():
        assert (ROOT / path).exists(), path


# ---- image and compose file -------------------------------------------------------------------


def test_the_dockerfile_passes_hadolint():
    check_by("hadolint", "Dockerfile")


def test_the_image_does_not_run_as_root_and_has_nothing_but_gt():
    final = text("Dockerfile").split("\nFROM ")[-1]
    assert int(re.search(r"^USER (\d+):\d+$", final, re.MULTILINE)[1]) >= 10_000
    assert 'ENTRYPOINT ["gt"]' in final and "\nHEALTHCHECK" not in final
    assert not re.search(r"apt-get|pip install|ADD |COPY (?!--from=)", final)


def test_the_compose_file_is_a_server_with_two_workers():
    services = parsed(ROOT / "compose.yaml")["services"]
    assert set(services) == {"server", "worker"}
    server, worker = services["server"], services["worker"]
    assert worker["deploy"]["replicas"] == 2 and worker["image"] == server["image"]
    assert server["healthcheck"] and "healthcheck" not in worker
    assert all(port.startswith("127.0.0.1:") for port in server["ports"])
    uid = only(r"^USER (\d+):\d+$", "Dockerfile")
    for service, role in ((server, "cluster"), (worker, "worker")):
        (secret,) = service["secrets"]
        assert secret["source"] == f"{role}_key" and secret["uid"] == uid
        assert f"--key-file=/run/secrets/{secret['target']}" in service["command"]


def test_the_options_in_the_compose_file_exist():
    services = parsed(ROOT / "compose.yaml")["services"]
    commands = [service["command"] for service in services.values()]
    commands.append(services["server"]["healthcheck"]["test"][2:])
    for name, *options in commands:
        known = run_gt(name, "--help").stdout
        for option in options:
            assert re.search(rf"{option.split('=')[0]}(?![\w-])", known), (name, option)


# ---- issues and citation ----------------------------------------------------------------------


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_issue_forms_ask_for_the_version(path):
    form = parsed(path)
    ids = [field["id"] for field in form["body"]]
    assert form["name"] and form["description"] and len(set(ids)) == len(ids)
    (version,) = (field for field in form["body"] if field["id"] == "version")
    assert version["attributes"]["label"] == "Output of `gt --version`"
    assert version["validations"]["required"]


def test_the_citation_file_is_complete():
    citation = parsed(ROOT / "CITATION.cff")
    assert str(citation["cff-version"]) == "1.2.0" and citation["type"] == "software"
    assert citation["title"] and citation["message"] and citation["authors"]
    assert citation["license"] == only(r'^license = "(.+)"$', "Cargo.toml")
