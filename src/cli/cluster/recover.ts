import { readFileSync } from 'node:fs'

import { readTextFile } from '../terminal/text-file.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import {
  CommandFailure,
  EXIT_FAILED,
  EXIT_USAGE,
  toOperatorFailure,
} from '../../controller/command-failure.ts'
import { runAsFileOwner } from '../../controller/run-as-file-owner.ts'
import { startNewGeneration } from '../../controller/recover/new-generation.ts'
import { planRecovery, type RecoveryPlan } from '../../controller/recover/plan.ts'
import { findReachableMembers } from '../../controller/recover/reachable-members.ts'
import {
  readSurvivor,
  type SurvivorReadResult,
  type SurvivingMemberFacts,
} from '../../controller/recover/survivor.ts'
import { decodeSurvivor } from '../../controller/recover/survivor-file.ts'
import { readSecretFile } from '../../pki/secret-file.ts'
import { lockDataFolder } from '../../store/folder/folder-lock.ts'
import { printJson, printLine, quoteShellWord } from '../terminal/output.ts'
import { promptExactText } from '../terminal/prompt.ts'
import { routerResetSteps, startCommand } from '../terminal/start-command.ts'
import { loadConfigOrFail } from '../client/connection.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { decodeText } from '../../lib/text/decode-text.ts'

export interface RecoverOptions {
  readonly inspect?: boolean
  readonly survivor?: readonly string[]
  readonly acceptLoss?: boolean
  readonly confirm?: string
  readonly json?: boolean
}

const FILE_BYTES_MAX = 1024 * 1024

/**
 * Recovers a cluster that has lost its majority, from the data folder on this host. With `inspect`
 * it only prints the contents of the folder.
 * @throws {CommandFailure} with nothing changed, unless a write to the data folder failed.
 */
export async function recoverCluster(path: string, options: RecoverOptions): Promise<void> {
  const config = loadConfigOrFail(path)
  // The survivor files are read before the process changes to the owner of the data folder, because
  // only root may be able to read them.
  const others = (options.survivor ?? []).map(readSurvivorFile)
  await runAsFileOwner(config.data, () => recoverFrom(path, config, others, options))
}

async function recoverFrom(
  path: string,
  config: ControllerConfig,
  others: readonly SurvivingMemberFacts[],
  options: RecoverOptions,
): Promise<void> {
  const lock = await lockDataFolder(config.data).catch((error: unknown) => {
    throw toOperatorFailure(error)
  })
  try {
    const read = await readSurvivor(config.data).catch((error: unknown) => {
      throw toOperatorFailure(error)
    })
    if (options.inspect === true) showSurvivor(read.survivor, options)
    else await recover(path, { config, read, others }, options)
  } finally {
    await lock.release()
  }
}

interface Found {
  readonly config: ControllerConfig
  readonly read: SurvivorReadResult
  readonly others: readonly SurvivingMemberFacts[]
}

async function recover(path: string, found: Found, options: RecoverOptions): Promise<void> {
  const { config, read, others } = found
  const { survivor } = read
  const planned = planRecovery(survivor, others, options.acceptLoss === true)
  if (!planned.ok) throw new CommandFailure(EXIT_FAILED, `${planned.reason}; nothing changed`)
  const { plan } = planned
  await refuseIfAnyRuns(config, survivor)
  const isJson = options.json === true
  if (!isJson) for (const line of planLines(survivor, plan)) printLine(line)
  await confirm(plan, options)
  const { generation } = plan
  try {
    startNewGeneration(config.data, read, { generation, nowMs: Date.now() })
  } catch (error) {
    throw toOperatorFailure(error)
  }
  if (isJson) {
    printJson({ ...plan, id: survivor.id, isDone: true })
    return
  }
  printLine(`${survivor.id} is now the only member, generation ${generation}`)
  printLine(`start it:  ${startCommand('controller', path)}`)
  printLine(
    `then invite the others again: flotilla cluster invite --config ${quoteShellWord(path)}`,
  )
  printLine(
    'routers refuse the new keys of controllers that join again until you reset them; after the joins, on the host of each router:',
  )
  printLine(`  ${routerResetSteps}`)
}

