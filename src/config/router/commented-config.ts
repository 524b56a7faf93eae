import { isIP } from 'node:net'

import { ROUTER_CONFIG_VERSION } from './table.ts'

/**
 * `edge` serves clients and accepts links from other routers. `private` serves the clients of its
 * own network; it dials links but accepts none, so it needs no open port to the outside. `tunnel`
 * serves no clients: it hosts services and, except in mode `host`, offers services to programs on
 * its own host.
 */
export const routerTypes = ['edge', 'private', 'tunnel'] as const
export type RouterType = (typeof routerTypes)[number]

export interface CommentedRouterOptions {
  readonly type: RouterType
  /** Base name of the router's identity files. */
  readonly name: string
  /** Host name or IP address at which clients and other routers reach the router. */
  readonly advertise: string
  /**
   * `tls:host:port` of controllers; if empty, the router uses the addresses in its enrollment
   * token.
   */
  readonly endpoints: readonly string[]
  readonly edgePort: number
  readonly linkPort: number
  readonly mode: 'host' | 'proxy' | 'tproxy'
}

const purposes: Readonly<Record<RouterType, string>> = {
  edge: 'serves clients, and accepts links of other routers',
  private: 'serves clients of its network; it dials other routers, and none dials it',
  tunnel: 'hosts services at this host, and offers services to its programs',
}

/** A complete configuration with a comment at each section, for a person to edit. */
export function composeCommentedRouterConfig(router: CommentedRouterOptions): string {
  const { type, name } = router
  return `# Router ${name}: ${purposes[type]}.
# Relative paths start at the folder of this file. 'flotilla router options' lists every key.
v: ${ROUTER_CONFIG_VERSION}

# Written by 'flotilla router enroll', and renewed by the running router.
identity:
  cert: ${name}.cert
  server_cert: ${name}.server.cert
  key: ${name}.key
  ca: ${name}.ca

${controllersText(router)}
# Names in the server certificate. Clients and routers verify the one that they dial.
csr:
  sans:
    ${isIP(router.advertise) === 0 ? 'dns' : 'ip'}: ['${router.advertise}']

${[...sectionsOf(router), optionalText(router)].join('\n')}`
}

function sectionsOf(router: CommentedRouterOptions): readonly string[] {
  switch (router.type) {
    case 'edge':
      return [linksText(router), clientsText(router), dialersText]
    case 'private':
      return [dialedLinksText, clientsText(router), dialersText]
    case 'tunnel':
      return [dialedLinksText, tunnelText(router), dialersText]
  }
}

function controllersText({ endpoints }: CommentedRouterOptions): string {
  const intro = `# Router ports of the controllers. One is enough to start: the router follows the members of the cluster.`
  if (endpoints.length === 0) {
    return `${intro}
# The enrollment writes the addresses of its token into endpointsFile.
ctrl:
  # endpoints: ['tls:ctrl1.example.net:1380', 'tls:ctrl2.example.net:1380']
  endpointsFile: endpoints.yml
`
  }
  const lines = endpoints.map((endpoint) => `    - ${endpoint}`).join('\n')
  return `${intro}\nctrl:\n  endpoints:\n${lines}\n  endpointsFile: endpoints.yml\n`
}

function linksText({ advertise, linkPort }: CommentedRouterOptions): string {
  return `# Other routers dial the address of the listener; this router dials those of others.
link:
  listeners:
    - binding: transport
      bind: tls:${anyAddress(advertise)}:${linkPort}
      advertise: tls:${hostText(advertise)}:${linkPort}
  dialers:
    - binding: transport
`
}

const dialedLinksText = `# Without listeners: this router dials the others, so it needs no open port for them.
link:
  dialers:
    - binding: transport
`

function clientsText({ advertise, edgePort }: CommentedRouterOptions): string {
  return `# Clients (SDKs, tunnels) connect to the advertised address.
edge: {}
listeners:
  - binding: edge
    bind: tls:${anyAddress(advertise)}:${edgePort}
    options:
      advertise: '${hostText(advertise)}:${edgePort}'
`
}

function tunnelText({ mode }: CommentedRouterOptions): string {
  const example = mode === 'proxy' ? "\n      services: ['web:8080'] # SERVICE:PORT" : ''
  return `# The record of the router needs isTunnelerEnabled: true; docs/operate/router-tunnel.md has the modes.
listeners:
  - binding: tunnel
    options:
      mode: ${mode}${example}
`
}

const dialersText = `# Terminators of services: addresses that the host of this router reaches.
dialers:
  - binding: transport
`

function optionalText({ advertise }: CommentedRouterOptions): string {
  const metrics = `interface: '${anyAddress(advertise)}:9443', address: '${hostText(advertise)}:9443'`
  return `# 'health' for a load balancer or a service manager: GET https://127.0.0.1:1780/health-checks. 'metrics' for Prometheus at
# /metrics, for client certificates of 'flotilla pki issue'. To use a server, remove '# ' from its lines and from 'web:'.

# web:
#   - name: health
#     bindPoints: [{ interface: '127.0.0.1:1780', address: '127.0.0.1:1780' }]
#     apis: [{ binding: health-checks }]
#   - name: metrics
#     bindPoints: [{ ${metrics} }]
#     apis: [{ binding: metrics }]
`
}

/**
 * The wildcard address for the IP version of the advertised host; for a host name, the IPv4
 * wildcard.
 */
function anyAddress(host: string): string {
  return isIP(host) === 6 ? '[::]' : '0.0.0.0'
}

function hostText(host: string): string {
  return isIP(host) === 6 ? `[${host}]` : host
}
