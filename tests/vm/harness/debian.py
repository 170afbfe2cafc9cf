"""Debian packages, downloaded and unpacked into the cache; nothing is installed."""

import pathlib
import re
import shutil
import subprocess

from harness import cache

LISTS = pathlib.Path("/var/lib/apt/lists")


def run(command, **options):
    """Standard output of a command; Unavailable with its complaint when it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, check=True, timeout=300, **options)
    except FileNotFoundError as error:
        raise cache.Unavailable(f"{command[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise cache.Unavailable(f"{' '.join(command)}: no answer in 300 s") from error
    except subprocess.CalledProcessError as error:
        complaint = error.stderr.decode(errors="replace").strip().splitlines()
        raise cache.Unavailable(f"{' '.join(map(str, command))}: {complaint[-1:]}") from error
    return done.stdout


def package_fields(package):
    text = apt_shows(package)
    if not text:
        raise cache.Unavailable(f"apt knows no package {package}; apt-get update may help")
    return dict(re.findall(r"^(\S+): (.*)$", text, re.MULTILINE))


def apt_shows(package):
    """Remembered until apt's lists change: reading them takes apt a second for each package."""
    note = cache.directory() / "apt" / package
    lists = f"{LISTS.stat().st_mtime_ns if LISTS.exists() else 0}\n"
    known = note.read_text() if note.exists() else ""
    if known.startswith(lists):
        return known.removeprefix(lists)
    text = run(["apt-cache", "show", "--no-all-versions", package]).decode()
    note.parent.mkdir(exist_ok=True)
    note.write_text(lists + text)
    return text


def unpacked(package):
    """Folder with the contents of the package's candidate version, or what the cache has of it."""
    try:
        version = package_fields(package)["Version"]
        target = cache.directory() / "packages" / f"{package}_{version}"
        return target if target.exists() else downloaded(package, version, target)
    except cache.Unavailable as reason:
        return newest_cached(package, reason)


def downloaded(package, version, target):
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    run(["apt-get", "download", "-q", f"{package}={version}"], cwd=partial)
    run(["dpkg-deb", "-x", next(partial.glob("*.deb")), partial / "root"])
    (partial / "root").rename(target)
    shutil.rmtree(partial)
    return target


def newest_cached(package, reason):
    """For a machine without apt's lists or without a network."""
    found = sorted((cache.directory() / "packages").glob(f"{package}_*"),
                   key=lambda path: path.stat().st_mtime)
    if not found:
        raise cache.Unavailable(f"package {package} cannot be had: {reason}")
    return found[-1]


def installed_files(package):
    """Regular files and links of an installed package, without its documentation."""
    listed = run(["dpkg", "-L", package]).decode().splitlines()
    paths = (pathlib.Path(line) for line in listed if line.startswith("/"))
    return [path for path in paths
            if not str(path).startswith(("/usr/share/doc", "/usr/share/man", "/usr/share/locale"))
            and (path.is_symlink() or path.is_file())]
