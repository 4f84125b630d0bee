#!/bin/sh
# Installs tracelane @VERSION@ from the wheels beside this file; no network is asked for anything.
set -eu

version=@VERSION@
machine=@MACHINE@
pythons="@PYTHONS@"
left_out="@LEFT_OUT@"
extras="@EXTRAS@"

usage() {
    cat <<END
usage: sh install.sh [--system-site-packages] [--python PYTHON] [DIR]

Makes a virtual environment in DIR (./tracelane) and installs tracelane $version into it.
  --system-site-packages  see what the Python has already: needed where numpy comes with the image
  --python PYTHON         the Python to make it with (python3); one of $pythons
END
}

fail() {
    echo "install.sh: $1" >&2
    exit 1
}

here=$(cd "$(dirname "$0")" && pwd)
python=python3
system=
target=tracelane
while [ $# -gt 0 ]; do
    case $1 in
        --system-site-packages) system=$1 ;;
        --python) [ $# -gt 1 ] || fail "--python wants a Python"; python=$2; shift ;;
        --help | -h) usage; exit 0 ;;
        -*) usage >&2; exit 64 ;;
        *) target=$1 ;;
    esac
    shift
done

found=$("$python" -c 'import platform, sys; print(platform.machine(), "%d.%d" % sys.version_info[:2])') \
    || fail "$python cannot be run: name another with --python"
[ "${found% *}" = "$machine" ] || fail "these wheels are for $machine, this machine is ${found% *}"
case " $pythons " in
    *" ${found#* } "*) ;;
    *) fail "these wheels are for Python $pythons, $python is ${found#* }: name another with --python" ;;
esac
lacking="there is no $left_out for $machine among these wheels: use --system-site-packages in an image that has it"
[ -z "$left_out" ] || [ -n "$system" ] || fail "$lacking"
[ ! -e "$target" ] || fail "$target is there already: remove it, or name another folder"

undo() {
    rm -rf "$target"
    fail "$1"
}

# Nothing that is set up on this machine may send pip to an index.
PIP_CONFIG_FILE=/dev/null
export PIP_CONFIG_FILE
"$python" -m venv $system "$target" || undo "the environment cannot be made (on Debian: python3-venv)"
for name in $left_out; do
    "$target/bin/python" -c "import $name" 2>/dev/null || undo "$python has no $name, and $lacking"
done
"$target/bin/python" -m pip --isolated --quiet --disable-pip-version-check install \
    --no-index --no-cache-dir --find-links "$here/wheels" "tracelane$extras==$version" \
    || undo "pip could not install it: what it lacks stands above"
"$target/bin/tracelane" --version
echo "installed: $target/bin/tracelane"
