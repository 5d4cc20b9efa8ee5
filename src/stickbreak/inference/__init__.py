"""Inference: laps over batches, stochastic steps, initialisation."""
