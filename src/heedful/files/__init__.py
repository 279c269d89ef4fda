"""Files: durable writes, bounded reads, format versions, and records with checksums."""
