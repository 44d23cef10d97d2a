"""The one error a connector fails with."""

from __future__ import annotations


class ConnectorError(Exception):
    """The agent could not be reached or did not answer as it should.

    ``again`` says that another attempt may help, ``retry_after`` how many seconds the agent asked to wait.
    """

    def __init__(self, message: str, *, again: bool = False, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.again = again
        self.retry_after = retry_after
