"""Checks, before a part starts, that the ports it is going to listen on are free.

The web server listens with SO_REUSEPORT, so that its processes can share a port. A second installation on the
same port would therefore start without an error, and each of the two would get a part of the requests.
"""

from __future__ import annotations

import errno
import shlex
import socket
import sys
from collections.abc import Iterable, Mapping

import click

# From a port that is in use to the first one that is tried in its place.
FURTHER = 100
LARGEST = 65_535


def require_free(host: str, ports: Mapping[str, int]) -> None:
    """Check ``ports``, by the names of their options.

    :raise click.ClickException: names every port that is in use, and a command with free ports
    """
    taken: dict[str, int] = {}
    used: set[int] = set()
    for option, port in ports.items():
        # Two parts of this installation cannot have the same port either.
        if port in used or not _is_free(host, port):
            taken[option] = port
        used.add(port)
    if not taken:
        return
    free: dict[str, int] = {}
    for option, port in taken.items():
        free[option] = next((each for each in _others(port) if each not in used and _is_free(host, each)), 0)
        used.add(free[option])
    *others, last = (str(port) for port in dict.fromkeys(taken.values()))
    numbers = f"{', '.join(others)} and {last}" if others else last
    one = not others
    raise click.ClickException(
        f"{'Port' if one else 'Ports'} {numbers} {'is' if one else 'are'} in use. "
        f"With free ports: {_command(free)}"
    )


def reserve(host: str, port: int) -> socket.socket | None:
    """Reserve a port, until the socket is closed, for listeners that set SO_REUSEPORT; None if it is in use.

    :raise click.ClickException: if this process cannot listen on it for another reason
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        reserved = socket.socket(family)
        try:
            # Connections of an earlier process that are about to end do not count. Without SO_REUSEPORT, the
            # port of any listener counts, also of one that would share it.
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            reserved.bind(address)
            # From here on, listeners with SO_REUSEPORT may share the port, and another reservation may not.
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        except OSError:
            reserved.close()
            raise
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return None
        raise click.ClickException(
            f"Almanac cannot listen on {host}, port {port}: {error.strerror}"
        ) from error
    return reserved


def _is_free(host: str, port: int) -> bool:
    reserved = reserve(host, port)
    if reserved is None:
        return False
    reserved.close()
    return True


def _others(port: int) -> Iterable[int]:
    return (*range(port + FURTHER, LARGEST + 1), *range(port - 1, 1023, -1))


def _command(ports: Mapping[str, int]) -> str:
    """The command line of this process with these options in the place of its own."""
    words = []
    given = iter(sys.argv)
    for word in given:
        if word in ports:
            next(given, None)
        elif word.partition("=")[0] not in ports:
            words.append(word)
    return shlex.join([*words, *(word for option, port in ports.items() for word in (option, str(port)))])
