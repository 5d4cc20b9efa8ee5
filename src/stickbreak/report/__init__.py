"""Fits for people: tables, figures, progress."""
