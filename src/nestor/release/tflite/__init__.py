"""TFLite models: written without TensorFlow, and read back as policies.

A model is a FlatBuffer (https://flatbuffers.dev/internals): ``flatbuffer`` writes and reads that
format, ``schema`` has the numbers of TFLite's own schema that are needed, ``export`` writes a
policy, and ``graph``, ``columns`` and ``importing`` read one.
"""
