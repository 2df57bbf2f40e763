"""The ``recall`` command: a client of the RPCs. It finds the stack by RECALL_HOME and PORT_BASE."""
