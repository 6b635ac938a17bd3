"""A server that prints its secret wherever it can: TOKEN of its environment, and its arguments after the first."""

import os
import sys

from tests.support.mcp_servers.raw import Params, Refusal, said, serve, tool, tools_only

SECRET = " ".join([os.environ.get("TOKEN", ""), *sys.argv[2:]])


def call(params: Params) -> object:
    if params["name"] == "refuse":
        raise Refusal(-32602, f"{'x' * 1_990} the token is {SECRET}")
    return said(str(len(SECRET)))


def main(how: str) -> None:
    sys.stderr.write(f"{'x' * 280} I have {SECRET}\n")
    sys.stderr.flush()
    if how == "dies":
        sys.exit(3)
    if how == "noisy":
        sys.stdout.write(f"{'x' * 100} my token is {SECRET}\n")
        sys.stdout.flush()
        sys.exit(4)
    refused = {"name": f"bad {SECRET}" * 99, "inputSchema": 1}
    serve(tools_only("leaky", [tool("measure", "Measure the length of the token"), tool("refuse"), refused], call))


main(sys.argv[1])
