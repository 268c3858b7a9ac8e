"""The API server's side of a port forward: channels in a websocket."""

import base64
import hashlib
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_BINARY, _CLOSE, _PING, _PONG = 2, 8, 9, 10


def serve_forward(handler: BaseHTTPRequestHandler, port: int, target: int) -> None:
    """Forward the port of a pod, to a port of this machine, until one side ends."""
    key = handler.headers["Sec-WebSocket-Key"].encode()
    accepted = base64.b64encode(hashlib.sha1(key + _GUID).digest()).decode()
    handler.send_response(101)
    handler.send_header("Upgrade", "websocket")
    handler.send_header("Connection", "Upgrade")
    handler.send_header("Sec-WebSocket-Accept", accepted)
    handler.send_header("Sec-WebSocket-Protocol", "v4.channel.k8s.io")
    handler.end_headers()
    handler.wfile.flush()
    try:
        pod = socket.create_connection(("127.0.0.1", target), 10)
    except OSError:
        return
    pod.settimeout(None)
    lock = threading.Lock()
    for channel in (0, 1):
        _send(handler, lock, bytes([channel]) + struct.pack("<H", port))

    def back() -> None:
        try:
            while piece := pod.recv(1 << 16):
                _send(handler, lock, b"\0" + piece)
        except OSError:
            pass
        try:
            _send(handler, lock, b"", _CLOSE)
            handler.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    thread = threading.Thread(target=back, daemon=True)
    thread.start()
    try:
        while (frame := _receive(handler)) is not None:
            kind, content = frame
            if kind == _CLOSE:
                break
            if kind == _PING:
                _send(handler, lock, content, _PONG)
            if kind == _BINARY and content[:1] == b"\0":
                pod.sendall(content[1:])
    except OSError:
        pass
    try:
        pod.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    thread.join(10)
    pod.close()


def _send(handler, lock, content: bytes, kind: int = _BINARY) -> None:
    size = len(content)
    if size < 126:
        head = struct.pack("!BB", 0x80 | kind, size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", 0x80 | kind, 126, size)
    else:
        head = struct.pack("!BBQ", 0x80 | kind, 127, size)
    with lock:
        handler.connection.sendall(head + content)


def _receive(handler) -> tuple[int, bytes] | None:
    head = handler.rfile.read(2)
    if len(head) < 2:
        return None
    size = head[1] & 0x7F
    if size == 126:
        (size,) = struct.unpack("!H", handler.rfile.read(2))
    elif size == 127:
        (size,) = struct.unpack("!Q", handler.rfile.read(8))
    mask = handler.rfile.read(4)
    content = handler.rfile.read(size)
    # XOR of all bytes with the mask, as one number.
    times = -(-size // 4)
    wide = int.from_bytes(content, "little") ^ int.from_bytes((mask * times)[:size], "little")
    return head[0] & 0x0F, wide.to_bytes(size, "little")
