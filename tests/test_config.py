"""Finding and reading the project's config file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstudio.base.files import read_mapping
from evalstudio.base.problems import InvalidInput
from evalstudio.project.config import ProjectConfig, find_config, read_config

FULL: dict[str, Any] = {
    "$schema": "https://example.test/config.schema.json",
    "version": 2,
    "name": "Buchungen 📅",
    "plugins": ["./a.py"],
    "evaluators": ["b.c"],
    "llmSettings": {
        "provider": "openai",
        "apiKey": "${OPENAI_API_KEY}",
        "baseUrl": "http://127.0.0.1:1/v1",
        "models": {"evaluation": "m", "persona": "n", "embedding": "o"},
    },
    "storage": {"type": "postgres", "connectionString": "${DATABASE_URL}"},
    "maxConcurrency": 3,
    "defaults": {"maxMessages": 6, "repetitions": 2},
}


def write(folder: Path, content: str | bytes | dict[str, Any], name: str = "evalstudio.config.json") -> Path:
    path = folder / name
    if isinstance(content, dict):
        content = json.dumps(content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def problem(path: Path) -> str:
    with pytest.raises(InvalidInput) as caught:
        read_config(path)
    return str(caught.value)


def test_a_full_config_is_read(tmp_path: Path) -> None:
    config = read_config(write(tmp_path, FULL))
    assert config.name == "Buchungen 📅"
    assert config.all_plugins == ["./a.py", "b.c"]
    assert config.llm_settings is not None
    assert config.llm_settings.models.embedding == "o"
    assert config.storage.type == "postgres"
    assert (config.max_concurrency, config.defaults.max_messages) == (3, 6)


def test_every_part_may_be_left_out(tmp_path: Path) -> None:
    assert read_config(write(tmp_path, {})) == ProjectConfig()


def test_variables_are_not_looked_up_and_secrets_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    config = read_config(write(tmp_path, FULL))
    assert config.llm_settings is not None
    assert config.llm_settings.api_key is not None
    assert config.llm_settings.api_key.get_secret_value() == "${OPENAI_API_KEY}"
    assert "OPENAI_API_KEY" not in repr(config)


def test_yaml_and_json_say_the_same(tmp_path: Path) -> None:
    text = """
