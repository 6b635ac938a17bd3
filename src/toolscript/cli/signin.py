"""`toolscript login` and `logout`: sign in to a remote server, in the browser, and out again."""

import sys
from typing import Annotated

import typer

from toolscript.cli.options import AsJson, ConfigFile, DataDir, flags
from toolscript.cli.output import NOTHING_FOUND, printable, say, show

Server = Annotated[str, typer.Argument(help="The server, by its name in the config file.")]


def add_signin(app: typer.Typer) -> None:
    _login(app)
    _logout(app)


def _login(app: typer.Typer) -> None:
    @app.command()
    def login(
        server: Server,
        scope: Annotated[
            list[str] | None,
            typer.Option(
                help="A scope to ask for, added to what you have; repeatable (default: what the server asks for)."
            ),
        ] = None,
        browser: Annotated[
            bool | None,
            typer.Option(
                "--browser/--no-browser",
                help="Open the browser, or print the address and read the answer (default: where there is one).",
            ),
        ] = None,
        config: ConfigFile = None,
        data_dir: DataDir = None,
        as_json: AsJson = False,
    ) -> None:
        """Sign in to a remote server with OAuth. A person must do it: they agree in their browser."""
        from toolscript.gateway.signin import Dialog, SignedIn, has_browser, sign_in

        opens = has_browser() if browser is None else browser
        dialog = Dialog(_show_opened if opens else _show_address, sys.stdin.readline, _complain, opens, _note)
        done: SignedIn = sign_in(server, dialog, flags=flags(config=config, data_dir=data_dir), scopes=scope or ())
        state = done.state
        data = {
            "server": done.server,
            "issuer": done.issuer,
            "scope": done.scope,
            "place": done.place,
            "state": state.status if state else None,
        }
        now = f"; {state.name} is {state.status}, with {state.tools} tools" if state else ""
        text = f"signed in to {done.server} at {done.issuer}{now}\ntokens: {done.place}"
        show(data, "\n".join(map(printable, text.splitlines())), as_json=as_json)


def _show_opened(url: str, _redirect_uri: str) -> None:
    say(f"sign in with the browser; if none opens, open this address, or use --no-browser:\n{printable(url)}")


def _show_address(url: str, redirect_uri: str) -> None:
    say(f"open this address in a browser, on any machine, and sign in:\n{printable(url)}")
    say(f"then paste the address that the browser ends at ({redirect_uri}?...), and press Enter:")


def _complain(text: str) -> None:
    say(f"{printable(text)}; try again:")


def _note(text: str) -> None:
    say(printable(text))


def _logout(app: typer.Typer) -> None:
    @app.command()
    def logout(
        server: Server, config: ConfigFile = None, data_dir: DataDir = None, as_json: AsJson = False
    ) -> None:
        """Sign out of a remote server: revoke its tokens, and forget them. Exit code 1: there was no sign-in."""
        from toolscript.gateway.signin import sign_out

        done = sign_out(server, flags=flags(config=config, data_dir=data_dir))
        data = {
            "server": server,
            "signed_out": done is not None,
            "revoked": bool(done and done.revoked),
            "why_not_revoked": (done.why_not or None) if done else None,
        }
        if done is None:
            show(data, f"nobody is signed in to {printable(server)}", as_json=as_json)
            raise typer.Exit(NOTHING_FOUND)
        how = "were revoked" if done.revoked else f"were not revoked: {printable(done.why_not)}"
        show(data, f"signed out of {printable(server)}; its tokens are forgotten, and {how}", as_json=as_json)
