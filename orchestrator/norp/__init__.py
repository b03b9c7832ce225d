"""The compliance tests of NORP-006, section 9.1, for any deployment: probes, looks from the far side, verdicts."""
