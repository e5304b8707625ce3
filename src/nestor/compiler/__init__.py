"""The compilers of this machine: find them, start them, read what they write."""
