"""Checks of a recording: what could not be read, wrong clocks, overlaps, missing or lost data.

A rule is a decorated function (`rule`) in a file of its subject: reading, recording, devices; `doctor` lets
them speak.

Below stand the rooms device, host, steps and frame.
"""
