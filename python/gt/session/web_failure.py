"""What a failure to connect through a page means, and what to do about it."""

from __future__ import annotations

from typing import Any

from gt.session.web_address import WebAddress

#: What a page or a proxy answers, beside the statuses that say more.
_STATUSES = {
    403: (
        "the page is not served under this name (status 403)",
        "start it with `gt server --web PORT --web-name HOST`",
    ),
    404: (
        "the page there leads to no server (status 404)",
        "it must be that of `gt server --web`, in this version of GT",
    ),
    429: (
        "the page accepts no further connection at the moment (status 429)",
        "try again in a moment, or close connections through it",
    ),
    400: (
        "a proxy there does not forward WebSockets (status 400)",
        "it must pass the headers Upgrade and Connection for /connect",
    ),
    426: (
        "a proxy there does not forward WebSockets (status 426)",
        "it must pass the headers Upgrade and Connection for /connect",
    ),
}

#: Other failures, with what to do; the words of the system are between.
_KINDS = {
    "refused": ("nothing answers there", "does `gt server --web` run, and the proxy before it?"),
    "network": ("nothing answers there", "check the name and the network"),
    "timeout": ("nothing answers there", "check the name and the network"),
    "certificate": (
        "its certificate is not accepted",
        "SSL_CERT_FILE=FILE names the certificates to trust, such as that of your own authority",
    ),
    "tls": ("there is no TLS", "a reverse proxy provides it; the page itself has none"),
    "proxy": (
        "the proxy on the way fails",
        "HTTPS_PROXY names it; NO_PROXY=HOST reaches that host without one",
    ),
    "silent": (
        "the server behind the page does not speak",
        "does the proxy forward WebSockets at once, without buffering?",
    ),
    "ended": ("the program that connects to it was killed", "try again"),
    "other": (
        "no page of `gt server --web` answers there",
        "the address of the server itself is HOST:PORT, without https:// or http://",
    ),
}


def explain_failure(failure: dict[str, Any], address: WebAddress) -> str:
    """Return what a failure means, on one line, and what to do on another.

    Args:
        failure: `kind`, `text`, `status` and `to`, as `web_carrier` describes it.
        address: what was connected to.
    """
    if failure["kind"] == "status":
        what, hint = _explain_status(failure["status"], failure["to"], address)
    else:
        what, hint = _KINDS[failure["kind"]]
        text = _on_one_line(failure.get("text", ""))
        what = f"{what}: {text}" if text else what
    return f"{address.shown}: {what}\n  hint: {hint}"


def _explain_status(status: int, to: str, address: WebAddress) -> tuple[str, str]:
    if status == 401 and address.token:
        return (
            "the page has another token (status 401)",
            "a new one is made at each start: use the link that `gt server --web` prints, with "
            "--web-actions that to act",
        )
    if status == 401:
        return (
            "the page asks for its token (status 401): its server has no keys",
            f"use the link that `gt server --web` prints: {address.shown}/#token=TOKEN",
        )
    if status in _STATUSES:
        return _STATUSES[status]
    if 300 <= status < 400:
        return (
            f"it leads to another address (status {status}): {_on_one_line(to)}",
            "use that one; a proxy that asks people to sign in must let /connect pass",
        )
    if status in (502, 503, 504):
        return (
            f"no server answers behind it (status {status})",
            "does `gt server --web` run, and does the proxy lead to its page?",
        )
    return f"no page of `gt server --web` answers there (status {status})", "check the address"


def _on_one_line(text: str) -> str:
    """Return a text that may be of a stranger, so that it can be shown."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:300]).strip()
