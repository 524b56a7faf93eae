import { required, type RouterFields, type SchemaNode, type Value } from '../engine/schema.ts'
import { routerFields } from './table.ts'

/**
 * docs/router-configuration.md: the table of keys as prose. A test holds the file equal to this.
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
  set is replaced by nothing, with a warning. Numbers and \`true\` or \`false\` stand in the file as they are.
- **Durations** are numbers with a unit (\`250ms\`, \`5s\`, \`1m30s\`, \`24h\`); keys in milliseconds are integers without a unit.
- **Addresses** are \`<protocol>:<host>:<port>\`, IPv6 addresses in brackets: \`tls:[2001:db8::1]:6262\`.
- **Paths** that are relative start at the folder of the file.
- **Without effect in this version**, though read and checked: \`dialers\`, \`listeners\`, \`forwarder\` and \`transport\` as a whole, as no data
  is forwarded; of a channel \`outQueueSize\`, \`maxQueuedConnects\`, \`maxOutstandingConnects\` and \`writeTimeout\`; \`ctrl.rateLimiter\`,
  \`checkInterval\` of heartbeats, \`identity.alt_server_certs\`; of \`link\` \`split\`, the numbers of connections, \`startupDelay\`,
  \`bindInterface\` and the sizes of queues.
- Places that are deprecated are accepted with a warning. Keys of other routers that have no meaning here are accepted with a warning.

${tablesOf(routerFields)}
## Rules between keys

- One of \`ctrl.endpoint\` and \`ctrl.endpoints\` is given; with both, \`endpoints\` is ignored. What \`ctrl.endpointsFile\` holds wins over both.
- \`ctrl.options\` takes the addressing of \`ctrl\` as well; what stands in \`ctrl\` itself wins.
- \`csr\` wins over \`edge.csr\`. One valid SAN at least is needed to accept clients or routers.
- A listener has \`bind\` (or \`address\`) and \`advertise\` (there or in its \`options\`), but for \`tunnel\`. \`proxy\` and \`proxy_udp\` have \`service\`.
- No two listeners take the same address.
- \`minRetryInterval\` does not exceed \`maxRetryInterval\`, \`minSize\` not \`maxSize\`, \`minTLSVersion\` not \`maxTLSVersion\`, \`txPortalMinSize\` not \`txPortalMaxSize\`.
- A tunnel of mode \`proxy\` has \`services\`.
`
}

function tablesOf(fields: RouterFields): string {
  const top: [string, SchemaNode][] = []
  let sections = ''
  for (const [key, node] of Object.entries(fields)) {
    if (isRow(node)) top.push([key, node])
    else sections += sectionOf(key, node)
  }
  return `## At the top\n\n${tableOf(top)}\n${sections}`
}

function isRow(node: SchemaNode): boolean {
  return node.kind === 'value' || node.kind === 'ignored'
}

function sectionOf(key: string, node: SchemaNode): string {
  switch (node.kind) {
    case 'value':
    case 'ignored':
      return ''
    case 'section': {
      const deprecated = node.deprecated === undefined ? '' : ` Deprecated: ${node.deprecated}.`
      const optional = node.absence === 'required' ? ' Required.' : ''
      return fieldsOf(key, `${key}.`, node.fields, node.why + optional + deprecated)
    }
    case 'list':
      return fieldsOf(
        `${key} (a list of up to ${node.itemsMax})`,
        `${key}[].`,
        node.item.fields,
        node.why,
      )
    case 'keyed':
      return fieldsOf(
        `${key} (up to ${node.itemsMax} sections by name)`,
        `${key}.<name>.`,
        node.item.fields,
        node.why,
      )
    case 'variants':
      return Object.entries(node.fieldsOf)
        .map(([kind, fields]) =>
          fieldsOf(`${key} of \`${node.by}: ${kind}\``, `${key}.`, fields, node.why),
        )
        .join('')
  }
}

function fieldsOf(title: string, prefix: string, fields: RouterFields, why: string): string {
  const rows: [string, SchemaNode][] = []
  let inner = ''
  for (const [name, node] of Object.entries(fields)) {
    if (isRow(node)) rows.push([prefix + name, node])
    else inner += sectionOf(prefix + name, node)
  }
  const table = rows.length === 0 ? '' : `${tableOf(rows)}\n`
  return `## ${title}\n\n${why}\n\n${table}${inner}`
}

function tableOf(rows: readonly [string, SchemaNode][]): string {
  const head = '| key | expected | default | purpose |\n|---|---|---|---|\n'
  return head + rows.map(([key, node]) => rowOf(key, node)).join('')
}

function rowOf(key: string, node: SchemaNode): string {
  if (node.kind === 'ignored') return `| \`${key}\` | anything | | no effect: ${node.why} |\n`
  if (node.kind !== 'value') return ''
  const aliases = (node.aliases ?? []).map((name) => ` (or \`${name}\`)`).join('')
  const deprecated = node.deprecated === undefined ? '' : ` Deprecated: ${node.deprecated}.`
  const why = node.why + deprecated
  return `| \`${key}\`${aliases} | ${cell(node.type.expected)} | ${defaultOf(node)} | ${cell(why)} |\n`
}

function defaultOf(node: Value<unknown>): string {
  const { default: fallback, type } = node
  if (fallback === required) return '*required*'
  if (fallback === null) return '*none*'
  const text =
    type.show?.(fallback) ?? (Array.isArray(fallback) ? fallback.join(', ') : String(fallback))
  return text === '' ? '*none*' : `\`${text}\``
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '\\<')
}
