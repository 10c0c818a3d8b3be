"""Make sure that Chromium and its driver are there, for `make test-browser`; say so if they cannot be."""

import os
import shutil
import subprocess
import sys

#: Debian's names of packages and programs.
PACKAGES, PROGRAMS = ["chromium", "chromium-driver"], ["chromium", "chromedriver"]


def there():
    """Whether both programs are on the PATH."""
    return all(shutil.which(program) for program in PROGRAMS)


def installed():
    """Install them with apt, as root; whether they are there afterwards."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    print("installing %s with apt ..." % " and ".join(PACKAGES), flush=True)
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *PACKAGES]):
        if subprocess.run(["apt-get", *command], env=environment, stdout=subprocess.DEVNULL).returncode != 0:
            return False
    return there()


if __name__ == "__main__":
    if there() or installed():
        sys.exit(0)
    print(
        "the browser tests were NOT run: %s are not installed, and without root or apt they cannot be here"
        % " and ".join(PROGRAMS)
    )
    sys.exit(3)
