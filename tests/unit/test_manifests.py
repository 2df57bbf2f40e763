"""The Kubernetes manifests: valid to the strict schemas, and what every pod must have."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
OVERLAYS = ("demo", "production")
POD_KINDS = ("Deployment", "StatefulSet", "Job")
SERVICES = ("ingest", "retrieve", "rerank", "answer", "gateway")
WORKERS = ("ingest-worker", "gateway-worker")
# Custom resources of operators, for which no schema is at hand: the fields that we rely on.
CUSTOM = {
    "Cluster": ("spec.instances", "spec.postgresql.synchronous.number", "spec.storage.size"),
    "ObjectStore": ("spec.configuration.destinationPath", "spec.retentionPolicy"),
    "ScheduledBackup": ("spec.schedule", "spec.cluster.name", "spec.pluginConfiguration.name"),
    "HTTPRoute": ("spec.parentRefs", "spec.rules"),
    "ScaledObject": ("spec.scaleTargetRef.name", "spec.minReplicaCount", "spec.triggers"),
    "TriggerAuthentication": ("spec.secretTargetRef",),
}

Resource = dict[str, Any]


@cache
def rendered(overlay: str) -> tuple[Resource, ...]:
    kubectl = Path(sys.executable).parent / "kubectl"
    done = subprocess.run(
        (str(kubectl), "kustomize", str(ROOT / "deploy" / "kubernetes" / "overlays" / overlay)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return tuple(yaml.safe_load_all(done.stdout))


def of_kind(overlay: str, *kinds: str) -> list[Resource]:
    return [resource for resource in rendered(overlay) if resource["kind"] in kinds]


def named(overlay: str, kind: str, name: str) -> Resource:
    found = [r for r in of_kind(overlay, kind) if r["metadata"]["name"] == name]
    assert len(found) == 1, f"{kind}/{name}: {len(found)} in {overlay}"
    return found[0]


def pods(overlay: str) -> list[tuple[str, Resource]]:
    return [
        (f"{r['kind']}/{r['metadata']['name']}", r["spec"]["template"])
        for r in of_kind(overlay, *POD_KINDS)
    ]


def containers(template: Resource) -> list[Resource]:
    spec = template["spec"]
    return [*spec["containers"], *spec.get("initContainers", [])]


def selects(policy: Resource, labels: dict[str, str]) -> bool:
    wanted = policy["spec"]["podSelector"].get("matchLabels", {})
    return all(labels.get(key) == value for key, value in wanted.items())


def field(resource: Resource, path: str) -> Any:
    value: Any = resource
    for name in path.split("."):
        value = value[name]
    return value


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_resource_holds_to_the_strict_schema(overlay: str) -> None:
    for resource in rendered(overlay):
        if resource["kind"] in CUSTOM:
            for path in CUSTOM[resource["kind"]]:
                assert field(resource, path), f"{resource['kind']}: {path}"
        else:
            kubernetes_validate.validate(resource, "1.37", strict=True)


def test_the_strict_schema_refuses_an_unknown_field() -> None:
    service = named("production", "Service", "recall-retrieve")
    odd = {**service, "spec": {**service["spec"], "clusterIp": "None"}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(odd, "1.37", strict=True)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_no_container_has_a_privilege_or_a_writable_root(overlay: str) -> None:
    for name, template in pods(overlay):
        spec = template["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert spec["automountServiceAccountToken"] is False, name
        for container in containers(template):
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False, name
            assert context["readOnlyRootFilesystem"] is True, name
            assert context["capabilities"] == {"drop": ["ALL"]}, name


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_container_is_limited_and_its_image_is_fixed(overlay: str) -> None:
    for name, template in pods(overlay):
        for container in containers(template):
            resources = container["resources"]
            assert "memory" in resources["limits"], name
            assert {"cpu", "memory"} <= set(resources["requests"]), name
            fixed = re.search(
                r"(:\d+\.\d+\.\d+(-[\w.]+)?|@sha256:[0-9a-f]{64})$", container["image"]
            )
            assert fixed, f"{name}: {container['image']}"


@pytest.mark.parametrize("overlay", OVERLAYS)
@pytest.mark.parametrize("service", [*SERVICES, *WORKERS])
def test_every_process_is_probed_and_drained(overlay: str, service: str) -> None:
    spec = named(overlay, "Deployment", f"recall-{service}")["spec"]
    [container] = spec["template"]["spec"]["containers"]
    assert container["livenessProbe"]["grpc"]["service"] == "live"
    assert "grpc" in container["readinessProbe"]
    drain = container["lifecycle"]["preStop"]["sleep"]["seconds"] + 25
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] > drain
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert spec["template"]["spec"]["topologySpreadConstraints"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_pod_has_a_network_policy_of_its_own_besides_the_refusal_of_everything(
    overlay: str,
) -> None:
    policies = of_kind(overlay, "NetworkPolicy")
    assert any(not p["spec"]["podSelector"] and "egress" not in p["spec"] for p in policies)
    for name, template in pods(overlay):
        labels = template["metadata"]["labels"]
        own = [p for p in policies if p["spec"]["podSelector"] and selects(p, labels)]
        assert own, name


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_only_what_keeps_data_reaches_the_database(overlay: str) -> None:
    policies = of_kind(overlay, "NetworkPolicy")
    reaching = {
        policy["metadata"]["name"]
        for policy in policies
        for rule in policy["spec"].get("egress", [])
        if any(port.get("port") == 5432 for port in rule.get("ports", []))
    }
    assert reaching - {"recall-database"} == {
        "recall-ingest",
        "recall-ingest-worker",
        "recall-retrieve",
        "recall-migrate",
    }


@pytest.mark.parametrize("service", SERVICES)
def test_services_are_headless_so_that_clients_see_every_replica(service: str) -> None:
    spec = named("production", "Service", f"recall-{service}")["spec"]
    assert spec["clusterIP"] == "None"
    targets = named("production", "ConfigMap", "recall-targets")["data"]
    port = next(port["port"] for port in spec["ports"] if port["name"] == "grpc")
    assert targets[f"RECALL_{service.upper()}_TARGET"] == (
        f"dns:///recall-{service}.recall.svc.cluster.local:{port}"
    )


def test_in_production_two_replicas_stay_whatever_is_disrupted() -> None:
    for service in SERVICES:
        scaler = named("production", "HorizontalPodAutoscaler", f"recall-{service}")
        assert scaler["spec"]["minReplicas"] >= 2
        budget = named("production", "PodDisruptionBudget", f"recall-{service}")
        assert budget["spec"]["minAvailable"] == 1
    for worker in WORKERS:
        scaled = named("production", "ScaledObject", f"recall-{worker}")
        assert scaled["spec"]["minReplicaCount"] >= 2
        assert not [
            scaler
            for scaler in of_kind("production", "HorizontalPodAutoscaler")
            if scaler["metadata"]["name"] == f"recall-{worker}"
        ]


def test_from_outside_only_slack_s_paths_come_in() -> None:
    [route] = of_kind("production", "HTTPRoute")
    paths = [m["path"] for rule in route["spec"]["rules"] for m in rule["matches"]]
    assert paths == [{"type": "PathPrefix", "value": "/slack/"}]


def test_production_serves_only_certified_generations() -> None:
    data = named("production", "ConfigMap", "recall-targets")["data"]
    assert data["RECALL_ENVIRONMENT"] == "production"


def test_a_deletion_is_on_a_second_server_before_it_is_acknowledged() -> None:
    [cluster] = of_kind("production", "Cluster")
    postgresql = cluster["spec"]["postgresql"]
    assert cluster["spec"]["instances"] == 3
    assert postgresql["synchronous"] == {"method": "any", "number": 1, "dataDurability": "required"}
    assert postgresql["parameters"]["synchronous_commit"] == "on"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_no_secret_is_in_the_tree(overlay: str) -> None:
    assert not of_kind(overlay, "Secret")
