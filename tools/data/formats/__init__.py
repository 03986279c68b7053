"""One module a family of manifest formats; each has `read(path, source)`, an iterator of Clips and Quarantined rows."""
