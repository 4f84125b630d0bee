"""The demo: two ranks of an AIU training run and an aiu-smi log beside them, the same bytes everywhere."""
