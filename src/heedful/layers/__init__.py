"""Layers that take plain keywords: multi-head attention, recurrent cells, convolutions, positions, embeddings."""
