"""Lists what in a dataset a person should read: golds that disagree, answers that prove little,
queries that can be read in two ways, and equal answers of agents with different scores."""
