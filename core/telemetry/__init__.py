"""Telemetry of the device: log formats to series, their alignment with a trace, energy."""
