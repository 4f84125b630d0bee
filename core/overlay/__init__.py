"""Telemetry logs over a trace: their clocks fitted to it, their series as lanes beside its own."""
