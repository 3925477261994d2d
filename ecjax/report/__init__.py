"""One page of HTML for a study: reads result tables, computes nothing."""
