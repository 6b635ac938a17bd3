"""`toolscript gateway install` and `uninstall`: start the gateway at login."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.options import AsJson, ConfigFile, DataDir, Model, Port, flags
from toolscript.cli.output import harmless, show

if TYPE_CHECKING:
    from toolscript.gateway.autostart import AutostartPlan

Preview = Annotated[bool, typer.Option("--preview", help="Only show what would be written or removed.")]


def add_autostart(group: typer.Typer) -> None:
    @group.command()
    def install(
        preview: Preview = False,
        port: Port = None,
        config: ConfigFile = None,
        data_dir: DataDir = None,
        model: Model = None,
        as_json: AsJson = False,
    ) -> None:
        """Start the gateway at login, by systemd, launchd or the Windows task scheduler, and now."""
        from toolscript.gateway import autostart

        options = flags(config=config, data_dir=data_dir, model=model, port=port)
        if preview:
            _show_preview(autostart.plan_install(flags=options), as_json=as_json)
            return
        done = autostart.install(flags=options)
        text = f"the gateway starts at login, by {done.plan.system}: {done.plan.path}"
        show(_data(done.plan, written=True), text, as_json=as_json)

    @group.command()
    def uninstall(
        preview: Preview = False, config: ConfigFile = None, data_dir: DataDir = None, as_json: AsJson = False
    ) -> None:
        """Start the gateway at login no more; what `install` wrote is removed."""
        from toolscript.gateway import autostart

        options = flags(config=config, data_dir=data_dir)
        if preview:
            plan = autostart.plan_install(flags=options)
            text = "would remove: " + ", ".join(map(str, plan.paths))
            show(_data(plan, written=False), text, as_json=as_json)
            return
        done = autostart.uninstall(flags=options)
        text = f"the gateway starts at login no more: {done.plan.path} is gone"
        show(_data(done.plan, written=True), text, as_json=as_json)


def _show_preview(plan: "AutostartPlan", *, as_json: bool) -> None:
    if not as_json:
        sys.stdout.write(f"would write {plan.path}:\n{harmless(plan.text)}")
        commands = [" ".join(command) for command in (*plan.register, *plan.start)]
        sys.stdout.write("\n".join(["and run:", *(f"  {command}" for command in commands)]) + "\n")
        return
    show({**_data(plan, written=False), "text": plan.text}, "", as_json=True)


def _data(plan: "AutostartPlan", *, written: bool) -> dict[str, object]:
    return {"system": plan.system, "files": [str(path) for path in plan.paths], "written": written}
