#!/bin/sh
# Runs the core's tests, or those named, as on another machine: a minimal Debian under qemu-user, with the native
# core compiled for it by zig. The root lies in build/roots and is made at first, which takes some 8 minutes.
#
#     sudo sh tests/emulated.sh s390x|ppc64le|aarch64 [pytest arguments]
set -eu

fail() {
    echo "emulated.sh: $1" >&2
    exit 1
}

checkout=$(cd "$(dirname "$0")/.." && pwd)
machine=${1:?a machine: s390x, ppc64le or aarch64}
shift
[ $# -gt 0 ] || set -- tests/core
case $machine in
    s390x) debian=s390x ;;
    ppc64le) debian=ppc64el ;;
    aarch64) debian=arm64 ;;
    *) fail "$machine is none of s390x, ppc64le, aarch64" ;;
esac
packages=procps,python3,python3-numpy,python3-orjson,python3-ijson,python3-click,python3-rich,python3-pyte
for name in pytest pytest-asyncio pytest-timeout pytest-xdist hypothesis; do
    packages=$packages,python3-$name
done

[ "$(id -u)" = 0 ] || fail "only root can enter the Debian root: run it with sudo"
for tool in mmdebstrap arch-test unshare; do
    command -v $tool >/dev/null || fail "$tool is missing: apt install mmdebstrap arch-test qemu-user-static binfmt-support"
done
arch-test "$debian" >/dev/null 2>&1 \
    || fail "programs for $machine do not run here: apt install qemu-user-static binfmt-support, with binfmt_misc mounted"

root=$checkout/build/roots/$machine
if [ ! -e "$root" ]; then
    mkdir -p "$checkout/build/roots"
    trap 'rm -rf "$root.new"' EXIT
    mmdebstrap --quiet --variant=apt --architectures="$debian" --include="$packages" trixie "$root.new" \
        "${DEBIAN_MIRROR:-http://deb.debian.org/debian}"
    mv "$root.new" "$root"
fi

rm -rf "$root/tracelane"
mkdir -p "$root/tracelane" "$root/shared"
git -C "$checkout" ls-files -z | tar -C "$checkout" --null -T - -c | tar -C "$root/tracelane" -xm
"$checkout/.venv/bin/python" "$checkout/bundle/native_build.py" --platform "$machine" \
    --out "$root/tracelane/core/native/_tracelane.native.so"

loaded="import sys, tracelane.core.native.library as l; sys.exit(l.native_library().reason or None)"
export root loaded
# By a path file, as some tests run Python without any environment.
echo /tracelane/src >"$root/usr/lib/python3/dist-packages/tracelane.pth"
# The mounts are this process's own and end with it.
exec unshare --mount sh -c '
    set -e
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/tmp"
    if [ -d "$0/../shared" ]; then mount --bind -o ro "$0/../shared" "$root/shared"; fi
    exec chroot "$root" env -i HOME=/root PATH=/usr/bin:/bin LANG=C.UTF-8 \
        TRACELANE_CORPUS=/shared/traces LOADED="$loaded" \
        sh -c "cd /tracelane && python3 -c \"\$LOADED\" && exec python3 -m pytest -p no:cacheprovider -n 2 --dist loadfile -o timeout=1800 \"\$@\"" pytest "$@"
' "$checkout" "$@"
