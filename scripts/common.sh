# Sourced by the other scripts: where the repository is, how a step is announced, how a preset is built.
# Sets strict mode and changes into the repository.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# A heading on stderr, so that stdout keeps to results.
step() { printf '\n== %s\n' "$*" >&2; }

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# configure PRESET [CMake arguments]: configures build/PRESET. Quiet when it goes well.
configure() {
  local preset=$1 log
  shift
  log=build/$preset.configure.log
  mkdir -p build
  local launcher=()
  export CCACHE_SLOPPINESS=pch_defines,time_macros  # or it does not cache what reads precompiled headers
  command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  cmake --preset "$preset" "${launcher[@]}" "$@" >"$log" 2>&1 || {
    cat "$log" >&2
    die "configuring $preset failed"
  }
}

# build PRESET [TARGETS]: builds them (default: all) in build/PRESET.
build() {
  local preset=$1
  shift
  cmake --build --preset "$preset" ${1:+--target "$@"} -- --quiet >&2
}
