"""The Helm chart, rendered by Helm, against the schemas of Kubernetes."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from app.cli import secrets
from tests.packaging.chart import CA, CHART, EVERYTHING, Manifest, named, pods, render
from tests.packaging.files import dockerfile, of
from tests.packaging.test_compose import parse
from workers.queues import Queue
from workers.settings import SETTINGS

pytestmark = pytest.mark.manifests

KEDA = Path(__file__).parent / "keda"
OLDEST = re.search(r'kubeVersion: ">=(\d+\.\d+)', (CHART / "Chart.yaml").read_text()).group(1)
RABBITMQ: dict[str, Any] = {
    "secrets": {"keys": {"ALMANAC_BROKER_URL": "broker_url"}},
    "worker": {"autoscaling": {"enabled": True, "broker": {"kind": "rabbitmq"}}},
}
RELEASES = [{}, EVERYTHING, RABBITMQ]


def validate(manifests: list[Manifest]) -> None:
    """Compare with the schemas of the oldest Kubernetes that the chart takes and of the newest known one."""
    import kubernetes_validate

    assert manifests
    ours = [each for each in manifests if not each["apiVersion"].startswith("keda.sh/")]
    for each in ours:
        for version in (OLDEST, kubernetes_validate.latest_version()):
            kubernetes_validate.validate(each, version, strict=True)
    scaled = [each for each in manifests if each not in ours]
    told = subprocess.run(
        ["node", "validate.js"],
        cwd=KEDA,
        input=json.dumps(scaled),
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout + told.stderr


def test_helm_finds_no_fault_in_the_chart():
    import helm_python

    found = helm_python.lint(str(CHART), strict=True)

    assert found["errors"] == []
    assert [each["error"] for each in found["messages"]] == ["icon is recommended"]


@pytest.mark.parametrize("values", RELEASES, ids=["defaults", "everything", "rabbitmq"])
def test_what_the_chart_renders_is_valid(values):
    validate(render(values))


@pytest.mark.parametrize(
    "values",
    [
        {"settings": {"ALMANAC_SECRET_KEY": "planted"}},
        {"settings": {"ALMANAC_REDIS_URL": "redis://elsewhere"}},
        {"settings": {"ALMANAC_LOG_LEVEL_FILE": "/file"}},
        {"settings": {"ALMANAC_MAX_SLOTS": 1_000_000}},
        {"settings": {"ALMANAC_PUBLIC_URL": "x"}, "secrets": {"keys": {"ALMANAC_PUBLIC_URL": "url"}}},
        {"worker": {"replica": 3}},
        {"extraVolumeMounts": [{"name": "ca"}]},
        {"worker": {"autoscaling": {"broker": {"address": "redis://redis:6379"}}}},
    ],
)
def test_a_value_that_would_break_the_installation_is_refused(values):
    import helm_python

    with pytest.raises(helm_python.HelmError):
        render(values)


def test_every_secret_setting_is_refused_among_the_others():
    schema = json.loads((CHART / "values.schema.json").read_text())
    refused = schema["properties"]["settings"]["propertyNames"]["not"]["anyOf"][1]["enum"]

    assert set(refused) - {"ALMANAC_DATA_DIR"} == {setting.name for setting in SETTINGS if setting.secret}


@pytest.mark.parametrize("values", RELEASES, ids=["defaults", "everything", "rabbitmq"])
def test_every_pod_can_do_as_little_as_possible(values):
    image_user = int(of(dockerfile()[-1], "USER")[0].split(":")[0])
    for pod in pods(render(values)).values():
        context = pod["securityContext"]
        assert (context["runAsNonRoot"], context["runAsUser"]) == (True, image_user)
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"requests", "limits"} <= set(container["resources"])
        assert {"/tmp", "/var/lib/almanac"} <= {each["mountPath"] for each in container["volumeMounts"]}


def test_every_command_and_every_probe_target_exists():
    routes = {"/healthz", "/healthcheck"}
    for part, pod in pods(render(EVERYTHING)).items():
        (container,) = pod["containers"]
        parse(container["args"])
        probes = [container[name] for name in container if name.endswith("Probe")]
        assert bool(probes) == (part != "migrate")
        for probe in probes:
            if "exec" in probe:
                assert parse(probe["exec"]["command"][1:])["part"] == part
            else:
                assert probe["httpGet"]["path"] in routes
                assert probe["httpGet"]["port"] == "http"


@pytest.mark.parametrize("values", [EVERYTHING, RABBITMQ], ids=["redis", "rabbitmq"])
def test_the_autoscaler_watches_every_queue(values):
    manifests = render(values)
    scaled = named(manifests, "ScaledObject")["almanac-worker"]["spec"]
    watched = [each["metadata"] for each in scaled["triggers"] if each["type"] != "cpu"]

    assert {each.get("listName", each.get("queueName")) for each in watched} == {
        queue.value for queue in Queue
    }
    assert "replicas" not in named(manifests, "Deployment")["almanac-worker"]["spec"]
    (signs_in,) = named(manifests, "TriggerAuthentication").values()
    assert all(
        each["authenticationRef"]["name"] == signs_in["metadata"]["name"]
        for each in scaled["triggers"]
        if each["type"] != "cpu"
    )


def test_secrets_are_files_and_flower_has_its_own_alone(tmp_path):
    made = set(secrets.write(tmp_path / "secrets")) | {"redis_url"}
    parts = pods(render({"flower": {"enabled": True}}))
    for part, pod in parts.items():
        (container,) = pod["containers"]
        (mounted,) = [each["secret"] for each in pod["volumes"] if "secret" in each]
        keys = {item["key"] for item in mounted["items"]}
        asked = {
            each["value"].rsplit("/", 1)[1] for each in container["env"] if each["name"].endswith("_FILE")
        }
        assert asked == keys <= made
        assert mounted["defaultMode"] == 0o440
        if part == "flower":
            assert keys == {"redis_url", "flower_password"}


def test_every_pod_has_the_volumes_of_the_operator():
    for pod in pods(render(EVERYTHING)).values():
        (container,) = pod["containers"]
        assert {"name": "ca", "configMap": {"name": "almanac-ca"}} in pod["volumes"]
        assert {"name": "ca", "mountPath": CA, "readOnly": True} in container["volumeMounts"]
        assert {"name": "SSL_CERT_FILE", "value": f"{CA}/ca.crt"} in container["env"]


def test_workers_do_not_reach_private_networks_beside_the_stores():
    policies = named(render(EVERYTHING), "NetworkPolicy")

    assert set(policies) == {f"almanac-{part}" for part in ("web", "worker", "beat", "migrate", "flower")}
    for name, policy in policies.items():
        spec = policy["spec"]
        assert spec["policyTypes"] == ["Ingress", "Egress"]
        assert bool(spec["ingress"]) == (name in ("almanac-web", "almanac-flower"))
        assert len(spec["egress"]) == (3 if name == "almanac-worker" else 2)
    outside = policies["almanac-worker"]["spec"]["egress"][2]["to"]
    assert "169.254.0.0/16" in outside[0]["ipBlock"]["except"]
