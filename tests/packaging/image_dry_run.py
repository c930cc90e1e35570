"""``make image-dry-run``: the steps of the Dockerfile, run in a clean root in the place of an image.

The base is not the Python image but Debian from its packages, with Debian's Python 3.11. All else is done as
the Dockerfile says it: each RUN of both stages, the copies, the environment, the user and the health check.
Then the demo runs in it with a read-only root. It needs Linux, root, debootstrap, and Debian's mirror.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from tests.packaging.files import ROOT, dockerfile, of

MIRROR = "http://deb.debian.org/debian"
PACKAGES = "python3,python3-venv,ca-certificates"
# What this machine says about its package index and its certificates.
CONFIGURATION = ("/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt", "/root/.config/pip/pip.conf")
DEMO_SECONDS = 120
_, BUILD, FINAL = dockerfile()


def main() -> None:
    """Build, run the demo, ask the health check, and say what was done."""
    parser = argparse.ArgumentParser(description="The steps of the Dockerfile in a clean root")
    parser.add_argument("--base", type=Path, help="a clean Debian root to copy, instead of debootstrap")
    base: Path | None = parser.parse_args().base
    with tempfile.TemporaryDirectory(prefix="almanac-image-") as folder:
        build, final = Path(folder) / "build", Path(folder) / "final"
        _debian(build, base)
        subprocess.run(["cp", "-a", str(build), str(final)], check=True)
        _build(build)
        _say("The final stage")
        shutil.copytree(build / "opt/almanac", final / "opt/almanac", symlinks=True)
        files = [each for each in (final / "opt/almanac").rglob("*") if each.is_file()]
        size = sum(each.stat().st_size for each in files) / 1e6
        _say(f"/opt/almanac, which is what the image adds to its base: {size:.0f} MB in {len(files)} files")
        for step in of(FINAL, "RUN"):
            _chroot(final, step)
        _run(final)
    _say("The image's steps work in a clean root; no image was made")


def _say(text: str) -> None:
    print(f"== {text}", flush=True)


def _debian(root: Path, base: Path | None) -> None:
    if base is None:
        _say(f"Debian by debootstrap, with {PACKAGES}")
        command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(root), MIRROR]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    else:
        _say(f"Debian from {base}")
        subprocess.run(["cp", "-a", str(base), str(root)], check=True)
    # The name that Python's own image has.
    (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    for name in ("null", "urandom", "random", "zero"):
        if not (root / "dev" / name).exists():
            subprocess.run(["cp", "-a", f"/dev/{name}", str(root / "dev")], check=True)


def _build(root: Path) -> None:
    _say("The build stage")
    for file in _context():
        copy = root / "build" / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    for name in ("/etc/resolv.conf", "/etc/hosts", *CONFIGURATION):
        if Path(name).exists():
            (root / name[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(name, root / name[1:])
    for step in of(BUILD, "RUN"):
        _chroot(root, re.sub(r"--mount=\S+\s*", "", step), "/build")


def _context() -> list[Path]:
    """The files that .dockerignore lets through."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    named = [ROOT / line[1:] for line in lines if line.startswith("!")]
    found = [file for each in named for file in ([each] if each.is_file() else each.rglob("*"))]
    return [file for file in found if file.is_file() and "__pycache__" not in file.parts]


def _environment(stage: list[tuple[str, str]]) -> dict[str, str]:
    """The variables of a stage, and those by which this machine configures its index and proxy."""
    words = " ".join(of(stage, "ENV")).split()
    ours = dict(word.split("=", 1) for word in words)
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("PIP_", "UV_", "SSL_")) or name.lower().endswith("_proxy")
    }
    path = ours.pop("PATH", "").replace("$PATH", "").rstrip(":")
    return {
        **kept,
        **ours,
        "PATH": f"{path}:/usr/local/bin:/usr/bin:/bin:/usr/sbin".lstrip(":"),
        "HOME": "/root",
    }


def _chroot(root: Path, step: str, folder: str = "/") -> None:
    print(f"   {step[:110]}", flush=True)
    command = ["chroot", str(root), "/bin/sh", "-ec", f"cd {folder}; {step}"]
    subprocess.run(command, env=_environment(BUILD), check=True)


def _run(root: Path) -> None:
    """Run the demo as the image's user, with a read-only root and two folders to write in."""
    user, group = of(FINAL, "USER")[0].split(":")
    (data,) = of(FINAL, "WORKDIR")
    program = json.loads(of(FINAL, "ENTRYPOINT")[0])[0]
    steps = [
        f"mount --bind {root} {root}",
        f"mount -o remount,bind,ro {root}",
        f"mount -t proc proc {root}/proc",
        f"mount -t tmpfs tmpfs {root}/tmp",
        f"mount -t tmpfs -o uid={user},gid={group},mode=0700 tmpfs {root}{data}",
    ]
    mounts = " && ".join(steps)
    inside = f"exec chroot --userspec={user}:{group} {root} /bin/sh -c"
    # A process namespace of its own, as a container has: it ends with its first process.
    unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    health = " ".join(json.loads(of(FINAL, "HEALTHCHECK")[0].partition("CMD ")[2]))
    check = f"for i in $(seq {DEMO_SECONDS}); do {health} && exit 0; sleep 1; done; exit 1"
    _say(f"{program} demo, with a read-only root")
    script = f"{mounts} && {inside} 'cd {data}; {program} demo & ({check})'"
    began = time.monotonic()
    command = [*unshare, "sh", "-ec", script]
    subprocess.run(command, env=_environment(FINAL), check=True, timeout=2 * DEMO_SECONDS)
    _say(f"It was healthy after {time.monotonic() - began:.0f} seconds")


if __name__ == "__main__":
    main()
