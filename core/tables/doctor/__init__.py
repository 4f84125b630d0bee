"""Checks of a recording: what could not be read, wrong clocks, overlaps, missing or lost data.

A rule is a decorated function (`rule`) in a file of its subject: reading, recording, devices; `doctor` lets
them speak. `recount` holds the index (`index_order`) against what another parser reads of the file
(`json_elements`, `file_values`); `recount_tables` says what came of it.

Below stand the rooms device, host, steps and frame.
"""
