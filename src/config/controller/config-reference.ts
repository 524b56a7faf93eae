import { renderConfigTables } from '../engine/config-tables.ts'
import { controllerConfigTable } from './load.ts'

/**
 * The text of docs/reference/configuration.md, generated from the options table. A test compares
 * the file with this text.
 */
export function renderControllerConfigReference(): string {
  return `# Configuration of a controller

For operators of controllers. The configuration is a YAML file. The controller checks the whole file before it starts anything. If the configuration
has faults, \`flotilla controller check CONFIG\` reports all of them, each with its line if it has one, and exits with 2. Unknown keys are faults. Relative paths start at the folder of the file.

An environment variable can set each option. The variable takes precedence over the file. Relative paths in a variable start at the working folder. In a variable, separate the items of a list by commas. The variables for items of \`web\` and \`serverCertificates\` contain the number of the item (\`FLOTILLA_WEB_0_BIND\`). Options of scope *cluster* must be equal on every controller.

The column *change* shows how a new value takes effect: with \`systemctl reload\` (\`flotilla controller reload CONFIG\`, SIGHUP), or with a
restart. The reload prints each changed option ([Change options](../operate/change-options.md)).

${renderConfigTables(controllerConfigTable)}
## Rules between options

- \`raft.heartbeatMs\`, \`raft.electionTimeoutMs\` and \`raft.electionTimeoutMaxMs\` are multiples of \`raft.tickMs\`.
- \`raft.electionTimeoutMs\` is at least 4 times \`raft.heartbeatMs\`; \`raft.electionTimeoutMaxMs\` exceeds it by 2 ticks or more.
- \`limits.writeTimeoutMs\` is below \`api.requestTimeoutMs\`.
- No two listeners have the same address, except that \`routers.bind\` may be the same text as \`bind\` of a web listener: both then share the port.
- All addresses in \`cluster\`, \`routers\` and \`web\`, together with all \`names\`, contain at most 32 different hosts.
- \`proxyProtocol.from\` does not contain a network of all hosts (\`/0\`). If \`routers\` and a web listener share a port, \`proxyProtocol.from\` is the same for both.
- No two of \`identity\` and \`serverCertificates\` name the same \`cert\`.
- \`identity.signer\` has both \`cert\` and \`key\`, or neither.
- \`logFile.path\` is outside of \`data\`.
- \`backup.folder\` requires \`backup.recipient\`, and is outside of \`data\`.
`
}
