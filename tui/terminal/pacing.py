"""Output paced by the terminal's answers: over a slow line frames merge, and none queue up."""

from __future__ import annotations

from contextlib import ExitStack

from textual import events
from textual.app import App
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Size
from textual.timer import Timer

from .boundary import BoundedApp
from .driver import PATIENCE_S, TerminalDriver


class PacedApp(BoundedApp):
    """An App that holds its next frame back while the terminal is still busy with those before."""

    _hold: ExitStack | None = None
    _held: ExitStack | None = None
    _patience: Timer | None = None
    _frame_dropped = False
    _terminal_size: Size | None = None

    def get_driver_class(self) -> type[Driver]:
        """Drive terminals with ours; headless, web and what the environment names stay as they are."""
        driver_class = super().get_driver_class()
        return TerminalDriver if driver_class is LinuxDriver else driver_class

    def hold_frames(self) -> None:
        """Draw nothing until `show_frames`: what is on the screen stays there."""
        if self._held is None:
            self._held = ExitStack()
            self._held.enter_context(self.batch_update())

    def show_frames(self) -> None:
        """Draw again."""
        if self._held is not None:
            held, self._held = self._held, None
            held.close()
            for screen in self.screen_stack:
                screen.check_idle()

    def on_mount(self) -> None:
        """Draw all anew when the program was stopped and goes on."""
        self.app_resume_signal.subscribe(self, self._resumed)

    def action_redraw(self) -> None:
        """Draw all anew: what the terminal shows is not taken for known any more."""
        if isinstance(self.terminal, TerminalDriver):
            self.terminal.forget()
        self.screen.refresh(layout=True)

    @property
    def can_be_suspended(self) -> bool:
        """Whether there is a terminal to give back."""
        return self.terminal is not None and self.terminal.can_suspend

    def post_display_hook(self) -> None:
        """Ask whether the frame has been drawn; hold the next one back if too many are under way."""
        driver = self.terminal
        if not isinstance(driver, TerminalDriver):
            return
        if self._hold is not None:
            # A new layout is displayed all the same: textual drops it, and would never draw it.
            self._frame_dropped = True
            return
        driver.ask()
        if driver.pace.full or driver.is_stalled:
            self._hold = ExitStack()
            self._hold.enter_context(self.batch_update())
            self._patience = self.set_timer(driver.pace.patience, self._lose_patience)

    def on_ready(self) -> None:
        """Tell of the first layout: textual publishes those after it."""
        self.screen.screen_layout_refresh_signal.publish(self.screen)

    def on_cursor_position(self, event: events.CursorPosition) -> None:
        """Go on drawing: the terminal has answered."""
        driver = self.terminal
        if isinstance(driver, TerminalDriver) and not driver.pace.full and not driver.is_stalled:
            self._draw_again()

    def _lose_patience(self) -> None:
        driver = self.terminal
        if self._hold is None or not isinstance(driver, TerminalDriver):
            return
        if driver.is_stalled:
            self._patience = self.set_timer(PATIENCE_S, self._lose_patience)
            return
        driver.pace.lost()
        self._draw_again()

    def on_resize(self, event: events.Resize) -> None:
        """Take nothing of what the terminal shows for known: one that is attached to again says its size, and
        may be empty. Where the size is as before textual would draw nothing.
        """
        if isinstance(self.terminal, TerminalDriver):
            self.terminal.forget()
            if event.size == self._terminal_size:
                self.screen.refresh(layout=True)
        self._terminal_size = event.size

    def _resumed(self, _: App[object]) -> None:
        self._draw_again()
        self.screen.refresh(layout=True)

    def _draw_again(self) -> None:
        if self._hold is None:
            return
        hold, self._hold = self._hold, None
        if self._patience is not None:
            self._patience.stop()
        hold.close()
        for screen in self.screen_stack:
            screen.check_idle()
        if self._frame_dropped and self.screen_stack:
            self.screen.refresh()
        self._frame_dropped = False
