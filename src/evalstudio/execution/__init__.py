"""Execution: runs claimed from the queue, held as conversations, and kept turn by turn."""
