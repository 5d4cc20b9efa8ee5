"""What sets clusters and topics apart, in numbers and words: for tables and pictures alike."""
