"""Whole stacks that are killed while they work: what must hold whatever dies and when."""
