"""A pane of text is as high as its text, whenever that is shown."""

from __future__ import annotations

from rich.text import Text
from textual.app import App, ComposeResult
from textual.geometry import Size
from textual.widgets import Static

from tests.tui.driver import running, screen_text, wait_until_idle
from tracelane.tui.widgets.text_pane import TextPane

LINES = ["first", "second", "third"]


class LateBody(Static):
    """A body that is measured, and its pane shown a text, before it is mounted; afterwards it is placed by
    layouts of what has been scrolled, which look at no widget's height.
    """

    def on_mount(self) -> None:
        pane = self.parent
        assert isinstance(pane, TextPane)
        assert self.get_content_height(pane.size, pane.size, 40) == 1
        pane.show(Text("\n".join(LINES)))

    def _size_updated(
        self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True
    ) -> bool:
        return super()._size_updated(size, virtual_size, container_size, layout=False)


class LatePane(TextPane):
    """A pane with such a body."""

    DEFAULT_CSS = "LatePane > LateBody { width: 40; height: auto; }"

    def compose(self) -> ComposeResult:
        yield LateBody()


class LateApp(App[None]):
    """An App with such a pane."""

    def compose(self) -> ComposeResult:
        yield LatePane()


async def test_a_text_that_comes_before_the_body_is_whole() -> None:
    """What is shown while the pane is being mounted is seen whole: textual keeps the height of before."""
    app = LateApp()
    async with running(app, (60, 10)) as pilot:
        await wait_until_idle(app, pilot)
        assert [line.strip() for line in screen_text(app).splitlines()[:3]] == LINES


async def test_texts_follow_each_other() -> None:
    """Afterwards each text replaces the one before, longer or shorter."""
    app = LateApp()
    async with running(app, (60, 10)) as pilot:
        pane = app.query_one(LatePane)
        for text in ("one", "one\ntwo\nthree\nfour", ""):
            pane.show(Text(text))
            await wait_until_idle(app, pilot)
            assert screen_text(app).split() == text.split()


class PaneApp(App[None]):
    """An App with a pane of text."""

    def compose(self) -> ComposeResult:
        yield TextPane()


async def test_a_layout_between_two_texts_keeps_no_height() -> None:
    """Two texts shown one right after the other, and the pane laid out at another height between them: the
    second is whole.
    """
    app = PaneApp()
    async with running(app, (60, 10)) as pilot:
        pane = app.query_one(TextPane)
        await wait_until_idle(app, pilot)
        pane.show(Text("one"))
        pane.styles.height = 8
        pane._check_refresh()  # as an Idle of the pane does, with none of its text before
        app.screen._refresh_layout()
        pane.show(Text("\n".join(LINES)))
        await wait_until_idle(app, pilot)
        assert [line.strip() for line in screen_text(app).splitlines()[:3]] == LINES
