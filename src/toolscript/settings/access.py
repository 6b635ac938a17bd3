"""What an installation of the service decides about where it can be reached, by which names, and through whom."""

from ipaddress import ip_network
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_settings import BaseSettings


def _networks(text: str) -> str:
    """Checked here: what is no network would be taken for a name by who reads it, and never match."""
    for one in listed(text):
        ip_network(one)
    return text


def listed(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


class AccessSettings(BaseSettings):
    socket: str = Field(
        default="",
        description="Path of a Unix socket `serve` listens on as well; whoever can open it is an administrator, "
        "so no proxy may lead there; empty: none.",
    )
    socket_mode: str = Field(
        default="600", pattern=r"^[0-7]{3}$", description="Who can open that socket, as the mode of its file."
    )
    trusted_proxies: Annotated[str, AfterValidator(_networks)] = Field(
        default="",
        description="Addresses or networks of proxies, with commas between, whose X-Forwarded-For and "
        "X-Forwarded-Proto are believed; empty: nobody's.",
    )
    allowed_hosts: str = Field(
        default="",
        description="Names by which the service may be asked, with commas between, beside this machine's, that of "
        "TOOLSCRIPT_PUBLIC_URL and the address it listens on; empty: those, where it listens on this machine "
        "alone, and any name elsewhere.",
    )
    docs: bool = Field(default=True, description="Whether `/docs` and `/openapi.json` describe the API.")
