"""A reverse proxy with TLS: Debian's nginx, as docs/web.md configures it."""

import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
from pages import ROOT

#: The places of the program; it is not in the PATH of every user.
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")

needs_nginx = pytest.mark.skipif(
    NGINX is None or shutil.which("openssl") is None,
    reason="SKIPPED: nginx or openssl is missing; make test-browser installs them",
)

#: How long it may take to start or end, in seconds.
LIMIT = 20

_CONFIG = """
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log {folder}/access.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{server}
}}
"""


def documented_server() -> str:
    """Return the server of the configuration in docs/web.md."""
    page = (ROOT / "docs" / "web.md").read_text()
    (found,) = re.findall(r"^```\n(server \{\n.*?^\})\n```", page, re.DOTALL | re.MULTILINE)
    return found


class Nginx:
    """A proxy before a page, at `localhost`, with a certificate that is its own authority.

    Args:
        folder: where its certificate, configuration and logs are.
        page: the page's `HOST:PORT`.
        forwards_programs: whether it has the location for `gt.connect`.
    """

    def __init__(self, folder: Path, page: str, forwards_programs: bool = True):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.certificate = folder / "certificate.pem"
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"]
        command += ["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=localhost"]
        command += ["-addext", "subjectAltName=DNS:localhost"]
        command += ["-keyout", str(folder / "key.pem"), "-out", str(self.certificate)]
        subprocess.run(command, check=True, timeout=60, capture_output=True)
        server = documented_server()
        if not forwards_programs:
            before, location = server.split("    location = /connect {")
            server = before + location.split("    }\n", 1)[1]
        for documented, here in [
            ("listen 443 ssl", f"listen 127.0.0.1:{self.port} ssl"),
            ("server_name gt.example.com", "server_name localhost"),
            (
                "# ssl_certificate, ssl_certificate_key",
                f"ssl_certificate {self.certificate}; ssl_certificate_key {folder}/key.pem;",
            ),
            ("127.0.0.1:8265", page),
        ]:
            assert documented in server, documented
            server = server.replace(documented, here)
        (folder / "config").write_text(_CONFIG.format(folder=folder, server=server))
        self._process: subprocess.Popen | None = None

    @property
    def address(self) -> str:
        return f"https://localhost:{self.port}"

    @property
    def log(self) -> str:
        path = self.folder / "error.log"
        return path.read_text() if path.exists() else ""

    def start(self) -> None:
        assert NGINX is not None
        command = [NGINX, "-p", str(self.folder), "-e", f"{self.folder}/error.log"]
        self._process = subprocess.Popen(
            [*command, "-c", str(self.folder / "config")],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + LIMIT
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                assert self._process.poll() is None and time.monotonic() < until, self.log
                time.sleep(0.02)

    def stop(self) -> None:
        """End it, with all connections."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(LIMIT)
            self._process = None

    def __enter__(self) -> "Nginx":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
