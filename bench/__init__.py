"""Measuring memory and speed: ``make bench``.

    __main__        arguments, what can be measured, the exit status
    memory          the memory of every process while a large archive is imported
    slack_export    writes a Slack export of any size, the same one each time
    processes       reads peak memory of processes from /proc
    machine         what the figures were measured on

It starts a stack of its own in a temporary folder and uses the product from outside: the archive
goes in by ``recall import``. Nothing here is asserted by a test.
"""
