"""The manifests in `deploy/kubernetes`. As a program, it writes them."""

from pathlib import Path

from gt.cluster.kubernetes.manifest import manifest, parsed
from gt.cluster.kubernetes.settings import PodSettings

DEPLOY = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes"


def manifests() -> dict[Path, str]:
    """Return the texts by their paths."""
    return {
        DEPLOY / kind / "gt.yaml": _text(job_set)
        for kind, job_set in {"deployment": False, "jobset": True}.items()
    }


def _text(job_set: bool) -> str:
    import yaml

    settings = PodSettings(
        name="gt", namespace="default", image="gt-tensor", job_set=job_set, lease=None
    )
    things = [of for of in parsed(manifest(settings, 2, None)) if of["kind"] != "Secret"]
    for of in things:
        # Kustomize and kubectl choose it.
        del of["metadata"]["namespace"]
    text = yaml.safe_dump_all(things, sort_keys=False, width=100)
    return (
        "# Generated from gt.cluster.Kubernetes by tests/support/kubernetes_manifests.py.\n"
        f"# kustomization.yaml makes the Secret and sets the image.\n---\n{text}"
    )


if __name__ == "__main__":
    for path, text in manifests().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
