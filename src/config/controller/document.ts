import { configTables } from '../engine/document.ts'
import { controllerTable } from './load.ts'

/**
 * The text of docs/reference/configuration.md, generated from the options table. A test compares
 * the file with this text.
 */
export function configurationDocument(): string {
  return `# Configuration of a controller

A YAML file, checked as a whole before anything is started: \`flotilla controller check CONFIG\` reports every fault with its line, and exits with 2.
Unknown keys are faults. Relative paths start at the folder of the file.

Each option can be set by an environment variable, which wins over the file; its relative paths start at the working folder. Lists are
written with commas between, items of \`web\` and \`serverCertificates\` by their number (\`FLOTILLA_WEB_0_BIND\`). Options of scope *cluster* must be equal on every controller.

The column *change* says how a new value takes effect: with \`systemctl reload\` (\`flotilla controller reload CONFIG\`, SIGHUP), or with a
restart. The reload prints each changed option ([Change options](../operate/change-options.md)).

${configTables(controllerTable)}
## Rules between options

- \`raft.heartbeatMs\`, \`raft.electionTimeoutMs\` and \`raft.electionTimeoutMaxMs\` are multiples of \`raft.tickMs\`.
- \`raft.electionTimeoutMs\` is at least 4 times \`raft.heartbeatMs\`; \`raft.electionTimeoutMaxMs\` exceeds it by 2 ticks or more.
- \`limits.writeTimeoutMs\` is below \`api.requestTimeoutMs\`.
- No two listeners take the same address.
- All addresses of \`cluster\`, \`routers\` and \`web\` with all \`names\` have 32 hosts at most.
- \`proxyProtocol.from\` contains no network of every host (\`/0\`). \`routers\` and a web listener that share a port have the same networks.
- No two of \`identity\` and \`serverCertificates\` name the same \`cert\`.
- \`identity.signer\` has both \`cert\` and \`key\`, or neither.
- \`logFile.path\` is outside of \`data\`.
- \`backup.folder\` needs \`backup.recipient\` beside it, and is outside of \`data\`.
`
}
