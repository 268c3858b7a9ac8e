"""Weights from the internet: downloads that are kept in a folder."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, NoReturn

from gt._arguments import brief
from gt._public import show_callers
from gt.formats import load as _load_file

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

_chosen: dict[str, str] = {}
#: Names of files may end in the beginning of their SHA-256, as in `resnet18-f37072fd.pth`.
_HASH_IN_NAME = re.compile(r"-([a-f0-9]*)\.")
_TIMEOUT_SECONDS = 30
_CHUNK_BYTES = 1 << 17


def get_dir() -> str:
    """Return the folder of downloads: GT_HOME/hub, by default ~/.cache/gt/hub.

    >>> gt.hub.get_dir().endswith("hub")
    True
    """
    cache = os.environ.get("XDG_CACHE_HOME", os.path.join("~", ".cache"))
    home = os.environ.get("GT_HOME", os.path.join(cache, "gt"))
    return _chosen.get("dir") or os.path.join(os.path.expanduser(home), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Set the folder of downloads."""
    _chosen["dir"] = os.path.expanduser(os.fspath(d))


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Download a file; an existing one is replaced when all of it has arrived.

    Args:
        url: the address.
        dst: the path of the file.
        hash_prefix: what the SHA-256 of the file must begin with, in hexadecimal digits.
        progress: whether to print the address and size.

    Raises:
        OSError: the address cannot be reached, or the file cannot be written.
        RuntimeError: the hash differs.
    """
    dst = os.path.expanduser(dst)
    digest = hashlib.sha256()
    with (
        _opened(url) as source,
        tempfile.NamedTemporaryFile(dir=os.path.dirname(dst) or ".", delete=False) as part,
    ):
        try:
            if progress:
                size = source.headers.get("Content-Length")
                what = f"{int(size) / 1e6:.1f} MB from {url}" if size else url
                sys.stderr.write(f"Downloading {what} to {dst}\n")
            while chunk := source.read(_CHUNK_BYTES):
                digest.update(chunk)
                part.write(chunk)
            part.close()
            found = digest.hexdigest()
            if hash_prefix is not None and not found.startswith(hash_prefix):
                raise RuntimeError(
                    f'invalid hash value (expected "{hash_prefix}", got "{found}")\n'
                    f"  hint: the download of {url} is incomplete or another file"
                )
            shutil.move(part.name, dst)
        finally:
            if os.path.exists(part.name):
                os.remove(part.name)


def _opened(url: str) -> Any:
    """Open an address for reading; errors name it."""
    request = urllib.request.Request(url, headers={"User-Agent": "gt.hub"})
    try:
        return urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        raise OSError(f"download: {url}: the server answers {error.code} {error.reason}") from error
    except (urllib.error.URLError, TimeoutError) as error:
        reason = getattr(error, "reason", error)
        raise OSError(
            f"download: {url} cannot be reached: {reason}\n  hint: check the network, or copy the "
            f"file to {get_dir()}/checkpoints yourself"
        ) from error


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> dict[str, Any]:
    """Return what a file on the internet contains; it is downloaded once and then kept.

    Args:
        url: the address of a file that `gt.load` reads.
        model_dir: the folder to keep the file in; by default `checkpoints` in `get_dir()`.
        map_location: accepted as in PyTorch and ignored: all tensors are on the cluster.
        progress: whether to print what is downloaded.
        check_hash: whether the file's name contains the beginning of its SHA-256, to compare.
        file_name: the name of the kept file; by default the last part of the address.
        weights_only: accepted as in PyTorch and ignored: nothing in a file is executed.

    Raises:
        OSError: the address cannot be reached.
        RuntimeError: the hash differs.
        ValueError: the file contains unsupported objects.
    """
    if not isinstance(url, str) or not urllib.parse.urlparse(url).scheme:
        raise ValueError(
            f"load_state_dict_from_url: url is {brief(url)}, expected an address that begins with "
            "https://\n  hint: gt.load(path) reads a file"
        )
    model_dir = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(model_dir, exist_ok=True)
    name = file_name or os.path.basename(urllib.parse.urlparse(url).path)
    kept = os.path.join(model_dir, name)
    if not os.path.exists(kept):
        match = _HASH_IN_NAME.search(name) if check_hash else None
        download_url_to_file(url, kept, match.group(1) if match else None, progress)
    return _load_file(kept, map_location)


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"gt.hub.{name}: programs of a repository's hubconf.py are written for PyTorch\n"
        "  hint: copy the model's code and replace `import torch` by `import gt as torch`; "
        "gt.hub.load_state_dict_from_url loads its weights"
    )


def load(repo_or_dir: str, model: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: programs of other repositories are written for PyTorch."""
    _refuse("load")


def list(github: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError, as `load`."""
    _refuse("list")


def help(github: str, model: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError, as `load`."""
    _refuse("help")


show_callers(globals())
