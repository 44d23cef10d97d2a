"""``evalstudio persona``: who the simulated users are."""

from __future__ import annotations

from .definitions import HEADERS, FieldOption, definition_app

app = definition_app(
    "persona",
    "a persona",
    help="Personas: who the simulated users are.",
    deleting="Delete a persona that no scenario uses.",
    columns=("Persona", "Description"),
    row=lambda body: (body["name"], body.get("description") or body.get("systemPrompt") or "-"),
    options=[
        FieldOption("--description", "description", "Who this is, in a few words."),
        FieldOption("--system-prompt", "systemPrompt", "How this person speaks."),
        FieldOption("--knows", "knows", "What only this person knows."),
        FieldOption("--wants", "wants", "What this person is after."),
        HEADERS,
    ],
)
