"""Screens: the lanes, and what is put on top of them."""
