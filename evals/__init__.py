"""Measuring retrieval and answers on labelled questions: ``make evals``.

    __main__     arguments, the run, the exit status
    own_stack    a stack of its own, imports through the real path
    asking       every question over gRPC
    stand_in     rerank against the local Decisions stand-in
    datasets     messages and labelled questions
    metrics      rankings and labels -> figures            pure
    judgements   answers and labels -> right or wrong      pure
    leaks        what a reply holds that its reader may not read   pure
    ladder       one arm alone against both, with intervals        pure
    figures, measured, targets           averages and bounds       pure
    sections, report, results, tables    their text and JSON       pure

It is a client like any other: it reads no database and imports no stage.
"""
