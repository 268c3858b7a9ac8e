"""Addresses of servers behind their pages, and what failures to connect say."""

import gt
import pytest
from gt.session.tunnel import is_tunnel, open_tunnel
from gt.session.web_address import WebAddress
from gt.session.web_failure import _KINDS, explain_failure
from processes import embedded_only, one_engine_only, run_gt

pytestmark = [embedded_only, one_engine_only]

TOKEN = "0123456789abcdef"


@pytest.mark.parametrize(
    "text, endpoint, token",
    [
        ("https://gt.example.com", "wss://gt.example.com/connect", ""),
        ("https://gt.example.com/", "wss://gt.example.com/connect", ""),
        ("https://gt.example.com:8443/#/mine", "wss://gt.example.com:8443/connect", ""),
        (f"https://h/#token={TOKEN}", "wss://h/connect", TOKEN),
        (f"https://h/#act={TOKEN}", "wss://h/connect", TOKEN),
        ("http://127.0.0.1:8265", "ws://127.0.0.1:8265/connect", ""),
        (f"http://localhost:8265#token={TOKEN}", "ws://localhost:8265/connect", TOKEN),
        ("http://[::1]:8265/", "ws://[::1]:8265/connect", ""),
    ],
)
def test_addresses_of_pages(text, endpoint, token):
    assert is_tunnel(text)
    address = WebAddress.parse(text)
    assert (address.endpoint, address.token) == (endpoint, token)
    assert TOKEN not in address.shown and TOKEN not in repr(address)


@pytest.mark.parametrize(
    "text, words",
    [
        ("https://", "is not an address"),
        ("https://h:0", "is not an address"),
        ("https://h:99999", "is not an address"),
        ("https://h:port", "is not an address"),
        ("https://[::1", "is not an address"),
        ("https://ada:secret@h", "is not an address"),
        ("https://h/page", "is not an address"),
        (f"https://h/?token={TOKEN}", "is not an address"),
        ("https://h\r\nX: y", "is not an address"),
        ("https://a b", "is not an address"),
        ("https://h/#token=short", "what follows #token= is no token"),
        (f"https://h/#token={TOKEN}&x", "what follows #token= is no token"),
        ("https://h/#act=short", "what follows #act= is no token"),
        ("http://gt.example.com", "is reached with TLS only"),
        ("http://10.0.0.1:8265", "is reached with TLS only"),
    ],
)
def test_bad_addresses_of_pages(text, words):
    with pytest.raises(ConnectionError) as caught:
        open_tunnel(text)
    what, hint = str(caught.value).rsplit("\n", 1)
    assert words in what and hint.startswith("  hint: ")
    assert "token=short" not in what and TOKEN not in what


@pytest.mark.parametrize(
    "address",
    [
        "https://ada:secret@h",
        "https://ada:se/cre#t?secret@h:1",
        "http://ada:secret@127.0.0.1:1/#token=short",
        "ssh://ada:secret@login",
        "ssh://ada:secret@login:22/h:1",
        "tcp://ada:secret@h:1",
        "ada:secret@h:1",
    ],
)
def test_errors_show_no_password(address):
    for given in ({}, {"workers": 2}):
        with pytest.raises((ConnectionError, ValueError)) as caught:
            gt.Session(address, **given)
        assert "ada:...@" in str(caught.value) and "secret" not in str(caught.value)
    done = run_gt("top", address, "--pid", "1")
    assert done.returncode != 0 and "secret" not in done.stdout + done.stderr, done


def test_without_the_package(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConnectionError, match="websockets, 15 or later.*\n  hint: pip install"):
        open_tunnel("https://gt.example.com")


@pytest.mark.parametrize(
    "status, token, words",
    [
        (401, "", "asks for its token"),
        (401, TOKEN, "has another token"),
        (403, "", "--web-name HOST"),
        (404, "", "`gt server --web`"),
        (400, "", "Upgrade and Connection"),
        (426, "", "Upgrade and Connection"),
        (429, "", "no further connection"),
        (302, "", "https://sign-in.example/?a b"),
        (502, "", "no server answers behind it"),
        (504, "", "no server answers behind it"),
        (200, "", "status 200"),
    ],
)
def test_each_status_says_what_to_do(status, token, words):
    address = WebAddress("gt.example.com", True, token)
    failure = {"kind": "status", "status": status, "to": "https://sign-in.example/?a\nb"}
    _check(explain_failure(failure, address), words)


@pytest.mark.parametrize("kind", _KINDS)
def test_each_failure_says_what_to_do(kind):
    failure = {"kind": kind, "text": "the\x1b[31m system's\nwords" + 1000 * "."}
    _check(explain_failure(failure, WebAddress("h", True, TOKEN)), "the [31m system's words")


def _check(message: str, words: str) -> None:
    what, hint = message.split("\n")
    assert what.startswith("https://") and hint.startswith("  hint: ")
    assert words in message and TOKEN not in message
    assert message.replace("\n", "").isprintable() and len(message) < 600