/**
 * Refuses the recovery if another member runs: that member may be part of a majority, or another
 * operator may have recovered the cluster with it.
 */
async function refuseIfAnyRuns(
  config: ControllerConfig,
  { id, members }: SurvivingMemberFacts,
): Promise<void> {
  const { identity, trustDomain, cluster } = config
  const credentials = readOwn(() => ({
    certificatePem: decodeText(readFileSync(identity.cert)),
    privateKeyPem: readSecretFile(identity.key).text,
    caPem: decodeText(readFileSync(identity.ca)),
  }))
  const peers = members.filter((member) => member.id !== id)
  const { resolvers } = cluster
  const running = await findReachableMembers(peers, credentials, { trustDomain, resolvers })
  const [first] = running
  if (first === undefined) return
  const list = running.map(({ id, address }) => `${id} at ${address}`).join(', ')
  throw new CommandFailure(
    EXIT_FAILED,
    `${list} is running; stop it and pass its --inspect output as --survivor, or, if the cluster was recovered there, join it with a ticket. Nothing changed`,
  )
}

function readOwn<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new CommandFailure(
      EXIT_FAILED,
      `cannot check whether other members are running without this controller's certificate: ${errorMessage(error)}; nothing changed`,
    )
  }
}

async function confirm({ confirmation }: RecoveryPlan, options: RecoverOptions): Promise<void> {
  const canAsk = options.json !== true && process.stdin.isTTY
  const given = options.confirm ?? (canAsk ? await promptExactText(confirmation) : undefined)
  if (given === confirmation) return
  throw new CommandFailure(
    EXIT_FAILED,
    given === undefined
      ? `nothing changed; pass --confirm ${quoteShellWord(confirmation)} to proceed`
      : `confirmation does not match ${JSON.stringify(confirmation)}; nothing changed`,
  )
}

function planLines(survivor: SurvivingMemberFacts, plan: RecoveryPlan): string[] {
  const { id, generation } = survivor
  return [
    `recover from: ${id}, generation ${generation} becomes ${plan.generation}`,
    `fenced:       ${plan.givenUp.join(', ')} (refused from now on; each can join again with an empty data folder)`,
    ...plan.warnings.map((warning) => `warning: ${warning}`),
  ]
}

function showSurvivor(survivor: SurvivingMemberFacts, options: RecoverOptions): void {
  if (options.json === true) {
    printJson(survivor)
    return
  }
  const { id, clusterId, generation, term, last, lastMs, commit, finding, fencedBy } = survivor
  printLine(`${id} of cluster ${clusterId}, generation ${generation}`)
  printLine(`log:      ends at index ${last.index} of term ${last.term} (term now ${term})`)
  printLine(`written:  ${new Date(lastMs).toISOString()}, committed up to index ${commit} at least`)
  const members = survivor.members.map(({ id, isVoter }) => (isVoter ? id : `${id} (learner)`))
  printLine(`members:  ${members.join(', ')} (configuration ${survivor.configurationIndex})`)
  if (finding !== null) printLine(`damage:   ${finding}`)
  if (fencedBy !== null)
    printLine(`fenced:   the cluster was recovered without it, generation ${fencedBy}`)
}

function readSurvivorFile(path: string): SurvivingMemberFacts {
  try {
    return decodeSurvivor(JSON.parse(readTextFile(path, FILE_BYTES_MAX)))
  } catch (error) {
    throw new CommandFailure(
      EXIT_USAGE,
      `--survivor: ${path} is not the output of --inspect (${errorMessage(error)}); create it with 'flotilla cluster recover CONFIG --inspect --json'`,
    )
  }
}
