"""The experiments of the four papers, run again beside today's peers: one command each."""
