"""Proxies in front of a service: a real nginx in three setups, and a byte relay."""

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.repo.shell_pages import ROOT, code_of
from tests.support.faults import relay
from tests.support.nginx_program import nginx_program
from tests.support.reserved_ports import reserved_port

SOON = 60.0

PLAIN = "location / { proxy_pass http://127.0.0.1:8080; }"
WITH_HOST = "location / { proxy_pass http://127.0.0.1:8080; proxy_set_header Host $host; }"
FORWARDING = """location / {
    proxy_pass http://127.0.0.1:8080;
    proxy_set_header Host $host;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_set_header X-Forwarded-Proto $scheme;
}"""
(AS_DOCUMENTED,) = code_of((ROOT / "docs" / "access.md").read_text("utf-8"), "nginx")
EVERY_NGINX = {
    "nginx, plain": PLAIN,
    "nginx, with the host": WITH_HOST,
    "nginx, forwarding": FORWARDING,
    "nginx, as documented": AS_DOCUMENTED,
}

WHOLE = """
daemon off;
master_process off;
pid {folder}/pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {servers}
}}
"""


@asynccontextmanager
async def ways_to(url: str) -> AsyncIterator[dict[str, str]]:
    """Yield addresses that lead to one service, by kind of proxy."""
    port = urlsplit(url).port or 0
    async with relay("127.0.0.1", port) as forwarder:
        with nginx(url, EVERY_NGINX) as through:
            yield {"nothing between": url, "bytes handed on": f"http://127.0.0.1:{forwarder.port}", **through}


@contextmanager
def nginx(url: str, locations: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Run nginx with one server per config, each on its own port."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        ports = {name: stack.enter_context(reserved_port()) for name in locations}
        servers = "\n".join(
            f"server {{ listen 127.0.0.1:{ports[name]}; {text.replace('http://127.0.0.1:8080', url)} }}"
            for name, text in locations.items()
        )
        config = Path(folder) / "nginx.conf"
        config.write_text(WHOLE.format(folder=folder, servers=servers), "utf-8")
        log = stack.enter_context((Path(folder) / "log").open("w+"))
        command = [nginx_program(), "-c", str(config), "-p", folder, "-e", "stderr"]
        process = subprocess.Popen(command, stderr=log, env={"PATH": os.environ["PATH"]})
        try:
            for port in ports.values():
                _until_listening(process, port, Path(folder) / "log")
            yield {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=SOON)


def _until_listening(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    ends_at = time.monotonic() + SOON
    while time.monotonic() < ends_at:
        assert process.poll() is None, log.read_text()
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError("nginx did not listen in time")
