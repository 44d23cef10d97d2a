"""Plumbing without product words: files, paths, schemas, JSON text, threads, locks, retries, references."""
