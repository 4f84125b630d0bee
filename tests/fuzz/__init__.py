"""Fuzzers: run by `make fuzz` at length, by the tests with a fixed seed for some seconds."""
