"""Root file systems: resolves the specifications of images and layers to unpacked trees."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import replace
from functools import partial
from pathlib import Path

from intercode_sandbox.errors import UsageError
from intercode_sandbox.images.archives import directory, tar
from intercode_sandbox.images.cache import records
from intercode_sandbox.images.cache.trees import cached_tree
from intercode_sandbox.images.oci import saved_images
from intercode_sandbox.images.progress import Progress
from intercode_sandbox.images.recipes import packaged
from intercode_sandbox.images.registry_hosts import is_registry_host
from intercode_sandbox.platforms.digests import cached_file_digest
from intercode_sandbox.platforms.paths import cache_root, sandbox_uid
from intercode_sandbox.registry import suggest_name
from intercode_sandbox.types import Image, Layer, LayerSpec

SPEC_FORMS = (
    "host, dir:/path, tar:/path.tar, recipe:NAME, docker-archive:/file.tar[:name], "
    "oci:/directory-or-tar[:tag], [registry:]host[:port]/name[:tag], dockerfile:/path or image:NAME"
)


def resolve(spec: str, cache: Path | None = None, progress: Progress | None = None) -> Image:
    """Return the image that ``spec`` names, unpacked and owned by the sandbox's id.

    ``spec`` is one of:

    - ``host``: the programs of this machine.
    - ``dir:/path``: a directory, used in place if the sandbox's id owns all of it, else copied.
    - ``tar:/path``: an archive of a root file system.
    - ``recipe:NAME``: an image that ``intercode-sandbox image build NAME`` built.
    - ``docker-archive:/path[:name]``: an archive of `docker save` or `podman save`.
    - ``oci:/path[:tag]``: an OCI layout.
    - ``registry:host[:port]/name[:tag]``, also without ``registry:``: an image in a registry,
      fetched at the first use.
    - ``image:NAME``: an image that ``intercode-sandbox image import`` stored.

    The first use unpacks an archive; later ones take milliseconds. ``cache`` replaces the default
    cache directory. ``progress`` receives lines about slow steps. ``Image.env`` and ``Image.cwd``
    are the environment and working directory that the image declares.

    Raises UsageError for another form or a missing image, DataError for a broken or hostile
    archive, InfrastructureError if a registry does not answer.
    """
    root = cache_root() if cache is None else cache
    spec = full_spec(spec)
    check_spec(spec, root)
    kind, _, rest = spec.partition(":")
    if spec == "host":
        return Image("host", _host_digest())
    if kind == "recipe":
        return _from_tar(spec, _built_recipe_path(rest, root), root)
    if kind == "tar":
        return _from_tar(spec, _existing_path(spec, rest, "file"), root)
    if kind == "dir":
        tree, digest = _from_dir(_existing_path(spec, rest, "directory"), root)
        return records.save_record(root, Image(spec, f"sha256:{digest}", tree))
    if kind == "registry":
        from intercode_sandbox.images.registry import pull

        return pull(rest, root, progress)
    if kind == "image":
        return saved_images.imported_image(rest, root)
    return saved_images.load_archive(kind, rest, root, progress)


def check_spec(spec: str, cache: Path | None = None) -> None:
    """Raise UsageError for a specification of another form than those of ``resolve``, or if the
    recipe, directory, archive or imported image that it names does not exist."""
    spec = full_spec(spec)
    kind, mark, rest = spec.partition(":")
    if spec != "host" and not (mark and rest and kind in _KINDS):
        raise _unknown_spec_error(spec)
    if kind == "recipe":
        packaged.load_recipe(rest)
    elif kind in ("tar", "dir"):
        _existing_path(spec, rest, "file" if kind == "tar" else "directory")
    elif kind in ("docker-archive", "oci"):
        saved_images.check_archive(spec, rest, cache or cache_root())
    elif kind == "image":
        saved_images.imported_image(rest, cache or cache_root())


_KINDS = ("recipe", "tar", "dir", "docker-archive", "oci", "registry", "image")


def full_spec(spec: str) -> str:
    """Return a specification with ``registry:`` before the name of an image in a registry."""
    host, slash, _ = spec.partition("/")
    is_name = slash and host.partition(":")[0] not in _KINDS and is_registry_host(host)
    return f"registry:{spec}" if is_name else spec


def _unknown_spec_error(spec: str) -> UsageError:
    kind, colon, rest = spec.partition(":")
    if kind == "dockerfile" and rest:
        return UsageError(f"{spec} has to be built: `intercode-sandbox image build {spec}` does so")
    hint = suggest_name(kind, ("host", "dockerfile", *_KINDS), 0.6)
    if spec and Path(spec).exists():
        hint = f"did you mean {'dir' if Path(spec).is_dir() else 'tar'}:{spec}? "
    elif colon and not rest and kind in (*_KINDS, "dockerfile"):
        hint = f"what follows {spec} is missing; "
    elif colon and rest and not hint and Path(kind).exists():
        hint = f"did you mean {'oci' if Path(kind).is_dir() else 'docker-archive'}:{spec}? "
    elif colon and rest and not hint:
        name = spec if "/" in kind else f"library/{spec}"
        hint = f"did you mean docker.io/{name}? "
    return UsageError(f"{spec!r} is not an image; {hint}write {SPEC_FORMS}")


def resolve_layer(spec: LayerSpec, cache: Path | None = None) -> Layer:
    """Return the files of a ``dir`` or ``tar`` specification, unpacked and owned by the sandbox's
    id.

    Raises UsageError for a script, which ``environments.base.layers`` turns into a layer, and for a
    missing path; DataError for a broken archive.
    """
    root = cache_root() if cache is None else cache
    if spec.kind == "script":
        raise UsageError(f"{spec.path} is a set-up script: builders make its layer in a sandbox")
    what = "directory" if spec.kind == "dir" else "file"
    path = _existing_path(f"the layer {spec.kind}:{spec.path}", str(spec.path), what)
    if spec.kind == "dir" and (spec.destination != "/" or spec.exclude or spec.executable):
        return _layer_at_path(spec, path, root)
    tree, digest = (_from_dir if spec.kind == "dir" else _unpack)(path, root)
    return Layer(tree, f"sha256:{digest}")


def _existing_path(spec: str, text: str, what: str) -> Path:
    path = Path(text).expanduser().resolve()
    if not (path.is_dir() if what == "directory" else path.is_file()):
        raise UsageError(f"{spec}: there is no {what} {path}")
    return path


def _built_recipe_path(name: str, cache: Path) -> Path:
    path = packaged.built_path(name, cache)
    if not path.is_file():
        raise UsageError(
            f"the image {name!r} is not built yet: run `intercode-sandbox image build {name}`, or "
            "give a root file system of your own with --image tar:/path.tar"
        )
    return path


def _from_tar(name: str, path: Path, cache: Path) -> Image:
    tree, digest = _unpack(path, cache)
    if (tree / "manifest.json").is_file() and not (tree / "usr").exists():
        raise UsageError(f"{path} is an archive of saved images: write docker-archive:{path}")
    if (tree / "oci-layout").is_file() and not (tree / "usr").exists():
        raise UsageError(f"{path} is an OCI layout: write oci:{path}")
    return records.save_record(cache, Image(name, f"sha256:{digest}", tree))


def _unpack(path: Path, cache: Path) -> tuple[Path, str]:
    owner, digest = sandbox_uid(), cached_file_digest(cache, path)
    fill = partial(tar.unpack, path, owner=owner)
    return cached_tree(cache, f"{digest[:32]}-{owner}", fill), digest


def _from_dir(path: Path, cache: Path) -> tuple[Path, str]:
    owner = sandbox_uid()
    digest, usable = directory.inspect_tree(path, owner)
    if usable:
        return path, digest
    fill = partial(directory.copy_tree, path, owner=owner)
    return cached_tree(cache, f"{digest[:32]}-{owner}", fill), digest


def _layer_at_path(spec: LayerSpec, path: Path, cache: Path) -> Layer:
    """Return a layer with the files of a directory at a path, without some of them."""
    owner = sandbox_uid()
    listing, _ = directory.inspect_tree(path, owner)
    identity = repr((listing, spec.destination, spec.exclude, spec.executable))
    digest = hashlib.sha256(identity.encode()).hexdigest()
    fill = partial(directory.write_layer_files, replace(spec, path=path), owner=owner)
    return Layer(cached_tree(cache, f"{digest[:32]}-{owner}", fill), f"sha256:{digest}")


def _host_digest() -> str:
    """Return an identifier of this machine's programs, from its release and architecture only."""
    release = Path("/etc/os-release")
    text = release.read_bytes() if release.is_file() else platform.platform().encode()
    return "sha256:" + hashlib.sha256(text + platform.machine().encode()).hexdigest()
