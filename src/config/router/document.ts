import { configTables } from '../engine/document.ts'
import { routerTable } from './load.ts'

/**
 * docs/reference/router-configuration.md, generated from the table of keys. A test compares it
 * with this text.
 */
export function routerConfigurationDocument(): string {
  return `# Configuration of a router

A YAML file with \`v: 3\`, checked as a whole: \`flotilla router check CONFIG\` reports every fault with its line, the value found and the values
allowed, and exits with 2. Unknown keys are faults, with the known name that is nearest. \`--print\` shows the effective
configuration: each value with the line of the file, the environment variable or the default that it is from.

- To start, \`v\`, \`identity\` and \`ctrl\` are required. Without \`csr\` the router cannot enroll or renew its certificates, without
  \`dialers\` it terminates no services, without \`edge\` no client connects, without \`link\` there are no links, without
  \`listeners\` nothing enters the network here.
- **Environment**: \`$NAME\` and \`\${NAME}\` in a text are replaced by the variable. There is no default and no escape. One that is not
  set is replaced by nothing, with a warning. Numbers and \`true\` or \`false\` cannot come from a variable.
- **Durations** are numbers with a unit (\`250ms\`, \`5s\`, \`1m30s\`, \`24h\`); keys in milliseconds are integers without a unit.
- **Addresses** are \`<protocol>:<host>:<port>\`, IPv6 addresses in brackets: \`tls:[2001:db8::1]:6262\`.
- **Paths** that are relative start at the folder of the file.
- **No effect in this version**: the keys that are marked so below, and in \`--print\`, are read and checked, and change nothing.
- Places that are deprecated are accepted with a warning. Keys of other routers that have no meaning here are accepted with a warning.

${configTables(routerTable)}
## Rules between keys

- One of \`ctrl.endpoint\` and \`ctrl.endpoints\` is given; with both, \`endpoints\` is ignored. The content of \`ctrl.endpointsFile\` wins over both.
- \`ctrl.options\` takes the addressing of \`ctrl\` as well; \`ctrl\` itself wins.
- \`csr\` wins over \`edge.csr\`. One valid SAN at least is needed to accept clients or routers.
- A listener has \`bind\` (or \`address\`) and \`advertise\` (there or in its \`options\`), but for \`tunnel\`. \`proxy\` and \`proxy_udp\` have \`service\`.
- No two listeners take the same address.
- \`minRetryInterval\` does not exceed \`maxRetryInterval\`, \`minSize\` not \`maxSize\`, \`minTLSVersion\` not \`maxTLSVersion\`, \`txPortalMinSize\` not \`txPortalMaxSize\`.
- A tunnel of mode \`proxy\` has \`services\`.
`
}
