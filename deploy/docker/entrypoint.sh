#!/bin/sh
# Entry point of a Flotilla container: creates or joins a cluster once, then runs the controller or router in FOLDER.
#
#   form FOLDER MARK [flags of cluster init]      creates the cluster, and runs its first controller
#   join FOLDER TICKET [flags of cluster join]    joins the cluster with a ticket, and runs the controller
#   member FOLDER TICKETS ID FIRST [flags]        `form` if ID is FIRST, `join` for all other IDs; FIRST may be ''
#   tickets FOLDER TICKETS ID...                  writes a ticket for each controller that is not a member
#   router FOLDER NAME TOKEN HOST:PORT...         enrolls a router with a token, and runs it
#   router-token FOLDER NAME TOKEN                creates the router, allows its host, and writes its token to the file TOKEN
#   health FOLDER                                 exits with 0 if the controller or router in FOLDER is healthy
#
# If clients use other addresses than containers, ROUTER_ADVERTISE contains the HOST:PORT at which clients dial the router, and
# CONTROLLER_URLS contains the URLs at which containers reach the controllers, beginning with the first controller. Any other command line
# is passed to `flotilla`. Each command can be stopped at any point and started again.
set -eu
umask 077
here=$(dirname "$(readlink -f "$0")")

say() { echo "flotilla container: $*" >&2; }

usage() {
  say "$1 is missing; see the head of $0"
  exit 2
}

# The first process of a container ignores these signals unless it handles them, so a shell that waits needs a trap.
stoppable() { trap 'exit 143' TERM INT; }

wait_for() {
  [ -s "$1" ] || say "waiting for $1"
  until [ -s "$1" ]; do sleep 1; done
}

# Whether a controller was created completely in this folder. If the default data folder does not show this, the function asks the program,
# because the configuration may name other paths for key and data. It does not always ask, because another start of the program would
# double the start time of a container. If the configuration is invalid, the container exits.
is_formed() {
  [ -e "$1/config.yml" ] || return 1
  if [ -e "$1/data/IDENTITY" ] && [ ! -e "$1/.forming" ] && [ ! -e "$1/.joining" ]; then return 0; fi
  code=0
  flotilla controller formed "$1/config.yml" > /dev/null 2>&1 || code=$?
  if [ "$code" -gt 1 ]; then
    flotilla controller formed "$1/config.yml" || exit "$code"
  fi
  return "$code"
}

# Waits for the ticket. If WAITING_PORT is set, this pod meanwhile reports at that port that it has no data: the pod that creates the
# cluster waits for these reports.
wait_for_ticket() {
  [ ! -s "$1" ] || return 0
  waiter=
  if [ -n "${WAITING_PORT-}" ]; then
    node "$here/first-controller.mjs" wait "$WAITING_PORT" &
    waiter=$!
    trap 'kill "$waiter" 2> /dev/null; exit 143' TERM INT
  fi
  wait_for "$1"
  [ -z "$waiter" ] || kill "$waiter" 2> /dev/null || :
  [ -z "$waiter" ] || wait "$waiter" 2> /dev/null || :
}

form() {
  [ $# -ge 2 ] || usage "FOLDER or MARK"
  folder=$1 mark=$2
  shift 2
  if ! is_formed "$folder"; then
    if [ -e "$mark" ]; then
      say "this cluster was formed before ($mark), and $folder holds nothing of it: forming again would make a second one." \
        "Join with a ticket of another member (cluster remove the lost one, cluster invite); to give the old cluster up, remove $mark"
      exit 1
    fi
    flotilla cluster init "$folder/config.yml" "$@"
  fi
  # If the tickets are in a Kubernetes Secret, the folder is read-only, and the creator of the Secret must add the mark.
  if [ ! -e "$mark" ] && [ -w "$(dirname "$mark")" ]; then echo formed > "$mark"; fi
  exec flotilla controller run "$folder/config.yml"
}

join() {
  [ $# -ge 2 ] || usage "FOLDER or TICKET"
  folder=$1 ticket=$2
  shift 2
  if ! is_formed "$folder"; then
    stoppable
    wait_for_ticket "$ticket"
    # The ticket contains the addresses for clients, which containers may be unable to reach.
    for url in ${CONTROLLER_URLS-}; do set -- "$@" --controller "$url"; done
    flotilla cluster join "$folder/config.yml" --ticket-file "$ticket" --no-run "$@"
    trap - TERM INT
  fi
  exec flotilla controller run "$folder/config.yml"
}

# Whether the cluster exists already. The mark `formed`, or a ticket for this controller, proves that it does. If both are missing, the
# creator of the tickets may not have written the mark, so all hosts in OTHERS are asked.
is_formed_elsewhere() {
  [ ! -e "$1/formed" ] && [ ! -e "$1/$2" ] || return 0
  [ -n "${OTHERS-}" ] || return 1
  # shellcheck disable=SC2086  # OTHERS contains one word for each host
  node "$here/first-controller.mjs" ask "${WAITING_PORT:-1480}" $OTHERS &
  asking=$!
  trap 'kill "$asking" 2> /dev/null; exit 143' TERM INT
  code=0
  wait "$asking" || code=$?
  trap - TERM INT
  case $code in
    0) return 1 ;;
    3) return 0 ;;
    *) exit "$code" ;;
  esac
}

