"""What algorithms share that learn by gradient descent.

``optimiser`` takes one step of Adam, ``descent`` applies it to the loss of a network. ``imitation``
is the loss of learners that imitate, ``novelty`` a bonus for exploration, ``memory`` the questions
that Q-learning remembers.
"""
