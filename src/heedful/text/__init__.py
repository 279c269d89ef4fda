"""Text in, integer arrays out: corpora, tokenizers, vocabularies, batches. NumPy only."""
