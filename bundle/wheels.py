"""Builds the wheels of tracelane: one per platform with its native core, and one for all others without.

python bundle/wheels.py [--platform s390x …] [--out dist]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from make import ROOT, BundleError, build_wheel
from native_build import PLATFORMS

ANY = "any"


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the wheels and list them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--platform", action="append", choices=[*PLATFORMS, ANY], help="these only")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    for old in options.out.glob("tracelane-*.whl"):
        old.unlink()
    for machine in options.platform or [*PLATFORMS, ANY]:
        try:
            build_wheel(machine, options.out)
        except BundleError as error:
            print(f"wheels: {machine}: {str(error).splitlines()[-1]}", file=sys.stderr)
            return 1
    for path in sorted(options.out.glob("tracelane-*.whl")):
        print(f"{path}: {path.stat().st_size / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
