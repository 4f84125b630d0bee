"""What keys do, by noun: pure functions from one Session to the next, tested without a terminal."""
