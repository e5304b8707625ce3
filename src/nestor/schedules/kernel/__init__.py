"""From a payload and a schedule to a kernel that numpy calls: lower, compile, verify, time."""
