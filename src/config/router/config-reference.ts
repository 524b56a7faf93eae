import { renderConfigTables } from '../engine/config-tables.ts'
import { routerConfigTable } from './load.ts'

/**
 * The text of docs/reference/router-configuration.md, generated from the table of keys. A test
 * compares the file with this text.
 */
export function renderRouterConfigReference(): string {
  return `# Configuration of a router

For operators of routers. The configuration is a YAML file with \`v: 3\`. \`flotilla router check CONFIG\` checks the whole file, reports every fault with its line, the value
found and the values allowed, and exits with 2. If the configuration is valid, the command also opens each listening port for a moment, and exits
with 1 if the router could not start on this host. \`--print\` shows the effective configuration: each value, and whether it comes from a line of
the file, from an environment variable or from a default.

- To start, the router needs \`v\`, \`identity\` and \`ctrl\`. Without \`csr\` it cannot enroll or renew its certificates, without \`dialers\` it dials no terminators, without \`edge\` it accepts no clients, and without \`link\` it has no links. Without \`listeners\`, no connections enter the network at this router.
- **Environment**: in a string, the router replaces \`$NAME\` and \`\${NAME}\` by the value of the environment variable. There is no syntax for a default or an escape. The router replaces a variable that is not set by an empty string, and prints a warning. A variable cannot supply a number, \`true\` or \`false\`.
- **Durations** are numbers with a unit (\`250ms\`, \`5s\`, \`1m30s\`, \`24h\`); keys whose value is in milliseconds take an integer without a unit.
- **Addresses** are \`<protocol>:<host>:<port>\`, IPv6 addresses in brackets: \`tls:[2001:db8::1]:6262\`.
- **Relative paths** start at the folder of the configuration file.
- **No effect in this version**: the router reads and checks the keys that are marked with this text, here and in \`--print\`, but they change nothing.
- The router accepts keys at deprecated places, and prints a warning.
- **Unknown keys** have no effect, so that files for OpenZiti routers work. The router logs a warning with the line and the most similar known name. In
  \`identity\`, \`interfaceDiscovery\`, \`proxy\` and the sections \`identity\` and \`options\` of \`web\`, a misspelled key is a fault: if the router used the default instead, it would disclose or accept more than the file allows.
- **Unknown bindings**: the router skips an entry of \`dialers\` or \`listeners\` whose binding it does not have, and logs a warning. A misspelled binding is a fault.

${renderConfigTables(routerConfigTable)}
## Rules between keys

- If both \`ctrl.endpoint\` and \`ctrl.endpoints\` are set, the router ignores \`endpoints\`. If neither is set, \`router enroll\` writes the addresses of the enrollment
  token into \`ctrl.endpointsFile\`; a router without any address does not start. The controllers in that file take precedence over both keys.
- The address keys of \`ctrl\` may also be in \`ctrl.options\`; a key in \`ctrl\` itself takes precedence.
- \`csr\` takes precedence over \`edge.csr\`. To accept clients or routers, the section must have at least one valid SAN.
- A listener has \`bind\` (or \`address\`), except \`tunnel\`. \`edge\` has \`advertise\` (there or in its \`options\`). \`proxy\` and \`proxy_udp\` have \`service\`.
- A link listener may have the address of an \`edge\` listener: both use one port, on which routers offer the TLS application protocol
  (ALPN) \`ziti-link\`, and clients \`ziti-edge\` or none. No other listeners have the same address.
- Listeners for links, for clients, and with \`tls:\` need \`identity.server_cert\`.
- \`minRetryInterval\` is at most \`maxRetryInterval\`, \`minSize\` at most \`maxSize\`, \`minTLSVersion\` at most \`maxTLSVersion\`, \`txPortalMinSize\` at most \`txPortalMaxSize\`.
- A tunnel of mode \`proxy\` has \`services\`.
`
}
