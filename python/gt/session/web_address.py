"""Addresses of servers that are reached over the port of their page: `https://HOST[:PORT]`."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from gt.session.shown_address import without_secret

#: A host, which may be an address of IPv6, and its port.
_HOST = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[\w.-]+)(?::(?P<port>\d{1,5}))?", re.ASCII)
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,256}")


@dataclass(frozen=True)
class WebAddress:
    """A server that is reached over the port of its page.

    Args:
        host: the page's `HOST[:PORT]`.
        is_encrypted: whether a reverse proxy adds TLS; only pages of this machine have none.
        token: the page's token, for a server without keys; empty for none.
    """

    host: str
    is_encrypted: bool
    token: str = field(default="", repr=False)

    @property
    def shown(self) -> str:
        """Return the address without the token, for messages."""
        return f"{'https' if self.is_encrypted else 'http'}://{self.host}"

    @property
    def endpoint(self) -> str:
        """Return the address of the WebSocket."""
        return f"{'wss' if self.is_encrypted else 'ws'}://{self.host}/connect"

    @staticmethod
    def parse(text: str) -> WebAddress:
        """Return the parts of an address: that of a page, as browsers take it.

        Raises:
            ConnectionError: the text has another form, or lacks TLS for another machine's page.
        """
        # A token is in no message, and may be where none is expected.
        shown = re.split("[#?]", without_secret(text), maxsplit=1)[0]
        bad = ConnectionError(
            f"'{shown}' is not an address\n  hint: use https://HOST or https://HOST:PORT of a "
            "server's page, with /#token=TOKEN if the server has no keys"
        )
        try:
            parts = urlsplit(text)
        except ValueError:
            raise bad from None
        found = _HOST.fullmatch(parts.netloc)
        port = found and found["port"]
        if found is None or (port and not 1 <= int(port) <= 65535):
            raise bad
        if parts.path not in ("", "/") or parts.query:
            raise bad
        # Another fragment is a view of the page. `act` is the token of those who may act.
        name, _, token = parts.fragment.partition("=")
        if name not in ("token", "act"):
            token = ""
        elif _TOKEN.fullmatch(token) is None:
            raise ConnectionError(
                f"{shown}: what follows #{name}= is no token\n  hint: use the link that `gt "
                "server --web` prints, or the content of its --web-token-file"
            )
        address = WebAddress(parts.netloc, parts.scheme == "https", token)
        if not address.is_encrypted and not _is_loopback(found["host"]):
            raise ConnectionError(
                f"{address.shown}: a page of another machine is reached with TLS only\n  hint: use "
                "https:// and a reverse proxy, or forward the port: ssh -L 8265:127.0.0.1:8265 HOST"
            )
        return address


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
