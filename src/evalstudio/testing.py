"""For tests of your own evaluators: contexts without a conversation around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .evaluators.contract import EvaluatorContext, Invocation, PersonaInfo, ScenarioInfo, TurnFacts
from .evaluators.criteria import EvaluationCriteria
from .messages import Message, TokensUsage, ToolCall, read_messages, read_usage


def context(
    response: str | Message | None = None,
    *,
    config: Any = None,
    prompt: str | None = None,
    messages: Sequence[Message | Mapping[str, Any]] | None = None,
    tool_calls: Sequence[ToolCall | Mapping[str, Any]] | None = None,
    latency_ms: float = 0.0,
    tokens_usage: TokensUsage | Mapping[str, Any] | None = None,
    turn: int = 1,
    is_final: bool = False,
    scenario: str = "test",
    instructions: str | None = None,
    persona: str | None = None,
    ground_truth: Any = None,
    context: Mapping[str, Any] | None = None,
    criteria: Sequence[EvaluationCriteria | Mapping[str, Any]] = (),
    metadata: Mapping[str, Any] | None = None,
    state: Mapping[str, Any] | None = None,
    llm: Any = None,
    embedder: Any = None,
) -> EvaluatorContext[Any]:
    """A context as an evaluator would see it after the agent said ``response``.

    ``messages`` is what was said before; the prompt and the response are added to it.
    """
    earlier = read_messages(messages or (), roles=None)
    if prompt is not None:
        earlier.append(Message(role="user", content=prompt))
    new: list[Message] = []
    if response is not None or tool_calls:
        answer = response if isinstance(response, Message) else Message(role="assistant", content=response)
        if tool_calls:
            answer.tool_calls = [ToolCall.model_validate(call) for call in tool_calls]
        new.append(answer)
    usage, usage_missing = read_usage(tokens_usage)
    facts = TurnFacts(
        messages=earlier + new,
        last_invocation=Invocation(latency_ms, new, usage, usage_missing),
        turn=turn,
        is_final=is_final,
        scenario=ScenarioInfo(scenario, instructions),
        persona=PersonaInfo(persona) if persona else None,
        ground_truth=ground_truth,
        context=context or {},
        criteria=[EvaluationCriteria.model_validate(criterion) for criterion in criteria],
        metadata=metadata or {},
        state=state,
        llm=llm,
        embedder=embedder,
    )
    return EvaluatorContext({} if config is None else config, facts)
