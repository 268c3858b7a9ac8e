"""SLURM in a temporary folder: a controller and several nodes on this machine.

Nothing of a SLURM that the machine may have is used or changed: ports are free ones, and the
configuration, the key and all state are in the folder.
"""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

#: The programs of SLURM and of its authentication that a test needs.
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "sinfo")

#: How long the daemons may take to start, or to end, in seconds.
LIMIT = 30.0

_CONFIGURATION = """\
ClusterName=gt
SlurmctldHost=localhost
SlurmctldPort={controller}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=1,sched_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
KillWait={kill_wait}
InactiveLimit=0
MinJobAge=60
JobRequeue=1
GresTypes=gpu
SlurmdParameters=config_overrides
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=short Nodes=ALL MaxTime=2 State=UP PriorityTier=1
PartitionName=low Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=20
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=2 PreemptMode=OFF
"""


def missing() -> str | None:
    """Return why SLURM cannot be started here, or None."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    absent = [program for program in PROGRAMS if shutil.which(program, path=path) is None]
    if absent:
        return f"SLURM is not installed: {', '.join(absent)} not found (apt install slurmctld ...)"
    if os.geteuid() != 0:
        return "SLURM's daemons are started as root alone"
    return None


class SlurmSystem:
    """A controller and nodes with two cores and two GPUs (which are no GPUs) each."""

    def __init__(self, folder: Path, nodes: int = 4, kill_wait: int = 3):
        """Write the configuration; `start` starts the daemons."""
        self.folder, self.count = folder, nodes
        ports = _free_ports(nodes + 1)
        lines = [
            f"NodeName=n{at} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=2 "
            "RealMemory=4000 Gres=gpu:2 State=UNKNOWN"
            for at, port in enumerate(ports[1:], 1)
        ]
        text = _CONFIGURATION.format(
            folder=folder, controller=ports[0], nodes="\n".join(lines), kill_wait=kill_wait
        )
        (folder / "slurm.conf").write_text(text)
        (folder / "gres.conf").write_text(
            "".join(
                f"NodeName=n{at} Name=gpu File={device}\n"
                for at in range(1, nodes + 1)
                for device in ("/dev/null", "/dev/zero")
            )
        )
        (folder / "state").mkdir()
        self._daemons: list[subprocess.Popen[bytes]] = []
        self.environment = {
            "SLURM_CONF": str(folder / "slurm.conf"),
            "PATH": os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]),
        }

    def start(self) -> None:
        """Start the daemons; return when all nodes are idle."""
        folder, conf = self.folder, str(self.folder / "slurm.conf")
        key = folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self._run_daemon(
            "munged", "--foreground", "--force", f"--key-file={key}",
            f"--socket={folder}/munge.sock", f"--pid-file={folder}/munged.pid",
            f"--log-file={folder}/munged.log", f"--seed-file={folder}/munged.seed",
        )  # fmt: skip
        _wait("munged to listen", (folder / "munge.sock").exists, self.logs)
        self._run_daemon("slurmctld", "-D", "-c", "-f", conf)
        for at in range(1, self.count + 1):
            (folder / f"spool-n{at}").mkdir()
            self._run_daemon("slurmd", "-D", "-N", f"n{at}", "-f", conf)
        _wait("the nodes to be idle", self._are_idle, self.logs)

    def run(self, *command: str, check: bool = True) -> str:
        """Run a command of SLURM; return what it prints."""
        done = subprocess.run(
            command, env={**os.environ, **self.environment}, capture_output=True, text=True,
            timeout=LIMIT,
        )  # fmt: skip
        assert not check or done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def active_jobs(self) -> list[str]:
        """Return the IDs of the jobs that are pending, running or completing."""
        return self.run("squeue", "--noheader", "--format=%A").split()

    def logs(self) -> str:
        """Return the last lines of the daemons' logs."""
        return "\n".join(
            f"{path.name}:\n" + "\n".join(path.read_text(errors="replace").splitlines()[-20:])
            for path in sorted(self.folder.glob("*.log"))
        )

    def stop(self) -> None:
        """Cancel all jobs, and end the daemons."""
        if self._daemons:
            for job in self.run("squeue", "--noheader", "--format=%A", check=False).split():
                self.run("scancel", "--full", "--signal=KILL", job, check=False)
                self.run("scancel", job, check=False)
            until = time.monotonic() + LIMIT / 2
            while time.monotonic() < until and self.run(
                "squeue", "--noheader", "--format=%A", check=False
            ):
                time.sleep(0.1)
        for daemon in reversed(self._daemons):
            daemon.terminate()
            try:
                daemon.wait(LIMIT)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self._daemons.clear()

    def _run_daemon(self, *command: str) -> None:
        with (self.folder / f"{command[0]}.out").open("ab") as out:
            daemon = subprocess.Popen(
                command, env={**os.environ, **self.environment}, stdout=out, stderr=out,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        self._daemons.append(daemon)

    def _are_idle(self) -> bool:
        done = self.run(
            "sinfo", "--noheader", "--Node", "--format=%N %t", "-p", "main", check=False
        )
        return sum(line.endswith(" idle") for line in done.splitlines()) == self.count


def _free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def _wait(what: str, is_so, words, limit: float = LIMIT) -> None:
    until = time.monotonic() + limit
    while not is_so():
        assert time.monotonic() < until, f"waited {limit:g} s for {what}\n{words()}"
        time.sleep(0.05)


def processes_with(text: str) -> dict[int, str]:
    """Return the command lines of the living processes that have a text in them, by ID."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if text in command and state != "Z":
            found[int(entry.name)] = command
    return found


def environment_of(pid: int) -> Mapping[str, str]:
    """Return the environment with which a process was started."""
    entries = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def names_of(commands: Mapping[int, str]) -> Sequence[str]:
    """Return the command lines, for messages."""
    return [f"{pid}: {command}" for pid, command in commands.items()]
