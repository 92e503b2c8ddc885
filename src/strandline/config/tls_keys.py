"""The keys for files of TLS that several ports of a broker have.

Why:    a private key is the same for each port, and so are the authorities of clients.
How:    each function is the key of one field, as `keys.key` is; only the example differs.
Owns:   nothing.
Source: docs/decisions/0069-access.md."""

from strandline.config.keys import key


def private_key_file(example: str) -> str:
    """The key `private_key`."""
    return key(
        "",
        "A PEM file: the certificate's private key, without a password.",
        example=example,
    )


def client_authorities_file(example: str) -> str:
    """The key `trust` of a port for clients."""
    return key(
        "",
        "A PEM file: the certificates of the authorities that clients' certificates may be of.",
        example=example,
    )
