"""Papers' tables made again: a grid of variants on one corpus, what each run found, and the table of it all."""
