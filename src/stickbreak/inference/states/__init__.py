"""The search for states of sequences: excursions, starts from pairs of rows, crossings, and states of known classes."""
