"""Speed and memory of this library beside its peers on fixed inputs."""
