"""Writes the sample files beside it with the libraries of those who define the formats. Nothing is called
over the network.

Run it in an environment of its own::

    pip install openai anthropic google-genai langchain-core langgraph langsmith inspect_ai
    python tests/recordings/samples/make.py

``promptfoo.json`` is made by ``make_promptfoo.sh``.
"""

# The libraries are not installed where the tests are checked.
# pyright: reportMissingImports=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SYSTEM = "You help customers of a shop."
SCHEMA = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
NOON = 1767268800


def write(name: str, *lines: object) -> None:
    (HERE / name).write_text("".join(json.dumps(line, default=str) + "\n" for line in lines))


def openai_chat() -> None:
    from openai.types.chat import ChatCompletion

    call = {"id": "c1", "type": "function", "function": {"name": "track", "arguments": '{"order":"A1"}'}}
    request = {
        "model": "gpt-5",
        "messages": [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": "Where is order A1?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "on the way"},
            {"role": "assistant", "content": "It is on the way."},
            {"role": "user", "content": "Thanks!"},
        ],
        "tools": [{"type": "function", "function": {"name": "track", "parameters": SCHEMA}}],
    }
    response = ChatCompletion.model_validate(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": NOON,
            "model": "gpt-5-2026-01-01",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": "You are welcome."},
                }
            ],
            "usage": {"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55},
        }
    )
    write("openai_chat.jsonl", {"request": request, "response": response.model_dump(mode="json")})


def openai_responses() -> None:
    from openai.types.responses import Response

    earlier = [
        {"role": "user", "content": "Where is order A1?"},
        {"type": "function_call", "call_id": "c1", "name": "track", "arguments": '{"order":"A1"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "on the way"},
        {
            "type": "message",
            "role": "assistant",
            "id": "m1",
            "status": "completed",
            "content": [{"type": "output_text", "text": "It is on the way.", "annotations": []}],
        },
        {"role": "user", "content": [{"type": "input_text", "text": "Thanks!"}]},
    ]
    response = Response.model_validate(
        {
            "id": "resp_1",
            "object": "response",
            "created_at": NOON,
            "completed_at": NOON + 2,
            "model": "gpt-5",
            "status": "completed",
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [{"type": "function", "name": "track", "parameters": SCHEMA, "strict": True}],
            "output": [
                {
                    "type": "message",
                    "role": "assistant",
                    "id": "m2",
                    "status": "completed",
                    "content": [{"type": "output_text", "text": "You are welcome.", "annotations": []}],
                }
            ],
            "usage": {
                "input_tokens": 50,
                "output_tokens": 5,
                "total_tokens": 55,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0},
            },
        }
    )
    answer = response.model_dump(mode="json", exclude_none=True)
    request = {"instructions": SYSTEM, "input": earlier, "tools": answer["tools"], "model": "gpt-5"}
    write("openai_responses.jsonl", {**request, **{k: v for k, v in answer.items() if k not in request}})


def anthropic_messages() -> None:
    from anthropic.types import Message

    request = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "system": [{"type": "text", "text": SYSTEM}],
        "messages": [
            {"role": "user", "content": "Where is order A1?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Let me look."},
                    {"type": "tool_use", "id": "c1", "name": "track", "input": {"order": "A1"}},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "on the way"}],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "It is on the way."}]},
            {"role": "user", "content": "Thanks!"},
        ],
        "tools": [{"name": "track", "input_schema": SCHEMA}],
    }
    response = Message.model_validate(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": "You are welcome."}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 50, "output_tokens": 5},
        }
    )
    write("anthropic.jsonl", {"request": request, "response": response.model_dump(mode="json")})


def gemini() -> None:
    from google.genai import types

    call = types.FunctionCall(name="track", args={"order": "A1"})
    result = types.FunctionResponse(name="track", response={"result": "on the way"})
    contents = [
        types.UserContent("Where is order A1?"),
        types.ModelContent([types.Part(function_call=call)]),
        types.UserContent([types.Part(function_response=result)]),
        types.ModelContent("It is on the way."),
        types.UserContent("Thanks!"),
    ]
    tool = types.Tool(
        function_declarations=[types.FunctionDeclaration(name="track", parameters_json_schema=SCHEMA)]
    )
    response = types.GenerateContentResponse(
        candidates=[types.Candidate(content=types.ModelContent("You are welcome."), finish_reason="STOP")],
        usage_metadata=types.GenerateContentResponseUsageMetadata(
            prompt_token_count=50, candidates_token_count=5, total_token_count=55
        ),
        model_version="gemini-2.5-pro",
        response_id="r1",
        create_time="2026-01-01T12:00:00Z",
    )
    request = {
        "contents": [plain(one) for one in contents],
        "systemInstruction": plain(types.Content(parts=[types.Part(text=SYSTEM)])),
        "tools": [plain(tool)],
    }
    write("gemini.jsonl", {"request": request, "response": plain(response)})


