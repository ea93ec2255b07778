#!/usr/bin/env bash
# make images: builds our images with what is there: docker, podman or buildah. Prints their sizes.
#   IMAGES       which folders of images/, by default all
#   REGISTRY     before the names, e.g. registry.example/svc/ ; nothing by default
#   TAG          of the control plane, by default dev
#   POSTGRES_TAG of Postgres, by default its major version, 17
#   SAVE         a folder: also writes each image there as a docker-archive, e.g. for `kind load image-archive`
#   BUILD_FLAGS  more flags for the builder
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*" >&2; }

if command -v docker >/dev/null && docker info >/dev/null 2>&1; then builder=docker
elif command -v podman >/dev/null && podman info >/dev/null 2>&1; then builder=podman
elif command -v buildah >/dev/null; then builder=buildah
else say "make images needs docker, podman or buildah (on Debian and Ubuntu: apt-get install buildah)"; exit 1
fi
say "building with $builder"

# npm in the build trusts what npm here trusts; the file does not stay in the image.
flags=()
for ca in "$(npm config get cafile 2>/dev/null || true)" "${NODE_EXTRA_CA_CERTS:-}" "${SSL_CERT_FILE:-}"; do
  if [ -f "$ca" ]; then flags+=(--secret "id=npm-ca,src=$ca"); break; fi
done
read -r -a more <<<"${BUILD_FLAGS:-}"
flags+=("${more[@]}")

tag_of() { case $1 in postgres) echo "${POSTGRES_TAG:-17}" ;; *) echo "${TAG:-dev}" ;; esac; }
# Short names mean what they mean to Docker and in a pod.
name_of() {
  local name="${REGISTRY:-}svc-$1:$(tag_of "$1")"
  case ${name%%/*} in "$name") name=docker.io/library/$name ;; *.* | *:* | localhost) ;; *) name=docker.io/$name ;; esac
  echo "$name"
}
# The control plane is made of the whole checkout, the others of their folder.
context_of() { case $1 in control-plane) echo . ;; *) echo "images/$1" ;; esac; }

# A short name in a Dockerfile means what it means to Docker.
registries=$(mktemp)
trap 'rm -f "$registries"' EXIT
printf 'unqualified-search-registries = ["docker.io"]\nshort-name-mode = "permissive"\n' >"$registries"

build() { # folder name
  local args=("${flags[@]}" -f "images/$1/Dockerfile" -t "$2" "$(context_of "$1")")
  case $builder in
    docker) DOCKER_BUILDKIT=1 docker build "${args[@]}" ;;
    podman) podman build --layers "${args[@]}" ;;
    buildah) CONTAINERS_REGISTRIES_CONF=$registries BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot} buildah bud --layers --pull=false "${args[@]}" ;;
  esac >&2
}
size() { # name
  case $builder in
    docker | podman) $builder image inspect --format '{{.Size}}' "$1" ;;
    buildah) buildah images --json "$1" | sed -nE 's/.*"size": "([0-9.]+) ([KMG]?B)".*/\1 \2/p' | head -n 1 ;;
  esac
}
save() { # name file
  rm -f "$2"
  case $builder in
    docker | podman) $builder save -o "$2" "$1" ;;
    buildah) buildah push -q "$1" "docker-archive:$2:$1" ;;
  esac
}

dockerfiles=(images/*/Dockerfile)
read -r -a images <<<"${IMAGES:-$(printf '%s\n' "${dockerfiles[@]}" | cut -d/ -f2 | tr '\n' ' ')}"
for image in "${images[@]}"; do
  [ -f "images/$image/Dockerfile" ] || { say "images/$image has no Dockerfile"; exit 1; }
  name=$(name_of "$image")
  build "$image" "$name"
  echo "$name $(size "$name")"
  if [ -n "${SAVE:-}" ]; then
    mkdir -p "$SAVE"
    save "$name" "$SAVE/svc-$image.tar"
    echo "$SAVE/svc-$image.tar $(du -m "$SAVE/svc-$image.tar" | cut -f1) MB"
  fi
done