version: 2
name: x
plugins: [./a.py]
llmSettings: {provider: openai, models: {persona: n}}
"""
    said = {
        "version": 2,
        "name": "x",
        "plugins": ["./a.py"],
        "llmSettings": {"provider": "openai", "models": {"persona": "n"}},
    }
    from_yaml = read_config(write(tmp_path, text, "evalstudio.config.yaml"))
    assert from_yaml == read_config(write(tmp_path, said))


def test_a_byte_order_mark_is_fine(tmp_path: Path) -> None:
    assert read_config(write(tmp_path, b'\xef\xbb\xbf{"name": "x"}')).name == "x"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"plugin": []}, ["plugin: unknown key; did you mean plugins or production?"]),
        ({"zzz": []}, ["zzz: unknown key; known are $schema, version, name, plugins"]),
        ({"llmSettings": {"provider": "x", "key": "k"}}, ["llmSettings.key: unknown key", "apiKey"]),
        (
            {"llmSettings": {"provider": "x", "models": {"judge": "m"}}},
            ["llmSettings.models.judge: unknown key; known are evaluation, persona, embedding"],
        ),
        ({"llmSettings": {"provider": ""}}, ["llmSettings.provider"]),
        ({"plugins": "./a.py"}, ["plugins: expected a list"]),
        ({"plugins": ["./a.py", 7]}, ["plugins[1]: expected text"]),
        ({"plugins": [""]}, ["plugins[0]"]),
        ({"maxConcurrency": "8"}, ["maxConcurrency: expected a whole number"]),
        ({"maxConcurrency": True}, ["maxConcurrency: expected a whole number"]),
        ({"maxConcurrency": 0}, ["maxConcurrency"]),
        ({"version": 3}, ["version: must be 2"]),
        ({"storage": {"type": "mysql"}}, ["storage.type", "sqlite"]),
        ({"storage": {"type": "postgres"}}, ["storage: postgres needs a connectionString"]),
        ({"storage": {"connectionString": "x"}}, ["storage: connectionString is for postgres"]),
        ({"storage": {"type": "postgres", "connectionString": "x", "path": "y"}}, ["path is for sqlite"]),
        ({"name": None, "defaults": {"repetitions": -1}}, ["defaults.repetitions"]),
        ({"retention": {"maxAge": "90"}}, ['retention.maxAge: "90" is not a period; write 90d']),
        ({"retention": {"maxAge": "0d"}}, ["would keep nothing"]),
        ({"retention": {"maxExecutions": 0}}, ["retention.maxExecutions"]),
        ({"retention": {"maxAge": "9d", "keepLabels": ["=x"]}}, ["retention.keepLabels[0]"]),
        ({"retention": {"keepLabels": ["release"]}}, ["retention: keepLabels needs maxAge or maxExecutions"]),
    ],
)
def test_what_is_wrong_is_named_by_its_path(
    tmp_path: Path, change: dict[str, Any], expected: list[str]
) -> None:
    message = problem(write(tmp_path, change))
    assert message.startswith(f"{tmp_path}/evalstudio.config.json:1: ")
    for part in expected:
        assert part in message


def test_several_problems_are_told_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, "plugins: 1\nstorage:\n  type: mysql\n  pth: x\nx: 3\n", "c.yaml")
    assert problem(path).splitlines() == [
        "4 problems:",
        f"  {path}:1: plugins: expected a list",
        f"  {path}:3: storage.type: must be 'sqlite' or 'postgres'",
        f"  {path}:4: storage.pth: unknown key; did you mean path?",
        f"  {path}:5: x: unknown key; known are $schema, version, name, plugins, evaluators, llmSettings, "
        "storage, maxConcurrency, maxPerConnector, pythonModules, allowedHosts, allowedAddresses, "
        "allowedVariables, trustedProxies, limits, defaults, execution, production, telemetry, retention",
    ]


def test_words_of_yaml_mean_what_they_mean_in_a_scenario(tmp_path: Path) -> None:
    path = write(tmp_path, "name: no\nplugins: [on, 12:30, 2030-99-99]\n", "c.yaml")
    config = read_config(path)
    assert (config.name, config.plugins) == ("no", ["on", "12:30", "2030-99-99"])


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("c.json", '{\n  "version": 2,\n  "plugins": [,]\n}', ":3:15: not valid JSON"),
        ("c.json", "", ":1:1: not valid JSON: the file is empty"),
        ("c.json", "  \n ", "the file is empty"),
        ("c.json", "[1]", "expected an object with named settings, found a list"),
        ("c.json", '{"name": "a", "name": "b"}', 'the key "name" is given twice'),
        ("c.json", b'{"name":\n"\xff"}', ":2: not UTF-8 text"),
        ("c.json", "[" * 200_000, "nested too deeply"),
        ("c.yaml", "name: x\nplugins: [\n", ":3:1: not valid YAML"),
        ("c.yaml", "name: x\n\tname: y\n", ":2:1: not valid YAML"),
        ("c.yml", "name: x\nversion: 2\nname: y\n", ':3: the key "name" is given twice'),
        ("c.yaml", "", "found nothing"),
        ("c.yaml", "just words", "found a single value"),
        ("c.yaml", "name: !!python/object/apply:os.system x", ":1: the tag"),
        ("c.yaml", "name: x\nversion: !!bool yes\n", ":2: 'yes' is no bool; leave out the tag"),
        ("c.yaml", "name: !!null x\n", ":1: 'x' is no null; leave out the tag"),
        ("c.yaml", "a: &a {name: x}\n<<: *a\n<<: {version: 2}\n", ":3: << is given twice; give it a list"),
        ("c.yaml", "name: \x00", ":1: holds the character U+0000"),
        ("c.yaml", "name: x\n---\nname: y\n", ":3: expected one document, found another"),
        ("c.yaml", "? [a]\n: 1", "c.yaml"),
    ],
)
def test_a_malformed_file_is_told_with_its_line(
    tmp_path: Path, name: str, content: str | bytes, expected: str
) -> None:
    path = write(tmp_path, content, name)
    message = problem(path)
    assert message.startswith(str(path))
    assert expected in message


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path: Path) -> None:
    assert problem(tmp_path / "no.json") == f"{tmp_path}/no.json: no such file"
    assert "cannot be read" in problem(tmp_path)


def test_yaml_merge_keys_still_work(tmp_path: Path) -> None:
    path = write(tmp_path, "a: &a {x: 1}\nb:\n  <<: *a\n  y: 2\n", "m.yaml")
    assert read_mapping(path).data["b"] == {"x": 1, "y": 2}


@pytest.mark.parametrize(
    "name", ["evalstudio.config.json", "evalstudio.config.yaml", "evalstudio.config.yml"]
)
def test_the_nearest_config_is_found_from_below(tmp_path: Path, name: str) -> None:
    write(tmp_path, "{}", "evalstudio.config.json")
    inner = tmp_path / "project"
    deep = inner / "a" / "b"
    deep.mkdir(parents=True)
    path = write(inner, "{}", name)
    assert find_config(deep) == path
    assert find_config(inner) == path


def test_no_config_up_to_the_root_is_none(tmp_path: Path) -> None:
    assert find_config(tmp_path) is None


def test_a_folder_of_that_name_is_no_config(tmp_path: Path) -> None:
    (tmp_path / "evalstudio.config.json").mkdir()
    assert find_config(tmp_path) is None


def test_two_configs_side_by_side_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "{}", "evalstudio.config.json")
    write(tmp_path, "{}", "evalstudio.config.yaml")
    with pytest.raises(InvalidInput, match="keep one of them"):
        find_config(tmp_path)
