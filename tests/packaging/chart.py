"""The Helm chart, rendered by Helm's own library, which `make test-manifests` installs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from tests.packaging.files import ROOT

CHART = ROOT / "deploy/helm/almanac"

Manifest = dict[str, Any]

# A folder with the certificate of an own authority.
CA = "/etc/ssl/almanac"

# Everything that is off by default.
EVERYTHING: Mapping[str, Any] = {
    "worker": {"autoscaling": {"enabled": True, "broker": {"passwordKey": "redis_password"}}},
    "flower": {"enabled": True},
    "web": {"ingress": {"enabled": True, "className": "nginx", "tlsSecretName": "tls"}},
    "settings": {
        "ALMANAC_PUBLIC_URL": "https://calendar.example.com",
        "ALMANAC_MAX_SLOTS": "1000000",
        "SSL_CERT_FILE": f"{CA}/ca.crt",
    },
    "serviceAccountName": "almanac",
    "extraVolumes": [{"name": "ca", "configMap": {"name": "almanac-ca"}}],
    "extraVolumeMounts": [{"name": "ca", "mountPath": CA, "readOnly": True}],
    "podAnnotations": {"example.com/team": "calendar"},
    "nodeSelector": {"kubernetes.io/arch": "arm64"},
    "tolerations": [{"key": "spot", "operator": "Exists"}],
    "networkPolicy": {
        "webFrom": [{"namespaceSelector": {}}],
        "storesTo": [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
    },
}


def render(values: Mapping[str, Any], name: str = "almanac") -> list[Manifest]:
    """The manifests of a release, hooks included, in the order of their files."""
    # Imported here: the other tests of this folder do without it.
    import helm_python

    with helm_python.Chart.load(str(CHART)) as chart:
        files = chart.render(dict(values), name=name, namespace="calendar")
    texts = (text for path, text in sorted(files.items()) if path.endswith(".yaml"))
    return [each for text in texts for each in yaml.safe_load_all(text) if each]


def pods(manifests: list[Manifest]) -> dict[str, Manifest]:
    """The specification of each part's pods."""
    return {
        each["metadata"]["labels"]["app.kubernetes.io/component"]: each["spec"]["template"]["spec"]
        for each in manifests
        if each["kind"] in ("Deployment", "StatefulSet", "Job")
    }


def named(manifests: list[Manifest], kind: str) -> dict[str, Manifest]:
    """The manifests of one kind, by name."""
    return {each["metadata"]["name"]: each for each in manifests if each["kind"] == kind}
