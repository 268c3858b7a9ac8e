"""Addresses as messages show them."""


def without_secret(address: str) -> str:
    """Return an address with `...` in place of a password, as messages may show it.

    >>> without_secret("https://ada:secret@gt.example.com")
    'https://ada:...@gt.example.com'
    """
    begin = address.find("://") + len("://") if "://" in address else 0
    scheme, rest = address[:begin], address[begin:]
    # A password may have any letter, also the one that ends it.
    login, at, host = rest.rpartition("@")
    user, colon, _ = login.partition(":")
    return f"{scheme}{user}:...@{host}" if at and colon else address
