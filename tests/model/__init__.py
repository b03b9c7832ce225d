"""What a run must come to, told twice: by a small model of the semantics, and by the real core driven by hand."""
