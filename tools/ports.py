"""Look at a port before a server is started on it."""

import socket

__all__ = ["PortInUseError", "free_port_from", "port_number", "require_free"]


class PortInUseError(Exception):
    """A port that something else listens on; the message names a free one."""


def port_number(text: str) -> int:
    """A port as the command line gives it; ValueError, which argparse reports, where it is none."""
    port = int(text)
    if not 0 < port < 65_536:
        raise ValueError
    return port


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port_from(port: int) -> int | None:
    """The first free port from this one on, or None where a hundred are taken."""
    return next((p for p in range(port, min(port + 100, 65_536)) if _free(p)), None)


def require_free(port: int, command: str) -> None:
    """Raise PortInUseError, with a command that would work, unless the port can be listened on."""
    if _free(port):
        return
    other = free_port_from(port + 1)
    advice = f"run `{command} PORT={other}`" if other else f"run `{command} PORT=...` with another port"
    raise PortInUseError(f"port {port} is in use on this machine; stop what listens there, or {advice}.")
