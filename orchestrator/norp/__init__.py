"""The compliance tests of NORP-006, section 9.1, for any deployment: probes, observed remote servers, verdicts."""