def plain(model: object) -> object:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)  # type: ignore[attr-defined]


def langgraph_and_langsmith() -> None:
    from langchain_core.load import dumpd
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, messages_to_dict
    from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langsmith._internal._serde import dumps_json

    class Shop(MessagesState):
        order: str

    usage = {"input_tokens": 50, "output_tokens": 5, "total_tokens": 55}
    call = {"name": "track", "args": {"order": "A1"}, "id": "c1"}

    def agent(state: Shop) -> dict[str, object]:
        last = state["messages"][-1]
        if isinstance(last, ToolMessage):
            return {"messages": [AIMessage("It is on the way.", usage_metadata=usage)]}
        if last.content == "Thanks!":
            return {"messages": [AIMessage("You are welcome.", usage_metadata=usage)]}
        return {"messages": [AIMessage("", tool_calls=[call], usage_metadata=usage)], "order": "A1"}

    def tools(state: Shop) -> dict[str, object]:
        return {"messages": [ToolMessage("on the way", tool_call_id="c1", name="track")]}

    graph = StateGraph(Shop)
    graph.add_node("agent", agent)
    graph.add_node("tools", tools)
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", lambda s: "tools" if s["messages"][-1].tool_calls else END)
    graph.add_edge("tools", "agent")
    app = graph.compile(checkpointer=InMemorySaver())
    collector = RunCollectorCallbackHandler()
    config = {"configurable": {"thread_id": "t1"}, "callbacks": [collector], "tags": ["shop"]}
    app.invoke({"messages": [SystemMessage(SYSTEM), HumanMessage("Where is order A1?")]}, config)
    app.invoke({"messages": [HumanMessage("Thanks!")]}, config)
    snapshot = app.get_state({"configurable": {"thread_id": "t1"}})
    write("langgraph_snapshot.json", dumpd(snapshot._asdict()))
    messages = snapshot.values["messages"]
    write("langgraph_state.json", {"messages": [one.model_dump() for one in messages], "order": "A1"})
    write("langchain_messages.json", {"messages": messages_to_dict(messages)})
    runs = [run for root in collector.traced_runs for run in (*root.child_runs, root)]
    lines = [dumps_json(langsmith_row(run)).decode() for run in runs]
    (HERE / "langsmith_runs.jsonl").write_text("".join(f"{line}\n" for line in lines))


def langsmith_row(run: object) -> dict[str, object]:
    """A run with the fields that LangSmith gives out."""
    import langsmith.schemas

    names = ("trace_id", "dotted_order", "parent_run_id", *langsmith.schemas.RunBase.__annotations__)
    return {name: getattr(run, name, None) for name in names}


def inspect_log() -> None:
    from inspect_ai import Task
    from inspect_ai import eval as run_task
    from inspect_ai.dataset import Sample
    from inspect_ai.log import write_eval_log
    from inspect_ai.model import ChatMessageUser, ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import includes
    from inspect_ai.solver import Generate, TaskState, generate, solver, system_message, use_tools
    from inspect_ai.tool import Tool, tool

    @tool
    def track() -> Tool:
        async def execute(order: str) -> str:
            """Say where an order is.

            Args:
                order: The number of the order.
            """
            return "on the way"

        return execute

    @solver
    def thank():  # type: ignore[no-untyped-def]
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            state.messages.append(ChatMessageUser(content="Thanks!"))
            return await generate(state)

        return solve

    def outputs() -> list[ModelOutput]:
        made = [
            ModelOutput.for_tool_call("mockllm/model", "track", {"order": "A1"}),
            ModelOutput.from_content("mockllm/model", "It is on the way."),
            ModelOutput.from_content("mockllm/model", "You are welcome."),
        ]
        for one in made:
            one.usage = ModelUsage(input_tokens=50, output_tokens=5, total_tokens=55)
        return made

    task = Task(
        dataset=[Sample(id="orders", input="Where is order A1?", target="on the way")],
        solver=[system_message(SYSTEM), use_tools(track()), generate(), thank()],
        scorer=includes(),
        epochs=2,
        name="shop",
    )
    folder = tempfile.mkdtemp()
    model = get_model("mockllm/model", custom_outputs=[*outputs(), *outputs()])
    (log,) = run_task(task, model=model, log_dir=folder, display="none", max_samples=1, tags=["shop"])
    write_eval_log(log, str(HERE / "inspect.json"), format="json")
    write_eval_log(log, str(HERE / "inspect.eval"), format="eval")
    shutil.rmtree(folder)


if __name__ == "__main__":
    for make in (openai_chat, openai_responses, anthropic_messages, gemini):
        make()
    langgraph_and_langsmith()
    inspect_log()
