"""Compiled loops: arrays in, arrays out. They know nothing of models."""
