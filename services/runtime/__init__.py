"""What every process needs and no stage owns: bootstrap, calls, errors, logs, database access."""
