"""Search for output sequences, over any engine and in NumPy: beam search, sampling, forced decoding."""
