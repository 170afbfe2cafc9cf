"""Measures training configurations on a GPU, by what its driver counts."""
