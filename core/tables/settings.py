"""The settings that change what analyses say: a file that cannot be read, or means nothing, is an error."""

from __future__ import annotations

from ..base.errors import UsageError
from ..base.private import KERNEL_KINDS, config_path, read_settings


def check_settings() -> None:
    """Raise UsageError for a settings file that cannot be read, as analyses would say something else without
    a word; and where its patterns of kinds, or its peaks, are not understood.
    """
    path = config_path()
    if path is None or not path.exists():
        return
    from .device.peaks import PEAKS, peaks_of
    from .frame.kinds import patterns_of

    try:
        values = read_settings(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from None
    complaints = []
    for name, rows_of in ((KERNEL_KINDS, patterns_of), (PEAKS, peaks_of)):
        table = values.get(name, {})
        complaints += rows_of(table)[1] if isinstance(table, dict) else [f"{name} must be a table"]
    if complaints:
        raise UsageError(f"{path}: {'; '.join(complaints)}")
