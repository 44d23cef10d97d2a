"""Request and response bodies of the API that are not entities of the project."""
