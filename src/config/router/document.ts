import { configTables } from '../engine/document.ts'
import { routerTable } from './load.ts'

/**
 * The text of docs/reference/router-configuration.md, generated from the table of keys. A test
 * compares the file with this text.
 */
export function routerConfigurationDocument(): string {
  return `# Configuration of a router

A YAML file with \`v: 3\`, checked as a whole: \`flotilla router check CONFIG\` reports every fault with its line, the value found and the values
allowed, and exits with 2. If the configuration is valid, it also opens each listening port for a moment, and exits with 1 if the router
could not start on this host. \`--print\` shows the effective configuration: each value with the line of the file, the environment variable or the default that it is from.

- To start, \`v\`, \`identity\` and \`ctrl\` are required. Without \`csr\` the router cannot enroll or renew its certificates, without
  \`dialers\` it terminates no services, without \`edge\` no client connects, without \`link\` there are no links, without
  \`listeners\` nothing enters the network here.
- **Environment**: \`$NAME\` and \`\${NAME}\` in a text are replaced by the variable. There is no default and no escape. One that is not
  set is replaced by nothing, with a warning. Numbers and \`true\` or \`false\` cannot come from a variable.
- **Durations** are numbers with a unit (\`250ms\`, \`5s\`, \`1m30s\`, \`24h\`); keys are integers without a unit if they are in milliseconds.
- **Addresses** are \`<protocol>:<host>:<port>\`, IPv6 addresses in brackets: \`tls:[2001:db8::1]:6262\`.
- **Paths** that are relative start at the folder of the file.
- **No effect in this version**: the keys that are marked so below, and in \`--print\`, are read and checked, and change nothing.
- Places that are deprecated are accepted with a warning.
- **Unknown keys** have no effect, and get a warning with the line and the known name that is nearest, so that files for other routers work. In
  \`identity\`, \`interfaceDiscovery\`, \`proxy\` and the sections \`identity\` and \`options\` of \`web\`, a misspelled key is a fault: with its default, the
  router would show or accept more than the file says.
- **Foreign bindings**: an entry of \`dialers\` or \`listeners\` with a binding of another router is skipped with a warning. A misspelled binding
  is a fault.

${configTables(routerTable)}
## Rules between keys

- With both \`ctrl.endpoint\` and \`ctrl.endpoints\`, \`endpoints\` is ignored. With neither, \`router enroll\` writes the addresses of the enrollment
  token into \`ctrl.endpointsFile\`; a router without any address does not start. The controllers in that file win over both.
- \`ctrl.options\` takes the addressing of \`ctrl\` as well; \`ctrl\` itself wins.
- \`csr\` wins over \`edge.csr\`. One valid SAN at least is needed to accept clients or routers.
- A listener has \`bind\` (or \`address\`), except \`tunnel\`. \`edge\` has \`advertise\` (there or in its \`options\`). \`proxy\` and \`proxy_udp\` have \`service\`.
- A link listener may have the address of an \`edge\` listener: both use one port, on which routers offer the TLS application protocol
  (ALPN) \`ziti-link\`, and clients \`ziti-edge\` or none. No other listeners have the same address.
- Listeners for links, for clients, and with \`tls:\` need \`identity.server_cert\`.
- \`minRetryInterval\` does not exceed \`maxRetryInterval\`, \`minSize\` not \`maxSize\`, \`minTLSVersion\` not \`maxTLSVersion\`, \`txPortalMinSize\` not \`txPortalMaxSize\`.
- A tunnel of mode \`proxy\` has \`services\`.
`
}
