"""Documents: files and markup as passages to translate, written again unchanged but for their texts."""
