# shellcheck shell=bash
# What tools/quickstart and tools/check share. Sourced, with the shell in the repository's root.

say() { printf '%s\n' "$*"; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# Names from tools/dependencies that are not installed.
missing_packages() {
  local package
  while read -r package _; do
    case "$package" in '' | '#'*) continue ;; esac
    # A virtual package, or one that another provides, has no status of its own.
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
      printf '%s\n' "$package"
  done <tools/dependencies
}

# Asks for root (or sudo) only when something is missing.
install_missing() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    die "this is not a Debian system; install the equivalents of: $(packages_in_words)"
  fi
  local missing=() root=()
  mapfile -t missing < <(missing_packages)
  [ "${#missing[@]}" -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      die "packages are missing, and there is no sudo; as root: apt-get install ${missing[*]}"
    root=(sudo)
  fi
  # Earlier versions of this project asked for it; what python3-sklearn needs cannot be beside it.
  if [ "$(dpkg-query -W -f '${db:Status-Status}' libboost1.81-dev 2>/dev/null)" = installed ]; then
    missing+=(libboost1.81-dev-)
  fi
  say "installing from Debian: ${missing[*]}"
  "${root[@]}" apt-get update -qq || die "apt-get update failed; missing are: ${missing[*]}"
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
    die "apt-get install failed; missing are: ${missing[*]}"
}

packages_in_words() { sed -e 's/#.*//' tools/dependencies | xargs; }

# A C++ compiler with libtorch's headers takes 1.5 GB; more at once than memory holds would be killed.
build_jobs() {
  local by_memory cores
  by_memory=$(awk '/^MemAvailable:/ { print int($2 / 1048576 / 1.5) }' /proc/meminfo)
  cores=$(nproc)
  [ "${by_memory:-1}" -ge 1 ] || by_memory=1
  [ "$by_memory" -lt "$cores" ] && cores=$by_memory
  printf '%s\n' "$cores"
}

# Where memory allows, GCC is not to go through its garbage again and again: a tenth of its time, for a
# quarter of its memory.
speed_up() {
  ! command -v ld.gold >/dev/null || export CXX_LD="${CXX_LD:-gold}"
  "${CXX:-c++}" --version 2>/dev/null | grep -q 'Free Software Foundation' || return 0
  awk -v cores="$(nproc)" '/^MemAvailable:/ { exit $2 / 1048576 < 2.5 * cores }' /proc/meminfo || return 0
  export CXXFLAGS="${CXXFLAGS:-} --param=ggc-min-heapsize=1500000"
}

# configure DIR [meson options]: once; meson itself notices later changes.
configure() {
  local dir=$1
  shift
  [ -f "$dir/build.ninja" ] || (speed_up && exec meson setup "$dir" "$@") >"$dir.log" 2>&1 ||
    { cat "$dir.log" >&2; die "meson could not configure $dir"; }
  rm -f "$dir.log"
}

# build DIR [targets]
build() {
  local dir=$1
  shift
  ninja -C "$dir" -j "$(build_jobs)" "$@" || die "the build in $dir failed"
}
