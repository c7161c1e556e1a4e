"""Labels: what a person says about a trajectory, as files and as agreement between two people."""
