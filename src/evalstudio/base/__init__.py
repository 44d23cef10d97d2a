"""Plumbing without product words: files, paths, schemas, JSON text, threads, retries, references."""
