"""The command that fills a capture store."""

from __future__ import annotations

from collections.abc import Sequence

import click

from tracelane.core.base.errors import UnreadableError, UsageError
from tracelane.core.base.output import print_text
from tracelane.core.base.progress import Progress
from tracelane.core.base.safe_text import safe
from tracelane.core.base.threads import collect_often
from tracelane.core.index.opening import skipped_note
from tracelane.core.store.collect import (
    Collected,
    Engine,
    Shard,
    cluster_engine,
    collect,
    one_after_another,
    planned,
)
from tracelane.tui.text.progress import ProgressBar

from .main import EXIT_FAILED
from .trace_options import TraceOptions


def run_collect(
    options: TraceOptions, store: str, shard: str | None, cluster: str | None, with_index: bool
) -> None:
    if shard and cluster:
        raise UsageError("--shard and --cluster both share out the work: give one of them")
    engine: Engine = one_after_another
    if cluster:
        engine = cluster_engine(cluster)
    plan = planned(
        options.traces,
        store,
        shard=Shard.parse(shard) if shard else Shard(),
        choice=options.choice,
        with_index=with_index,
        options=options.index_options,
    )
    for note in plan.notes:
        print_text(f"tracelane: {safe(note)}", error=True)
    by_name = {}
    collect_often()  # what one rank leaves is garbage before the next
    with ProgressBar("collecting") as progress:
        for result in collect(plan, store, engine):
            by_name[result.name] = result
            progress(Progress("collecting", len(by_name), len(plan.jobs)))
    results = [result for result in by_name.values() if not result.skipped]
    if skipped := [result for result in by_name.values() if result.skipped]:
        _note_skipped(skipped)
        if not results:
            click.get_current_context().exit(UnreadableError.exit_code)
    unreadable = [result for result in results if result.unreadable]
    for result in sorted(unreadable, key=lambda result: result.name):
        print_text(f"tracelane: {safe(result.name)}: {safe(result.unreadable)}", error=True)
    new = sum(result.is_new and not result.unreadable for result in results)
    there = sum(not result.is_new for result in results)
    failed = f", {len(unreadable):,} could not be read" if unreadable else ""
    print_text(f"{new:,} ranks collected, {there:,} were there already{failed}: {safe(store)}")
    if unreadable:
        click.get_current_context().exit(EXIT_FAILED)


def _note_skipped(skipped: Sequence[Collected]) -> None:
    reasons: dict[str, list[str]] = {}
    for result in sorted(skipped, key=lambda result: result.name):
        reasons.setdefault(result.skipped, []).append(result.name)
    print_text(f"tracelane: {safe(skipped_note(reasons))}", error=True)
