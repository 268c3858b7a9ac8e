"""Tunnels to servers that this machine does not reach itself: through ssh, or a page's port.

    address = open_tunnel("ssh://login.example.org/node7:9000")
    gt.connect(address)

A tunnel is a private folder with a socket, and the file `address` that names it.
"""

from __future__ import annotations

import os
import threading

from gt.session.ssh_address import SshAddress
from gt.session.ssh_tunnel import SshTunnel
from gt.session.web_address import WebAddress
from gt.session.web_tunnel import WebTunnel


def is_tunnel(address: object) -> bool:
    """Return whether an address is one for :func:`open_tunnel`."""
    return isinstance(address, str) and address.startswith(("ssh://", "https://", "http://"))


def open_tunnel(address: str) -> str:
    """Return the local address of a server that a tunnel reaches; it ends with this process.

    The same address yields the same tunnel; a forked child makes its own.

    Args:
        address: `ssh://[USER@]LOGIN[:PORT]/HOST:PORT`, or `ssh://LOGIN/file:///PATH` of a file
            there in which the server publishes its address, or `ssh://LOGIN` for its port 9000;
            or `https://HOST[:PORT]` of a server's page, with `/#token=TOKEN` if the server has no
            keys.

    Returns:
        `file:///PATH` for `gt.connect` and the tools; the key, if ssh found one, is beside it.

    Raises:
        ConnectionError: the address is not valid, the login or the page refuses, or no server
            answers.
    """
    is_ssh = address.startswith("ssh://")
    parsed = SshAddress.parse(address) if is_ssh else WebAddress.parse(address)
    with _LOCK:
        if address in _TUNNELS:
            _TUNNELS[address].renew()
        elif isinstance(parsed, SshAddress):
            _TUNNELS[address] = SshTunnel(address, parsed)
        else:
            _TUNNELS[address] = WebTunnel(parsed)
        return _TUNNELS[address].address


def close_tunnel(address: str) -> None:
    """Close a tunnel, if it is open."""
    with _LOCK:
        tunnel = _TUNNELS.pop(address, None)
    if tunnel is not None:
        tunnel.close()


def _forget_all() -> None:
    global _LOCK
    _LOCK = threading.Lock()
    for tunnel in _TUNNELS.values():
        tunnel.forget()
    _TUNNELS.clear()


_LOCK = threading.Lock()
_TUNNELS: dict[str, SshTunnel | WebTunnel] = {}
os.register_at_fork(after_in_child=_forget_all)
