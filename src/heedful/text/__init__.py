"""Text to integer ids: lines, tokenizers, vocabularies, alignment links, word vectors. NumPy only."""