# Runs a controller with a command line that is the same for all pods of a StatefulSet. Only the pod that creates the cluster uses
# CLUSTER_NAME and ADMIN_PASSWORD_FILE. OTHERS contains the hosts of all other pods. WAITING_PORT is the port at which those pods report
# that they have no data.
member() {
  [ $# -ge 4 ] || usage "FOLDER, TICKETS, ID or FIRST"
  folder=$1 tickets=$2 id=$3 first=$4
  shift 4
  if [ "$id" != "$first" ]; then join "$folder" "$tickets/$id" --id "$id" "$@"; fi
  if ! is_formed "$folder" && is_formed_elsewhere "$tickets" "$id"; then
    say "the cluster was formed before, and $folder holds nothing of it: $id joins by a ticket" \
      "(on a member: cluster remove $id, cluster invite)"
    join "$folder" "$tickets/$id" --id "$id" "$@"
  fi
  [ -z "${CLUSTER_NAME-}" ] || set -- "$@" --cluster-name "$CLUSTER_NAME"
  [ -z "${ADMIN_PASSWORD_FILE-}" ] || set -- "$@" --password-file "$ADMIN_PASSWORD_FILE"
  form "$folder" "$tickets/formed" --id "$id" "$@"
}

# Prints `yes` or `no`: whether the member is connected. Prints nothing if the controller is not a member.
connected() { echo "$members" | awk -v id="$1" '$1 == id { print $5 }'; }

# A ticket is valid for one hour. After half an hour, the controller that waits for it gets a new one.
is_stale() { [ -n "$(find "$1" -mmin +30 2>/dev/null)" ]; }

tickets() {
  [ $# -ge 3 ] || usage "FOLDER, TICKETS or ID"
  folder=$1 tickets=$2
  shift 2
  stoppable
  left=$#
  while [ "$left" -gt 0 ]; do
    left=$#
    if members=$(flotilla cluster list --config "$folder/config.yml" 2>/dev/null); then
      for id in "$@"; do
        case $(connected "$id") in
          # The connected member no longer needs its ticket.
          yes)
            rm -f "$tickets/$id"
            left=$((left - 1))
            ;;
          # A member that has not connected yet may need its ticket again.
          no) ;;
          *)
            if is_stale "$tickets/$id"; then rm -f "$tickets/$id"; fi
            # Without a quorum, the cluster refuses this command; the next round tries again.
            [ -e "$tickets/$id" ] ||
              flotilla cluster invite --config "$folder/config.yml" --out "$tickets/$id" || :
            ;;
        esac
      done
    fi
    [ "$left" -eq 0 ] || sleep 2
  done
  say "all of $* are members"
}

# Prints the configuration of a router. ROUTER_ADVERTISE is the HOST:PORT that clients dial; without it, the router has no edge listener.
# ROUTER_EDGE_PORT, ROUTER_LINK_PORT and ROUTER_HEALTH_PORT are for several routers on one network. ROUTER_LINK_HOST is the name that other
# routers dial, if it is not the router's own name. With ROUTER_METRICS_PORT, the router serves /metrics at this port to clients with a
# certificate from `flotilla pki issue`.
router_config() {
  name=$1
  advertise=${ROUTER_ADVERTISE-}
  host=${advertise%:*}
  link=${ROUTER_LINK_PORT:-1680}
  link_host=${ROUTER_LINK_HOST:-$name}
  health=${ROUTER_HEALTH_PORT:-1780}
  shift
  cat << CONFIG
v: 3
identity:
  cert: $name.cert
  server_cert: $name.server.cert
  key: $name.key
  ca: $name.ca
csr:
  sans:
CONFIG
  case $host in
    '' | "$link_host") echo "    dns: [$link_host]" ;;
    *[!0-9.]*) echo "    dns: [$link_host, '$host']" ;;
    *) printf "    dns: [%s]\n    ip: ['%s']\n" "$link_host" "$host" ;;
  esac
  cat << CONFIG
