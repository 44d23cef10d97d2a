"""Every name that telemetry is sent under: spans, attributes, events and metrics.

Those that begin with ``gen_ai`` are OpenTelemetry's conventions for generative AI, which still move; the rest
of what is ours begins with ``evalstudio``.
"""

from __future__ import annotations

SCOPE = "evalstudio"
SERVICE = "evalstudio"

# Spans. What follows the first word is the name of the thing.
EXECUTION_SPAN = "execution"
RUN_SPAN = "run"
RESCORE_SPAN = "rescore"
TURN_SPAN = "turn"
AGENT_SPAN = "invoke_agent"
EVALUATOR_SPAN = "evaluate"
CHAT = "chat"
EMBEDDINGS = "embeddings"

# Events.
EVALUATION_RESULT = "gen_ai.evaluation.result"
OPERATION_DETAILS = "gen_ai.client.inference.operation.details"

# Attributes of the conventions.
OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
RESPONSE_ID = "gen_ai.response.id"
FINISH_REASONS = "gen_ai.response.finish_reasons"
AGENT_NAME = "gen_ai.agent.name"
CONVERSATION_ID = "gen_ai.conversation.id"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOKEN_TYPE = "gen_ai.token.type"
EVALUATION_NAME = "gen_ai.evaluation.name"
SCORE_VALUE = "gen_ai.evaluation.score.value"
SCORE_LABEL = "gen_ai.evaluation.score.label"
EXPLANATION = "gen_ai.evaluation.explanation"
ERROR_TYPE = "error.type"
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"
SERVICE_NAME = "service.name"
SERVICE_VERSION = "service.version"

# Attributes of our own.
EXECUTION_ID = "evalstudio.execution.id"
EXECUTION_STATUS = "evalstudio.execution.status"
EXECUTION_TRIGGER = "evalstudio.execution.trigger"
EXECUTION_RUNS = "evalstudio.execution.runs"
EVAL_ID = "evalstudio.eval.id"
EVAL_NAME = "evalstudio.eval.name"
RUN_ID = "evalstudio.run.id"
RUN_ATTEMPT = "evalstudio.run.attempt"
RUN_REPETITION = "evalstudio.run.repetition"
RUN_OUTCOME = "evalstudio.run.outcome"
RUN_FAULT = "evalstudio.run.fault"
RUN_SCORE = "evalstudio.run.score"
SCENARIO = "evalstudio.scenario.name"
CASE = "evalstudio.case.name"
PERSONA = "evalstudio.persona.name"
CONNECTOR = "evalstudio.connector.name"
CONNECTOR_TYPE = "evalstudio.connector.type"
TURN = "evalstudio.turn"
LATENCY = "evalstudio.agent.latency_ms"
FIRST_TOKEN = "evalstudio.agent.first_token_ms"
AGENT_ATTEMPTS = "evalstudio.agent.attempts"
MODEL_ROLE = "evalstudio.model.role"
EVALUATOR_TYPE = "evalstudio.evaluator.type"
EVALUATOR_KIND = "evalstudio.evaluator.kind"
EVALUATOR_GATE = "evalstudio.evaluator.gate"
CRITERION = "evalstudio.evaluation.criterion"
RULE = "evalstudio.evaluation.rule"
AT_THE_END = "evalstudio.evaluation.at_the_end"

# Metrics, with their units.
RUNS = ("evalstudio.runs", "{run}", "Runs that ended, by outcome")
EVALUATIONS = ("evalstudio.evaluations", "{evaluation}", "Results of evaluators, by label")
TURN_DURATION = ("evalstudio.turn.duration", "s", "A turn from the agent's call to the last evaluator")
EVALUATOR_DURATION = ("evalstudio.evaluator.duration", "s", "One evaluator on one turn")
OPERATION_DURATION = ("gen_ai.client.operation.duration", "s", "Calls of agents and models")
TOKEN_USAGE = ("gen_ai.client.token.usage", "{token}", "Tokens of one call, by direction")
