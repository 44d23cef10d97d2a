"""The manifests of the page on Ray: nobody deployed them here, so their structure is what can be held."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema_rs
import yaml
from tests.support.plugin_files import REPOSITORY
from tests.support.snippets import blocks_of

from evalstudio.version import __version__

PAGE = (REPOSITORY / "docs" / "ray.md").read_text()
FILES = {block.file: yaml.safe_load(block.text) for block in blocks_of(PAGE) if block.file}
LOCKED = re.search(r"^ray==(\S+)", (REPOSITORY / "requirements.lock").read_text(), re.MULTILINE)


def test_ray_up_takes_the_cluster_file() -> None:
    cluster = FILES["cluster.yaml"]
    package = find_spec("ray")
    assert package is not None
    assert package.origin is not None
    schema = json.loads((Path(package.origin).parent / "autoscaler" / "ray-schema.json").read_text())
    jsonschema_rs.validator_for(schema).validate(cluster)
    assert any(f"evalstudio[ray,postgres]=={__version__}" in one for one in cluster["setup_commands"])
    for part in ("head_start_ray_commands", "worker_start_ray_commands"):
        start = next(one for one in cluster[part] if "ray start" in one)
        assert start.startswith("RAY_AUTH_MODE=token ")
        assert "--disable-usage-stats" in start


def test_kuberay_takes_the_cluster_resource() -> None:
    resource = FILES["raycluster.yaml"]
    assert (resource["apiVersion"], resource["kind"]) == ("ray.io/v1", "RayCluster")
    spec = resource["spec"]
    assert set(spec) == {"rayVersion", "authOptions", "headGroupSpec", "workerGroupSpecs"}
    assert LOCKED is not None
    assert spec["rayVersion"] == LOCKED[1]
    assert spec["authOptions"] == {"mode": "token"}
    assert set(spec["headGroupSpec"]) == {"rayStartParams", "template"}
    (workers,) = spec["workerGroupSpecs"]
    assert set(workers) == {
        "groupName",
        "replicas",
        "minReplicas",
        "maxReplicas",
        "rayStartParams",
        "template",
    }
    assert workers["minReplicas"] <= workers["replicas"] <= workers["maxReplicas"]
    for group in (spec["headGroupSpec"], workers):
        # All parameters of ray start are texts, and whoever sees the dataset sees it under the same path.
        assert all(isinstance(one, str) for one in group["rayStartParams"].values())
        check_pod(group["template"]["spec"])


def check_pod(pod: dict[str, Any]) -> None:
    (container,) = pod["containers"]
    assert container["image"].endswith(f":{__version__}")
    assert container["resources"]["requests"] == container["resources"]["limits"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts == {"datasets": "/datasets"}
    assert [volume["name"] for volume in pod["volumes"]] == [*mounts]
