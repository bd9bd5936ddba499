# Sourced by tests/run and .ci/run: steps with their time, and what they need.
#
# step TITLE COMMAND…   runs a command, says how long it took, remembers whether it failed
# finish                prints a line a step, exits 1 if any failed

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/mcp-verdict-tests
STEP_LINES=()
STEPS_FAILED=0

step() {
  local title=$1 began=$SECONDS status=0 log
  shift
  printf '\n── %s\n' "$title"
  log=$(mktemp)
  { "$@" 2>&1 | tee "$log"; status=${PIPESTATUS[0]}; } || true
  local seconds=$((SECONDS - began)) closing
  closing=$(closing_line "$log")
  rm -f "$log"
  local mark=ok
  [ "$status" -eq 0 ] || { mark=FAILED; STEPS_FAILED=$((STEPS_FAILED + 1)); }
  STEP_LINES+=("$(printf '%-7s %3d min %02d s  %s%s' "$mark" $((seconds / 60)) $((seconds % 60)) "$title" "${closing:+: $closing}")")
  printf '── %s: %s, %d min %02d s\n' "$title" "$mark" $((seconds / 60)) $((seconds % 60))
  return "$status"
}

# What a runner said at its end, for the table: cargo's lines summed up, else the last that counts.
closing_line() {
  awk '
    /^test result:/ { for (i = 2; i < NF; i++) { if ($(i + 1) ~ /^passed/) p += $i; if ($(i + 1) ~ /^failed/) f += $i }; cargo = 1 }
    /[0-9]+ (passed|failed)/ { last = $0 }
    END { if (cargo) printf "%d passed, %d failed\n", p, f; else if (last) print last }' "$1"
}

# One line over all runners.
totals() {
  printf '%s\n' "${STEP_LINES[@]}" | awk '
    { for (i = 2; i <= NF; i++) { if ($i ~ /^passed/) p += $(i - 1); if ($i ~ /^failed/) f += $(i - 1) } }
    END { printf "tests: %d passed, %d failed\n", p, f }'
}

note() { STEP_LINES+=("$(printf '%-7s %12s  %s' "$1" '' "$2")"); printf '\n── %s: %s\n' "$2" "$1"; }

finish() {
  printf '\n'
  printf '%s\n' "${STEP_LINES[@]}"
  printf 'steps: %d passed, %d failed\n' $((${#STEP_LINES[@]} - STEPS_FAILED)) "$STEPS_FAILED"
  [ "$STEPS_FAILED" -eq 0 ]
}

# need PROGRAM HOW: a program that the toolchain brings.
need() {
  command -v "$1" >/dev/null || { echo "needs '$1': $2" >&2; return 1; }
}

# A Python environment outside the tree, made anew when what it should hold changes. Prints its bin folder.
python_environment() {
  local name=$1 sum folder
  shift
  need python3 "install Python 3.11 or newer with venv" || return 1
  sum=$(cat "$@" | sha256sum | cut -c1-8)
  folder=$CACHE/$name-$sum
  if [ ! -x "$folder/.ready" ]; then
    rm -rf "$folder"
    mkdir -p "$CACHE"
    python3 -m venv "$folder" >&2 || { echo "python3 -m venv failed; on Debian: apt-get install python3-venv" >&2; return 1; }
    local file arguments=()
    for file in "$@"; do arguments+=(-r "$file"); done
    "$folder/bin/pip" install --quiet --disable-pip-version-check "${arguments[@]}" >&2 || return 1
    install -m 755 /dev/null "$folder/.ready"
  fi
  echo "$folder/bin"
}

# debian PROGRAM PACKAGE: installs a Debian package where that is possible and the program is missing.
debian() {
  command -v "$1" >/dev/null && return 0
  if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq >/dev/null 2>&1 || true
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >/dev/null || true
  fi
  need "$1" "on Debian: apt-get install $2"
}
