"""``python -m tests.packaging.kustomize``: writes deploy/kustomize from the Helm chart, so that they agree.

The base is what the chart's defaults render, without the labels and hooks of Helm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.packaging.chart import Manifest, render
from tests.packaging.files import ROOT

FOLDER = ROOT / "deploy/kustomize"
HEADER = (
    "# Made from deploy/helm/almanac by `make manifests`. Change it by patches in an overlay of your own.\n"
)

SCALED: Mapping[str, Any] = {"worker": {"autoscaling": {"enabled": True}}}


def files() -> dict[str, str]:
    """The text of each file below deploy/kustomize."""
    base = _by_part(render({}))
    scaled = [each for each in render(SCALED) if each["apiVersion"].startswith("keda.sh/")]
    written = {f"base/{part}.yaml": _text(manifests) for part, manifests in base.items()}
    written["base/kustomization.yaml"] = _kustomization(
        "Kustomization", resources=sorted(f"{part}.yaml" for part in base)
    )
    written["keda/worker.yaml"] = _text(scaled)
    # KEDA decides how many workers there are.
    removal = "- op: remove\n  path: /spec/replicas\n"
    patches = [{"target": {"kind": "Deployment", "name": "almanac-worker"}, "patch": removal}]
    written["keda/kustomization.yaml"] = _kustomization(
        "Component", resources=["worker.yaml"], patches=patches
    )
    return written


def _by_part(manifests: Iterable[Manifest]) -> dict[str, list[Manifest]]:
    parts: dict[str, list[Manifest]] = {}
    for each in manifests:
        part = each["metadata"]["labels"]["app.kubernetes.io/component"]
        parts.setdefault(part, []).append(each)
    return parts


def _text(manifests: Iterable[Manifest]) -> str:
    return HEADER + yaml.safe_dump_all([_plain(each) for each in manifests], sort_keys=False, width=110)


def _plain(manifest: Manifest) -> Manifest:
    """A manifest without what belongs to Helm."""
    metadata = dict(manifest["metadata"])
    of_helm = ("helm.sh/chart", "app.kubernetes.io/managed-by")
    metadata["labels"] = {name: value for name, value in metadata["labels"].items() if name not in of_helm}
    annotations = metadata.pop("annotations", {})
    annotations = {name: value for name, value in annotations.items() if not name.startswith("helm.sh/")}
    return {**manifest, "metadata": metadata | ({"annotations": annotations} if annotations else {})}


def _kustomization(kind: str, **content: Any) -> str:
    version = "v1beta1" if kind == "Kustomization" else "v1alpha1"
    document = {"apiVersion": f"kustomize.config.k8s.io/{version}", "kind": kind, **content}
    return HEADER + yaml.safe_dump(document, sort_keys=False, width=110)


def main() -> None:
    """Write the files."""
    for name, text in files().items():
        file: Path = FOLDER / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


if __name__ == "__main__":
    main()
