"""What algorithms share that see of a policy only its score.

``candidates`` compares policies on a few units, ``comparison`` on whole programs.
"""
