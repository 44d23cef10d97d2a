"""An evaluator of your own: the agent greets the user in its first reply."""

from pydantic import BaseModel, Field

from evalstudio import EvaluationResult, EvaluatorContext, define_evaluator


class Greeting(BaseModel):
    greetings: list[str] = Field(["hello", "hi", "welcome"], description="Accepted greeting words")


@define_evaluator(label="Greeting Check")
def greeting_check(ctx: EvaluatorContext[Greeting]) -> EvaluationResult:
    """The agent greets the user in its first reply."""
    if ctx.turn > 1:
        return EvaluationResult.skip("only the first reply has to greet")
    words = ctx.response.lower().replace("!", " ").replace(",", " ").split()
    found = next((word for word in ctx.config.greetings if word in words), None)
    return (
        EvaluationResult.passed(f"greets with {found!r}") if found else EvaluationResult.failed("no greeting")
    )