link:
  dialers:
    - binding: transport
  listeners:
    - binding: transport
      bind: tls:0.0.0.0:$link
      advertise: tls:$link_host:$link
CONFIG
  [ -z "$advertise" ] || cat << CONFIG
edge: {}
listeners:
  - binding: edge
    bind: tls:0.0.0.0:${ROUTER_EDGE_PORT:-3022}
    options:
      advertise: '$advertise'
CONFIG
  cat << CONFIG
web:
  - name: health
    bindPoints:
      - interface: 127.0.0.1:$health
        address: 127.0.0.1:$health
    apis:
      - binding: health-checks
CONFIG
  [ -z "${ROUTER_METRICS_PORT-}" ] || cat << CONFIG
  - name: metrics
    bindPoints:
      - interface: 0.0.0.0:$ROUTER_METRICS_PORT
        address: $link_host:$ROUTER_METRICS_PORT
    apis:
      - binding: metrics
CONFIG
  cat << CONFIG
ctrl:
  endpoints:
CONFIG
  for endpoint in "$@"; do printf '    - tls:%s\n' "$endpoint"; done
}

# Writes the configuration of a router, and updates it when the environment has changed, unless an operator has edited the file. Images up
# to 0.3.0 stored no copy for this comparison, and configured no edge listener.
write_router_config() {
  config=$1
  shift
  if [ -e "$config" ] && ! cmp -s "$config" "$config.written" &&
    ! (unset ROUTER_ADVERTISE ROUTER_METRICS_PORT && router_config "$@") | cmp -s - "$config"; then
    say "$config was edited, so it stays as it is; remove it to have it written again"
    return 0
  fi
  router_config "$@" > "$config.partial"
  cp "$config.partial" "$config.written"
  mv "$config.partial" "$config"
}

# Whether the router's server certificate lacks HOST, for example after a change of ROUTER_ADVERTISE.
lacks_host() {
  [ -n "$2" ] || return 1
  ! node "$here/certificate-names.mjs" "$1" "$2"
}

router() {
  [ $# -ge 4 ] || usage "FOLDER, NAME, TOKEN or HOST:PORT"
  folder=$1 name=$2 token=$3
  shift 3
  config=$folder/router.yml
  advertise=${ROUTER_ADVERTISE-}
  write_router_config "$config" "$name" "$@"
  if [ ! -e "$folder/$name.cert" ] || [ -e "$folder/$name.key.enrolling" ]; then
    stoppable
    wait_for "$token"
    first=${CONTROLLER_URLS-}
    first=${first%% *}
    flotilla router enroll "$config" --jwt "$token" ${first:+--controller "$first"}
    trap - TERM INT
  elif lacks_host "$folder/$name.server.cert" "${advertise%:*}"; then
    stoppable
    wait_for_host "$token.host" "${advertise%:*}"
    trap - TERM INT
    exec flotilla router run "$config" --extend
  fi
  exec flotilla router run "$config"
}

# Waits until router-token has allowed the new name, because only then can a renewed certificate contain it. If this takes too long, the
# router starts anyway, and clients can use only its other names.
wait_for_host() {
  say "the certificate lacks $2; waiting up to a minute until router-token has allowed it"
  seconds=0
  until [ "$seconds" -ge 60 ] || [ "$(cat "$1" 2> /dev/null)" = "$2" ]; do
    sleep 1
    seconds=$((seconds + 1))
  done
}

case ${1-} in
  form | join | member | tickets | router)
    verb=$1
    shift
    "$verb" "$@"
    ;;
  router-token)
    [ $# -eq 4 ] || usage "FOLDER, NAME or TOKEN"
    stoppable
    # Waits until the first controller responds. The administrator's password is in its folder since the cluster was created.
    until flotilla cluster status --config "$2/config.yml" > /dev/null 2>&1; do sleep 1; done
    exec node "$here/router-token.mjs" "$2/admin.json" "$3" "$4"
    ;;
  health)
    [ $# -eq 2 ] || usage "FOLDER"
    if [ -e "$2/router.yml" ]; then exec node "$here/router-health.mjs"; fi
    exec flotilla cluster status --config "$2/config.yml"
    ;;
  *) exec flotilla "$@" ;;
esac
