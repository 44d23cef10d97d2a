"""Reports from one model: JSON, JSONL, CSV, Markdown, JUnit XML, HTML and GitHub's annotations."""

from __future__ import annotations

from typing import IO

from .model import (
    FORMATS,
    Format,
    ReportHead,
    ReportRun,
    ReportSource,
    ReportWriter,
    Transcript,
    write_reports,
)


def writer_for(kind: Format, output: IO[str]) -> ReportWriter:
    """The writer of a format; the terminal is the command line's own."""
    match kind:
        case "json":
            from .data import JsonWriter as Writer
        case "jsonl":
            from .data import JsonLinesWriter as Writer
        case "csv":
            from .data import CsvWriter as Writer
        case "md":
            from .markdown import MarkdownWriter as Writer
        case "junit":
            from .junit import JUnitWriter as Writer
        case "html":
            from .html import HtmlWriter as Writer
        case "github":
            from .github import AnnotationsWriter as Writer
        case "terminal":
            from .text import TextWriter as Writer
    return Writer(output)


__all__ = [
    "FORMATS",
    "Format",
    "ReportHead",
    "ReportRun",
    "ReportSource",
    "ReportWriter",
    "Transcript",
    "write_reports",
    "writer_for",
]
