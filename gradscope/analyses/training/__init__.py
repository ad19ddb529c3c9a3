"""What a training loop does with parameters and gradients, between two backward calls.

For the doctor, which tells it of calls and backward calls; it knows nothing of graphs.

    leaves ◄── optimizers ──► loop_order       backward, clip, step, zero: in which order?
                  │    ▲          ├──► wasted             which calls are zeroed before a step?
                  │    │          ├──► idle_optimizers    who never steps?
                  │    │          └──► bad_gradients      what becomes of those not finite?
                  │    └── loop_calls          who zeroes, clips, scales, schedules? wrappers
                  └──► step_effect, spoiling_steps        what came of a step?

``leaves`` has one entry a leaf: where it came from, who used, changed and held it, what backward
brought it.  ``accumulating`` asks what adds up before a step, ``gradient_graphs`` and
``dropped_results`` which edits throw something away, and ``stores`` which line keeps something.

What is seen is kept in the records of ``model.loop_observations``, which the rules read: by the ids
of parameters and the numbers of places, in bounded memory.  Parameters are read only where a
finding needs it: all together, with one wait a device.
"""
