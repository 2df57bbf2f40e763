"""Starting and stopping every process on one machine: `make up`, `make down`, `make demo`."""
