"""Commands about workloads: programs of a corpus on real inputs."""
