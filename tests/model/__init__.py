"""The expected result of a run, found twice: by a small model of the semantics, and by the real core driven by hand."""
