"""The page, and programs, behind a reverse proxy with TLS, as docs/web.md configures it."""

import http.client
import json
import ssl
import subprocess
import time
from contextlib import contextmanager

import gt
import pytest
from nginx import Nginx, needs_nginx
from processes import embedded_only, linux_only, one_engine_only, run_gt
from ssh_labs import compute
from training import TRAINING, Training
from tunnels import lab, needs_websockets

pytestmark = [needs_nginx, embedded_only, one_engine_only, linux_only]


@pytest.fixture(scope="module")
def served():
    """A server with two workers, whose page a proxy serves."""
    with lab(2, "--web-name", "localhost") as opened:
        yield opened


@pytest.fixture(scope="module")
def nginx(served, tmp_path_factory):
    page = served.page.base.removeprefix("http://")
    with Nginx(tmp_path_factory.mktemp("nginx"), page) as proxy:
        yield proxy


@pytest.fixture
def trusted(nginx, monkeypatch):
    """Have programs trust the proxy's certificate."""
    monkeypatch.setenv("SSL_CERT_FILE", str(nginx.certificate))


@contextmanager
def answer(nginx: Nginx, path: str, **headers: str):
    """Yield what the proxy answers."""
    context = ssl.create_default_context(cafile=str(nginx.certificate))
    connection = http.client.HTTPSConnection("localhost", nginx.port, context=context, timeout=60)
    try:
        connection.request("GET", path, headers=headers)
        yield connection.getresponse()
    finally:
        connection.close()


def test_the_page_behind_the_proxy(served, nginx):
    with answer(nginx, "/") as start:
        assert start.status == 401 and b"sign-in.js" in start.read()
    bearer = f"Bearer {served.page.token}"
    with answer(nginx, "/sign-in", Authorization=bearer, Origin=nginx.address) as signed_in:
        cookie = signed_in.getheader("Set-Cookie")
        assert signed_in.status == 204
    name, *attributes = cookie.lower().split("; ")
    assert {"secure", "httponly", "samesite=strict"} <= set(attributes), cookie
    cookie = cookie.split(";")[0]
    assert name == cookie.lower()
    with answer(nginx, "/", Cookie=cookie) as page:
        assert page.status == 200 and b"main.js" in page.read()
        assert "default-src 'none'" in page.getheader("Content-Security-Policy")
    with answer(nginx, "/metrics", Authorization=bearer) as metrics:
        assert metrics.status == 200 and b"gt_workers 2.0" in metrics.read()
    with answer(nginx, "/metrics", Cookie=cookie, Origin="https://evil.example") as refused:
        assert refused.status == 403
    # Updates arrive one by one: the proxy does not collect them.
    with answer(nginx, "/events", Cookie=cookie, Origin=nginx.address) as events:
        found = []
        while len(found) < 3:
            line = events.readline()
            assert line, "the stream has ended"
            if line.startswith(b"data: "):
                found.append(json.loads(line[6:])["seconds"])
        assert found[0] < found[1] < found[2]


@needs_websockets
def test_programs_behind_the_proxy(served, nginx, trusted, monkeypatch):
    monkeypatch.setenv("GT_KEY", served.key.read_text())
    direct, through = (Training(TRAINING, of, 30) for of in (served.address, nginx.address))
    assert direct.end() == through.end()
    assert direct.errors == through.errors == []
    done = run_gt("top", "--once", nginx.address)
    assert (done.returncode, done.stderr) == (0, "") and "w1" in done.stdout
    # A link of the page, as browsers have it, is an address, too.
    with gt.Session(f"{nginx.address}/#/workers", key_file=served.key):
        assert (gt.ones(3) + 1).tolist() == [2, 2, 2]


@needs_websockets
def test_a_proxy_that_restarts_is_waited_for(served, nginx, trusted):
    user = served.user(nginx.address)
    try:
        assert compute(user) == 3
        nginx.stop()
        user.stdin.write("\n")
        user.stdin.flush()
        # Longer than a client waits for a server that is gone.
        time.sleep(4)
        nginx.start()
        assert float(user.stdout.readline()) == 6
    finally:
        user.kill()
        user.communicate()


@needs_websockets
def test_a_server_that_is_gone_is_not_waited_for_behind_a_proxy(tmp_path, monkeypatch):
    with lab(1, "--web-name", "localhost") as gone:
        page = gone.page.base.removeprefix("http://")
        with Nginx(tmp_path / "nginx", page) as proxy:
            monkeypatch.setenv("SSL_CERT_FILE", str(proxy.certificate))
            user = gone.user(proxy.address, stderr=subprocess.PIPE)
            try:
                assert compute(user) == 3
                gone.server.kill()
                _, errors = user.communicate("\n", timeout=60)
                assert user.returncode == 1, errors
                assert "nothing listens at its address any more" in errors
            finally:
                user.kill()
                user.communicate()
            assert "no server answers behind it (status 502)" in refusal(proxy.address)


def refusal(address: str) -> str:
    """Return the error of connecting to an address, which is two lines."""
    with pytest.raises(ConnectionError) as caught:
        gt.Session(address)
    message = str(caught.value)
    assert message.startswith(f"{address}: ") and message.count("\n  hint: ") == 1, message
    return message.split("\n")[0]


@needs_websockets
def test_what_is_wrong_on_the_way_is_told(served, nginx, tmp_path, monkeypatch):
    message = refusal(nginx.address)
    assert "its certificate is not accepted: self-signed certificate" in message
    monkeypatch.setenv("SSL_CERT_FILE", str(nginx.certificate))
    message = refusal(nginx.address.replace("localhost", "127.0.0.1"))
    assert "its certificate is not accepted" in message and "127.0.0.1" in message
    assert "there is no TLS" in refusal(served.page.base.replace("http://", "https://"))
    page = served.page.base.removeprefix("http://")
    with Nginx(tmp_path / "other", page, forwards_programs=False) as other:
        monkeypatch.setenv("SSL_CERT_FILE", str(other.certificate))
        assert "does not forward WebSockets (status 426)" in refusal(other.address)
    assert "nothing answers there" in refusal(other.address)
    assert "nothing answers there" in refusal("https://no-such-host.invalid")


@needs_websockets
def test_the_proxy_of_the_laptops_network_is_used(served, nginx, trusted, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    assert "nothing answers there" in refusal(nginx.address)
    monkeypatch.setenv("NO_PROXY", "localhost")
    with gt.Session(nginx.address, key_file=served.key):
        assert (gt.ones(3) + 1).tolist() == [2, 2, 2]
