"""The derivative of one call beside finite differences: the engine that check and doctor share.

``call`` is a call as it was made, operands and results in slots; ``double_precision`` makes it
again, and ``rerun`` keeps the program from noticing.  ``wide_function`` is a function in double
precision: ``single_call`` sees a call as one, and the backward of a call, too.  ``compare`` puts
its gradients beside ``finite_differences``, which says whether they agree.  ``call`` and ``stale``
know two reasons why they may not, ``verdict`` has the answer.
Knows nothing of graphs, of the rest of the program, or of which calls are worth a look.
"""
