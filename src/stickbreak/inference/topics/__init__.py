"""The search for topics of documents: annealing, growth, ascents, and what they begin with."""
