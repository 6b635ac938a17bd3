"""What happens to a connection between two requests, told to whoever keeps it up."""

import asyncio


class Signals:
    """One waits for `stirred`, then looks at what there is to do."""

    def __init__(self) -> None:
        self.stirred = asyncio.Event()
        self.lost = False
        self.changed = False
        self.doubted = False

    def lose(self) -> None:
        self.lost = True
        self.stirred.set()

    def change(self) -> None:
        """What the server offers is no longer what was listed."""
        self.changed = True
        self.stirred.set()

    def doubt(self) -> None:
        """Something ended that should not have: the server may be gone, or not."""
        self.doubted = True
        self.stirred.set()

    def forget(self) -> None:
        """For another try with the same server: what the last one met no longer counts."""
        self.lost = self.changed = self.doubted = False

    def take_changed(self) -> bool:
        taken, self.changed = self.changed, False
        return taken

    def take_doubted(self) -> bool:
        taken, self.doubted = self.doubted, False
        return taken
