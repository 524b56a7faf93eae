import { environmentName } from './load.ts'
import { type Fields, type List, type Node, type Option, required } from './values.ts'
import { controllerOptions } from './options.ts'

/** docs/configuration.md: the options table as prose. A test holds the file equal to this. */
export function configurationDocument(): string {
  return `# Configuration of a controller

A YAML file, checked as a whole before anything is started: \`flotilla controller check CONFIG\` names every fault with its line, and exits with 2.
Unknown keys are faults. Relative paths start at the folder of the file.

Each option can be set by an environment variable, which wins over the file; its relative paths start at the working folder. Lists are
written with commas between, items of \`web\` and \`serverCertificates\` by their number (\`FLOTILLA_WEB_0_BIND\`). Options of scope *cluster* must be equal on every controller.

${tablesOf(controllerOptions)}
## Rules between options

- \`raft.heartbeatMs\`, \`raft.electionTimeoutMs\` and \`raft.electionTimeoutMaxMs\` are multiples of \`raft.tickMs\`.
- \`raft.electionTimeoutMs\` is at least 4 times \`raft.heartbeatMs\`; \`raft.electionTimeoutMaxMs\` exceeds it by 2 ticks or more.
- \`limits.writeTimeoutMs\` is below \`api.requestTimeoutMs\`.
- No two listeners take the same address.
- No two of \`identity\` and \`serverCertificates\` name the same \`cert\`.
- \`identity.signer\` has both \`cert\` and \`key\`, or neither.
- \`logFile.path\` is outside of \`data\`.
- \`backup.folder\` needs \`backup.recipient\` beside it, and is outside of \`data\`.
`
}

function tablesOf(fields: Fields): string {
  const top: [string, Node][] = []
  let sections = ''
  for (const [key, node] of Object.entries(fields)) {
    if (node.kind === 'option') {
      top.push([key, node])
      continue
    }
    sections += sectionOf(key, node)
  }
  return `## At the top\n\n${tableOf(top)}\n${sections}`
}

/** With its own options first, then the sections in it. */
function sectionOf(key: string, node: Exclude<Node, Option<unknown>>): string {
  const prefix = node.kind === 'list' ? `${key}[].` : `${key}.`
  const title = node.kind === 'list' ? `${key} (a list of ${countOf(node)})` : key
  const rows: [string, Node][] = []
  let inner = ''
  for (const [name, member] of Object.entries(node.fields)) {
    if (member.kind === 'option') rows.push([prefix + name, member])
    else inner += sectionOf(prefix + name, member)
  }
  return `## ${title}\n\n${node.why}\n\n${tableOf(rows)}\n${inner}`
}

function countOf({ itemsMin, itemsMax }: List<Fields>): string {
  return itemsMin === 0 ? `up to ${itemsMax}` : `${itemsMin} to ${itemsMax}`
}

function tableOf(rows: readonly [string, Node][]): string {
  const head =
    '| key | expected | default | scope | purpose | variable |\n|---|---|---|---|---|---|\n'
  return head + rows.map(([key, node]) => rowOf(key, node)).join('')
}

function rowOf(key: string, node: Node): string {
  if (node.kind !== 'option') return ''
  const otherwise = node.default === required ? '*required*' : defaultOf(shown(node.default))
  const variable = environmentName(key.replace('[]', '[0]'))
  return `| \`${key}\` | ${node.type.expected} | ${otherwise} | ${node.scope} | ${node.why} | \`${variable}\` |\n`
}

function shown(value: unknown): string {
  return Array.isArray(value) ? value.join(', ') : String(value)
}

function defaultOf(text: string): string {
  return text === '' ? '*none*' : `\`${text}\``
}
