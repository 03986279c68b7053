"""The verbs that a procedure's steps call: whole pieces of work, typed arguments in, typed results out.

They compose the other rooms (audio, policy, decode, score, groups, mine, train) and know nothing of the agent, so each can be
called from a notebook as well.
"""
