"""What a training loop does with parameters and gradients, between two backward calls.

For the doctor, which tells it of calls and backward calls; it knows nothing of graphs.

    leaves ◄── optimizers ──► loop_order       backward, clip, step, zero: in which order?
                  │    ▲          └──► used_gradients     what becomes of them between two calls?
                  │    └── loop_calls          who zeroes, clips, scales, schedules? wrappers
                  └──► step_effects         what does a step make of its parameters?

``leaves`` has one entry a leaf: where it came from, who used, changed and held it, what backward
brought it, who read that, and what steps did with it.  ``gradient_uses`` are the hooks on
gradients, by the numbers of nodes, and their clipping.

What is seen is kept in the records of ``model.observations``, which the rules read: by the ids
of parameters and the numbers of places, in bounded memory.  Parameters are read only where a
finding needs it: all together, with one wait a device.
"""
