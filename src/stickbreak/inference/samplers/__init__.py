"""Markov chain Monte Carlo: partitions of rows drawn from their posterior."""
