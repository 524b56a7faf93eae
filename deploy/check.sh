#!/bin/sh
# Checks the files in deploy/ with the installed tools, and lists the checks whose tool is missing: `make deploy-check`.
# Exits with 1 if a check fails. With --strict, a missing tool counts as a failure.
set -u
cd "$(dirname "$(readlink -f "$0")")" || exit 2
strict=${1-}
failed=0
missing=0

have() {
  case $1 in
    # `docker compose` is a plugin, which may be missing although docker is installed.
    'docker compose') docker compose version > /dev/null 2>&1 ;;
    *) command -v "$1" > /dev/null 2>&1 ;;
  esac
}

# Arguments: NAME TOOL COMMAND...
judge() {
  name=$1 tool=$2
  shift 2
  if ! have "$tool"; then
    echo "not run  $name: $tool is not installed"
    missing=$((missing + 1))
  elif told=$("$@" 2>&1); then
    echo "ok       $name"
  else
    echo "WRONG    $name: $*"
    echo "$told" | sed 's/^/         /'
    failed=$((failed + 1))
  fi
}

# Verifies each unit together with every drop-in. A temporary root folder contains an empty script in place of the program, so Flotilla
# need not be installed.
units() {
  root=$(mktemp -d) || return 1
  mkdir -p "$root/etc/systemd/system" "$root/opt/flotilla/bin" "$root/bin" "$root/usr/lib/systemd/system"
  cp systemd/*.service "$root/etc/systemd/system/"
  for unit in systemd/*.service; do
    mkdir "$root/etc/systemd/system/${unit##*/}.d"
    cp systemd/drop-ins/*.conf "$root/etc/systemd/system/${unit##*/}.d/"
  done
  for program in /opt/flotilla/bin/flotilla /bin/kill; do
    printf '#!/bin/sh\n' > "$root$program"
    chmod 0755 "$root$program"
  done
  # The temporary root lacks the other paths in the units, which belong to the operating system. Messages about them are ignored.
  told=$(systemd-analyze --root="$root" --man=no --recursive-errors=no verify \
    flotilla-controller@ctrl1.service flotilla-router@router1.service flotilla-tunnel@tunnel1.service 2>&1)
  rm -rf "$root"
  wrong=$(echo "$told" | grep -v 'not found\|Failed to add dependency\|^$' || :)
  [ -z "$wrong" ] && return 0
  echo "$wrong"
  return 1
}

exposed() {
  for unit in systemd/*.service; do
    systemd-analyze security --offline=true --threshold=20 "$unit" || return 1
  done
}

# Renders the chart with each values file in helm/flotilla/ci, into a folder for the checks below.
rendered=$(mktemp -d) || exit 2
trap 'rm -rf "$rendered"' EXIT
template() {
  for values in helm/flotilla/ci/*-values.yaml; do
    set_name=$(basename "$values" -values.yaml)
    helm lint --strict --values "$values" helm/flotilla || return 1
    helm template --kube-version 1.30.0 --values "$values" flotilla helm/flotilla > "$rendered/$set_name.yaml" || return 1
  done
}

# Prints the path of kubernetes-validate (PyPI), which contains the schemas: from PATH, or from a virtual environment in the user's cache.
validator() {
  if have kubernetes-validate; then
    command -v kubernetes-validate
    return
  fi
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/flotilla-kubernetes-validate-1.37.0
  if [ ! -x "$cache/bin/kubernetes-validate" ]; then
    python3 -m venv "$cache" && "$cache/bin/pip" install --quiet kubernetes-validate==1.37.0 || return 1
  fi
  echo "$cache/bin/kubernetes-validate"
}

# With --strict, a key that Kubernetes does not know is an error. Resources of the Prometheus Operator are skipped, because Kubernetes has
# no schemas for them.
schemas() {
  program=$1
  for manifest in "$rendered"/*.yaml; do
    awk 'BEGIN { RS = "---\n"; ORS = "---\n" } !/\nkind: (ServiceMonitor|PodMonitor|PrometheusRule)\n/' "$manifest" > "$manifest.own"
    for version in 1.27 1.32 1.37; do
      "$program" --strict --quiet --kubernetes-version "$version" "$manifest.own" || return 1
    done
  done
}

validate() {
  name='chart: schemas of Kubernetes'
  if ! have helm || ! have python3; then
    echo "not run  $name: helm or python3 is not installed"
    missing=$((missing + 1))
  elif ! program=$(validator 2> /dev/null); then
    echo "not run  $name: kubernetes-validate cannot be installed from PyPI"
    missing=$((missing + 1))
  else
    judge "$name" helm schemas "$program"
  fi
}

judge 'systemd units' systemd-analyze units
judge 'systemd units: what they may do' systemd-analyze exposed
judge 'entrypoint: syntax' sh sh -n docker/entrypoint.sh
judge 'scripts' shellcheck shellcheck docker/entrypoint.sh check.sh debian/*
# The inner shell expands these variables.
# shellcheck disable=SC2016
judge 'helpers of the entrypoint: syntax' node sh -c 'for file in docker/*.mjs; do node --check "$file" || exit 1; done'
judge 'compose file' 'docker compose' docker compose --file docker/compose.yml config --quiet
judge 'Dockerfile' hadolint hadolint docker/Dockerfile
judge 'chart: lint and templates of every set of values' helm template
validate
judge 'alert rules' promtool promtool check rules prometheus/rules.yml
judge 'alert rules: their tests' promtool promtool test rules prometheus/rules.test.yml
judge 'scrape configuration' promtool promtool check config --syntax-only prometheus/scrape.yml
# `${name}` belongs to a JavaScript template literal, not to the shell.
# shellcheck disable=SC2016
judge 'dashboards: JSON' node node --eval 'for (const name of ["flotilla", "flotilla-network"]) JSON.parse(require("node:fs").readFileSync(`grafana/${name}.json`, "utf8"))'

echo "$failed wrong, $missing not run"
[ "$failed" -eq 0 ] || exit 1
[ "$strict" != --strict ] || [ "$missing" -eq 0 ] || exit 1
