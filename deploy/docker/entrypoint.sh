#!/bin/sh
# What a container of Flotilla runs: forms or joins a cluster once, then runs the controller or router of its folder.
#
#   form FOLDER MARK [flags of cluster init]      the first controller of a new cluster
#   join FOLDER TICKET [flags of cluster join]    a controller that joins with a ticket
#   member FOLDER TICKETS ID FIRST [flags]        form for the controller FIRST ('': there is none), join for all others
#   tickets FOLDER TICKETS ID...                  writes a ticket for each controller that is not a member
#   router FOLDER NAME TOKEN HOST:PORT...         a router, enrolled by a token
#   router-token FOLDER NAME TOKEN                creates the router, allows its host and writes its token
#   health FOLDER                                 exit 0: the controller, or router, of FOLDER answers
#
# Where clients use other addresses than containers do, ROUTER_ADVERTISE is the HOST:PORT at which clients dial the router, and
# CONTROLLER_URLS has the addresses of the controllers for the containers, the first controller first.
# Anything else is handed to flotilla. Each can be stopped at any point and started again.
set -eu
umask 077
here=$(dirname "$(readlink -f "$0")")

say() { echo "flotilla container: $*" >&2; }

usage() {
  say "$1 is missing; see the head of $0"
  exit 2
}

# As the first process of a container a shell would take no notice of a signal without this.
stoppable() { trap 'exit 143' TERM INT; }

wait_for() {
  [ -s "$1" ] || say "waiting for $1"
  until [ -s "$1" ]; do sleep 1; done
}

# Asked of the program where the usual place of the data does not tell, as the configuration says where key and data are: a start
# of the program more would double what a container needs to come up. A configuration that is wrong ends the container.
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

# Other pods are answered meanwhile that this one has no data: the pod that forms the cluster waits for these answers.
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
  # Where tickets are a Secret of Kubernetes, whoever makes it puts the mark in.
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
    # The ticket has the addresses for clients, which containers may not reach.
    for url in ${CONTROLLER_URLS-}; do set -- "$@" --controller "$url"; done
    flotilla cluster join "$folder/config.yml" --ticket-file "$ticket" --no-run "$@"
    trap - TERM INT
  fi
  exec flotilla controller run "$folder/config.yml"
}

# Where the mark may be missing although the cluster was formed (whoever makes the tickets has not come to it yet, or never
# does), each of OTHERS is asked; a ticket for this one says the same as the mark.
is_formed_elsewhere() {
  [ ! -e "$1/formed" ] && [ ! -e "$1/$2" ] || return 0
  [ -n "${OTHERS-}" ] || return 1
  # shellcheck disable=SC2086  # a word each
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

# One command line for all pods of a StatefulSet. CLUSTER_NAME and ADMIN_PASSWORD_FILE are for the one that forms, OTHERS names
# the hosts of all others, and WAITING_PORT is where those tell it that they have no data.
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

# Prints yes or no for a member, that is whether it is connected; nothing for one that is none.
connected() { echo "$members" | awk -v id="$1" '$1 == id { print $5 }'; }

# Older than the half of its hour: the controller that waits for it gets another one.
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
          # Connected: it has all that the ticket was good for.
          yes)
            rm -f "$tickets/$id"
            left=$((left - 1))
            ;;
          # A member that is on its way in may need its ticket once more.
          no) ;;
          *)
            if is_stale "$tickets/$id"; then rm -f "$tickets/$id"; fi
            # Refused while there is no quorum: the next round tries again.
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

# ROUTER_ADVERTISE is the HOST:PORT that clients dial; without it the router has no edge listener. ROUTER_EDGE_PORT,
# ROUTER_LINK_PORT and ROUTER_HEALTH_PORT are for several routers on one network, ROUTER_LINK_HOST is the name by which other
# routers dial it, if that is not its own. ROUTER_METRICS_PORT serves /metrics to clients with a certificate of 'flotilla pki
# issue'; without it the router serves none.
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

# Follows the environment until an operator edits the file. Up to 0.3.0 no copy was kept, and there was no edge listener.
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

# Whether the server certificate of the router lacks HOST, as after a change of ROUTER_ADVERTISE.
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

# A certificate gets a new name once router-token has allowed it. Without that the router serves all others.
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
    # Not before the first controller answers: its password is there from the forming on.
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
