"""Pages of lists, each with a name of its own for clients."""

from __future__ import annotations

from ...project.entities import (
    Execution,
    RunSummary,
    StoredConnector,
    StoredEval,
    StoredPersona,
    StoredScenario,
)
from .base import PageOf
from .scoring import EvaluationSummary, Feedback


class PersonaPage(PageOf[StoredPersona]):
    """Personas, newest first."""


class ScenarioPage(PageOf[StoredScenario]):
    """Scenarios, newest first."""


class ConnectorPage(PageOf[StoredConnector]):
    """Connectors, newest first; secrets masked."""


class EvalPage(PageOf[StoredEval]):
    """Evals, newest first."""


class ExecutionPage(PageOf[Execution]):
    """Executions, newest first."""


class RunPage(PageOf[RunSummary]):
    """Runs without what was said, newest first."""


class EvaluationPage(PageOf[EvaluationSummary]):
    """Recorded evaluations in short, newest first."""


class FeedbackPage(PageOf[Feedback]):
    """What people said, newest first."""
