"""Generated corpora: dates and numbers as people write them, in English and Chinese, with their canonical forms."""
